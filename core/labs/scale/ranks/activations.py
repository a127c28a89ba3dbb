"""What autograd keeps of a micro-batch for the way back, to the byte: tensor by tensor, as a Llama's layers are run."""

from __future__ import annotations

from core.labs.scale.model_shape import Shape

NUMBER_BYTES, ID_BYTES = 4, 8
"""Bytes of a number, and of a token's id."""


def layer_numbers_per_token(shape: Shape) -> int:
    """Numbers a token: two norms (input, its mean root, what it scales, output), queries, keys, values, what attention
    gives and the logarithm of its sum for each head, and four of the second half's width."""
    query, key = shape.heads * shape.head_width, shape.kv_heads * shape.head_width
    norms = 2 * (3 * shape.width + 1)
    return norms + 2 * query + 2 * key + shape.heads + 4 * shape.inner


def layer_bytes(shape: Shape, tokens: int, count: int) -> int:
    """Bytes of so many layers, the rotation of positions once among them; their input is the first layer's."""
    return NUMBER_BYTES * tokens * (count * layer_numbers_per_token(shape) + 2 * shape.head_width)


def head_bytes(shape: Shape, tokens: int) -> int:
    """Bytes of the last norm, and of the loss: a logarithm for each token there could be, and their sum."""
    return NUMBER_BYTES * tokens * (3 * shape.width + 1 + shape.vocabulary) + NUMBER_BYTES


def stage_bytes(
    shape: Shape, tokens: int, number: int, stages: int, *, micro_batches: int, in_flight: int, recompute: bool
) -> int:
    """Bytes at most on one stage, with `in_flight` micro-batches of so many tokens between forward and backward. Ids of
    the whole batch, and those that should come, are one tensor each."""
    is_first, is_last = number == 0, number == stages - 1
    ids = ID_BYTES * tokens * micro_batches * (is_first + is_last)
    inner, outer = (
        layer_bytes(shape, tokens, shape.stage_layers(number, stages)),
        head_bytes(shape, tokens) if is_last else 0,
    )
    if not recompute:
        return in_flight * (inner + outer) + ids
    given = NUMBER_BYTES * tokens * shape.width
    return in_flight * (given + is_last * given) + max(inner - is_last * given, outer) - given + ids
