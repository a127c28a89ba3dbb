"""The memory and traffic expected of every rank, for every scheme, to the byte. Imports no torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from core.errors import ParameterError
from core.labs.scale.model_shape import Shape
from core.labs.scale.pipeline_schedule import SCHEDULE_KINDS, Options, max_versions
from core.labs.scale.ranks.model_outline import ModelOutline, TensorSize, count_numbers
from core.labs.scale.zero_states import SCHEMES, Parts, traffic
from resources.language import tr

FLOAT_BYTES = 4
"""Bytes of a number, and of the step counter that AdamW keeps for each tensor."""


def predicted_parts(sizes: Sequence[TensorSize], processes: int, scheme: str) -> tuple[Parts, ...]:
    """Parts of each rank, from the sizes of the model's tensors."""
    whole = [prod(size) for size in sizes]
    return tuple(_rank_parts(sizes, whole, processes, scheme, rank) for rank in range(processes))


def predicted_traffic(sizes: Sequence[TensorSize], processes: int, scheme: str) -> int:
    """Bytes that a rank sends in a step: ZeRO's counts of what the engines do. torch's ZeRO-1 reduces all gradients
    everywhere and then hands out parameters: Φ more than the paper's."""
    whole = sum(prod(size) for size in sizes)
    padded = sum(_rows_per_rank(size[0], processes) * processes * prod(size[1:]) for size in sizes)
    times = {"ddp": 2 * whole, "zero1": 3 * whole, "zero2": 2 * padded, "zero3": 3 * padded}
    return FLOAT_BYTES * times[scheme]


def _rank_parts(sizes: Sequence[TensorSize], counts: Sequence[int], processes: int, scheme: str, rank: int) -> Parts:
    everything = FLOAT_BYTES * sum(counts)
    if scheme in ("ddp", "zero1"):
        mine = counts if scheme == "ddp" else _assign_tensors(counts, processes)[rank]
        return Parts(everything, everything, adam_bytes(sum(mine), len(mine)))
    share = sum(_rank_rows(size[0], processes, rank) * prod(size[1:]) for size in sizes)
    optimizer = adam_bytes(share, len(sizes))
    if scheme == "zero2":  # the engine keeps its own share beside the gathered whole; alone, the share is the whole
        return Parts(everything, FLOAT_BYTES * share, optimizer, buffers=FLOAT_BYTES * share if processes > 1 else 0)
    return Parts(FLOAT_BYTES * share, FLOAT_BYTES * share, optimizer)


def adam_bytes(count: int, tensors: int) -> int:
    """Momentum, variance, and a counter for each tensor."""
    return FLOAT_BYTES * (2 * count + tensors)


def _assign_tensors(counts: Sequence[int], processes: int) -> list[list[int]]:
    """Whole tensors, the largest first, each to the rank that has least: as `ZeroRedundancyOptimizer` does."""
    ranks: list[list[int]] = [[] for _ in range(processes)]
    for count in sorted(counts, reverse=True):
        min(ranks, key=sum).append(count)
    return ranks


