"""What tensor parallelism is to hold and to send, to the byte: Megatron-LM's cut of every layer, as transformers' plan
of a model has it."""

from __future__ import annotations

from math import prod

from core.errors import ParameterError
from core.labs.scale.memory_parts import Parts
from core.labs.scale.ranks.model_outline import ModelOutline, TensorSize
from core.labs.scale.ranks.predicted_bytes import FLOAT_BYTES, adam_bytes
from resources.language import tr

PROMPT_TOKENS, GENERATED_TOKENS = 4, 24
"""Tokens that are given, and that are written behind them."""
_OUTPUT_STYLES, _INPUT_STYLES = ("colwise", "colwise_gather_output"), ("rowwise",)
"""Styles of transformers by the dimension of a weight [out, in] that they cut: its outputs, its inputs."""
FORWARD_REDUCES, BACKWARD_REDUCES, MEGATRON_REDUCES = 2, 5, 4
"""All-reduces a layer: behind attention and behind the second half; on the way back one for each matrix that is cut by
its outputs (queries, keys, values, and two of the second half). Megatron-LM has two forward and two backward."""


def check_divisible(model: ModelOutline, processes: int) -> None:
    """Raises ParameterError where this model cannot be cut for so many."""
    if not model.plan or model.config.get("is_encoder_decoder"):
        raise ParameterError(
            tr("transformers has no plan by which {model} is shared among processes.").format(model=model.folder.name),
            tr("Choose storyteller."),
            "model",
        )
    heads = model.shape.kv_heads
    if heads % processes:
        raise ParameterError(
            tr("Its {heads} attention heads cannot be shared evenly by {count} processes.").format(
                heads=heads, count=processes
            ),
            tr("Take fewer processes, or another model."),
            "processes",
        )


def rank_parts(model: ModelOutline, processes: int) -> tuple[Parts, ...]:
    """Parts of each rank: matrices are cut, norms are whole everywhere."""
    return tuple(_rank_states(model, processes, rank) for rank in range(processes))


def step_traffic(model: ModelOutline, processes: int, tokens: int) -> int:
    """Bytes that a rank sends in a step of training: sums of hidden states [tokens, width], an all-reduce counted
    twice, and every token's logits gathered from all."""
    shape = model.shape
    sums = (FORWARD_REDUCES + BACKWARD_REDUCES) * shape.layers + 1 + model.is_tied
    return _sent(
        processes, FLOAT_BYTES * (2 * sums * tokens * shape.width + tokens * _padded_size(shape.vocabulary, processes))
    )


def paper_traffic(model: ModelOutline, processes: int, tokens: int) -> int:
    """The same by Megatron-LM's count, for the layers alone."""
    return _sent(processes, FLOAT_BYTES * 2 * MEGATRON_REDUCES * model.shape.layers * tokens * model.shape.width)


def generation_traffic(model: ModelOutline, processes: int) -> int:
    """Bytes that a rank sends while text is written: the prompt at once, then word by word."""
    shape, rows = model.shape, PROMPT_TOKENS + GENERATED_TOKENS - 1
    sums = FORWARD_REDUCES * shape.layers + model.is_tied
    return _sent(
        processes,
        FLOAT_BYTES * (2 * sums * rows * shape.width + GENERATED_TOKENS * _padded_size(shape.vocabulary, processes)),
    )


def _sent(processes: int, amount: int) -> int:
    return amount if processes > 1 else 0


def _padded_size(count: int, processes: int) -> int:
    """A dimension when the shares of all are put together, the shorter ones filled up."""
    return -(-count // processes) * processes


def _rank_states(model: ModelOutline, processes: int, rank: int) -> Parts:
    counts = [_local_numbers(name, size, model, processes, rank) for name, size in model.tensor_sizes.items()]
    whole = FLOAT_BYTES * sum(counts)
    return Parts(whole, whole, adam_bytes(sum(counts), len(counts)))


def _local_numbers(name: str, size: TensorSize, model: ModelOutline, processes: int, rank: int) -> int:
    style = model.style(name)
    if style not in (*_OUTPUT_STYLES, *_INPUT_STYLES):
        return prod(size)
    place = 0 if style in _OUTPUT_STYLES else 1
    rows = -(-size[place] // processes)
    mine = max(0, min(size[place] - rank * rows, rows))
    return prod(size) // size[place] * mine
