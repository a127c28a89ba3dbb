"""What autograd keeps of a micro-batch for the way back, to the byte: tensor by tensor, as a Llama's layers are run."""

from __future__ import annotations

from core.labs.scale.model_shape import Shape

FLOAT, WHOLE = 4, 8
"""Bytes of a number, and of a token's id."""


def layer(shape: Shape) -> int:
    """Numbers a token: two norms (input, its mean root, what it scales, output), queries, keys, values, what attention
    gives and the logarithm of its sum for each head, and four of the second half's width."""
    query, key = shape.heads * shape.head_width, shape.kv_heads * shape.head_width
    norms = 2 * (3 * shape.width + 1)
    return norms + 2 * query + 2 * key + shape.heads + 4 * shape.inner


def layers(shape: Shape, tokens: int, count: int) -> int:
    """Bytes of so many layers, the rotation of positions once among them; their input is the first layer's."""
    return FLOAT * tokens * (count * layer(shape) + 2 * shape.head_width)


def head(shape: Shape, tokens: int) -> int:
    """Bytes of the last norm, and of the loss: a logarithm for each token there could be, and their sum."""
    return FLOAT * tokens * (3 * shape.width + 1 + shape.vocabulary) + FLOAT


def stage(
    shape: Shape, tokens: int, number: int, stages: int, *, micro_batches: int, under_way: int, recompute: bool
) -> int:
    """Bytes at most on one stage, with `under_way` micro-batches of so many tokens between forward and backward. Ids of
    the whole batch, and those that should come, are one tensor each."""
    is_first, is_last = number == 0, number == stages - 1
    ids = WHOLE * tokens * micro_batches * (is_first + is_last)
    inner, outer = layers(shape, tokens, shape.stage_layers(number, stages)), head(shape, tokens) if is_last else 0
    if not recompute:
        return under_way * (inner + outer) + ids
    given = FLOAT * tokens * shape.width
    return under_way * (given + is_last * given) + max(inner - is_last * given, outer) - given + ids