def _rows_per_rank(count: int, processes: int) -> int:
    """Rows of the fullest share: the first dimension is cut as `torch.chunk` does."""
    return -(-count // processes)


def _rank_rows(count: int, processes: int, rank: int) -> int:
    rows = _rows_per_rank(count, processes)
    return max(0, min(count - rank * rows, rows))


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


PIPELINES = SCHEDULE_KINDS
RUNS = (*SCHEMES, "tensor", *PIPELINES)
"""What `measure` can run."""
PIPELINE_LENGTH = 64
"""Tokens of each micro-batch of a pipeline."""
TEXT_LENGTH = 32
"""Tokens of each text elsewhere."""


@dataclass(frozen=True)
class ExpectedLoad:
    """By rank: bytes held, bytes sent a step. `paper_traffic`: bytes sent as ZeRO's paper has them, or Megatron-LM's; 0 where
    neither says anything."""

    ranks: tuple[Parts, ...]
    traffic: tuple[int, ...]
    paper_traffic: int = 0
    is_untied: bool = False
    """Whether tables that the model ties learn apart."""
    generation_traffic: int = 0
    """Bytes that a rank sends while text is written."""


def expected_load(model: ModelOutline, scheme: str, processes: int, options: Options) -> ExpectedLoad:
    """The formulas. Raises ParameterError for what cannot be run so."""
    if scheme in PIPELINES:
        return _pipeline_load(model, scheme, processes, options)
    if scheme == "tensor":
        return _tensor_parallel_load(model, processes)
    each = predicted_traffic(model.sizes, processes, scheme) if processes > 1 else 0
    paper = traffic(FLOAT_BYTES * count_numbers(model.sizes), processes, scheme)
    return ExpectedLoad(predicted_parts(model.sizes, processes, scheme), (each,) * processes, paper)


def _tensor_parallel_load(model: ModelOutline, processes: int) -> ExpectedLoad:
    check_divisible(model, processes)
    each = step_traffic(model, processes, TEXT_LENGTH)
    paper = paper_traffic(model, processes, TEXT_LENGTH)
    written = generation_traffic(model, processes)
    return ExpectedLoad(rank_parts(model, processes), (each,) * processes, paper, generation_traffic=written)


def text_length(scheme: str) -> int:
    """Tokens of a text."""
    return PIPELINE_LENGTH if scheme in PIPELINES else TEXT_LENGTH


def _pipeline_load(model: ModelOutline, scheme: str, stages: int, options: Options) -> ExpectedLoad:
    micro_batches = options.micro_batches
    if scheme == "1f1b" and micro_batches < stages:
        raise ParameterError(
            tr("1F1B needs at least as many micro-batches as stages: {count} are fewer than {stages}.").format(
                count=micro_batches, stages=stages
            ),
            tr("Take more micro-batches, or fewer processes."),
            "micro_batches",
        )
    cut = model.stages(stages)
    ranks = (_stage_parts(model, scheme, stage, cut, options) for stage in range(stages))
    sums = scheme != "pipedream" and model.is_tied  # PipeDream has no moment for it: its tables part
    handed = (_stage_traffic(model, stage, stages, micro_batches, sums) for stage in range(stages))
    return ExpectedLoad(tuple(ranks), tuple(handed), is_untied=stages > 1 and model.is_tied and not sums)


def _stage_parts(
    model: ModelOutline, scheme: str, stage: int, cut: Sequence[Sequence[TensorSize]], options: Options
) -> Parts:
    """States of one stage's tensors, and what its micro-batches under way leave behind."""
    sizes, count_of = cut[stage], options.micro_batches
    under_way = count_of if scheme == "gpipe" else min(len(cut) - stage, count_of)
    kept = stage_bytes(
        model.shape, PIPELINE_LENGTH, stage, len(cut),
        micro_batches=count_of, in_flight=under_way, recompute=options.recompute and scheme != "pipedream",
    )  # fmt: skip
    whole = FLOAT_BYTES * count_numbers(sizes)
    if scheme == "pipedream":  # plain descent, which keeps nothing beside
        others = max_versions(len(cut), count_of, options.weights)[stage] - 1
        return Parts(whole, whole, 0, kept, others * whole)
    return Parts(whole, whole, adam_bytes(count_numbers(sizes), len(sizes)), kept)


def _stage_traffic(model: ModelOutline, stage: int, stages: int, micro_batches: int, sums: bool) -> int:
    """Bytes that a stage sends: activations on, gradients back, and, where it `sums`, the gradient of a table that two
    stages have."""
    shape = model.shape
    neighbours = (stage > 0) + (stage < stages - 1)
    shares = sums and stages > 1 and stage in (0, stages - 1)
    table = shape.table_parameters if shares else 0
    return FLOAT_BYTES * (neighbours * micro_batches * PIPELINE_LENGTH * shape.width + table)
