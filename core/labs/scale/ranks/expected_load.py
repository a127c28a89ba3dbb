"""The memory and traffic expected of every rank, for every scheme, to the byte. Imports no torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from decodescope.core.errors import ParameterError
from decodescope.core.labs.scale.model_shape import Shape
from decodescope.core.labs.scale.pipeline_schedule import SCHEDULE_KINDS, Options, max_versions
from decodescope.core.labs.scale.ranks.model_outline import ModelOutline, TensorSize, count_numbers
from decodescope.core.labs.scale.zero_states import SCHEMES, Parts, ring_share, traffic
from decodescope.resources.language import tr

FLOAT_BYTES = 4
"""Bytes of a float, and of the step counter that AdamW keeps for each tensor."""


def predicted_parts(sizes: Sequence[TensorSize], processes: int, scheme: str) -> tuple[Parts, ...]:
    """Return the parts of each rank, from the sizes of the model's tensors."""
    whole = [prod(size) for size in sizes]
    return tuple(_rank_parts(sizes, whole, processes, scheme, rank) for rank in range(processes))


def predicted_traffic(sizes: Sequence[TensorSize], processes: int, scheme: str) -> tuple[int, ...]:
    """Return the bytes that each rank sends in a step, for what the engines do, with rings.

    torch's ZeRO-1 reduces all gradients everywhere; then each rank's parameters are passed on from rank to rank, which
    is Φ more than in the paper, without the part of which a rank is the last receiver.
    """
    counts = [prod(size) for size in sizes]
    if scheme == "zero1" and processes > 1:
        shards = [sum(own) for own in _assign_tensors(counts, processes)]
        passed_on = (sum(counts) - shards[(rank + 1) % processes] for rank in range(processes))
        return tuple(FLOAT_BYTES * (ring_share(2 * sum(counts), processes) + part) for part in passed_on)
    padded = sum(_rows_per_rank(size[0], processes) * processes * prod(size[1:]) for size in sizes)
    times = {"ddp": 2 * sum(counts), "zero1": 0, "zero2": 2 * padded, "zero3": 3 * padded}
    return (FLOAT_BYTES * ring_share(times[scheme], processes),) * processes


def _rank_parts(sizes: Sequence[TensorSize], counts: Sequence[int], processes: int, scheme: str, rank: int) -> Parts:
    everything = FLOAT_BYTES * sum(counts)
    if scheme in ("ddp", "zero1"):
        mine = counts if scheme == "ddp" else _assign_tensors(counts, processes)[rank]
        return Parts(everything, everything, adam_bytes(sum(mine), len(mine)))
    share = sum(_rank_rows(size[0], processes, rank) * prod(size[1:]) for size in sizes)
    optimizer = adam_bytes(share, len(sizes))
    if (
        scheme == "zero2"
    ):  # the engine keeps its own shard beside the gathered tensors; in a single process the shard is the whole
        return Parts(everything, FLOAT_BYTES * share, optimizer, buffers=FLOAT_BYTES * share if processes > 1 else 0)
    return Parts(FLOAT_BYTES * share, FLOAT_BYTES * share, optimizer)


def adam_bytes(count: int, tensors: int) -> int:
    """Return the bytes of momentum, variance, and a counter for each tensor."""
    return FLOAT_BYTES * (2 * count + tensors)


def _assign_tensors(counts: Sequence[int], processes: int) -> list[list[int]]:
    """Assign whole tensors, the largest first, to the rank that has least, as `ZeroRedundancyOptimizer` does."""
    ranks: list[list[int]] = [[] for _ in range(processes)]
    for count in sorted(counts, reverse=True):
        min(ranks, key=sum).append(count)
    return ranks


def _rows_per_rank(count: int, processes: int) -> int:
    """Return the rows of the largest part: the first dimension is split as by `torch.chunk`."""
    return -(-count // processes)


def _rank_rows(count: int, processes: int, rank: int) -> int:
    rows = _rows_per_rank(count, processes)
    return max(0, min(count - rank * rows, rows))


NUMBER_BYTES, ID_BYTES = 4, 8
"""Bytes of a float, and of a token id."""


def layer_numbers_per_token(shape: Shape) -> int:
    """Return the saved numbers per token in one layer: two norms (input, root mean square, scaled input, output),
    queries, keys, values, attention output and log-sum-exp per head, and four of the MLP's width.
    """
    query, key = shape.heads * shape.head_width, shape.kv_heads * shape.head_width
    norms = 2 * (3 * shape.width + 1)
    return norms + 2 * query + 2 * key + shape.heads + 4 * shape.inner


def layer_bytes(shape: Shape, tokens: int, count: int) -> int:
    """Return the bytes of `count` layers, with the rotary embeddings once; their input is the first layer's."""
    return NUMBER_BYTES * tokens * (count * layer_numbers_per_token(shape) + 2 * shape.head_width)


def head_bytes(shape: Shape, tokens: int) -> int:
    """Return the bytes of the last norm and the loss: a log probability for each vocabulary entry, and their sum."""
    return NUMBER_BYTES * tokens * (3 * shape.width + 1 + shape.vocabulary) + NUMBER_BYTES


def stage_bytes(
    shape: Shape, tokens: int, number: int, stages: int, *, micro_batches: int, in_flight: int, recompute: bool
) -> int:
    """Return the maximum bytes on one stage with `in_flight` micro-batches between forward and backward.

    The input ids of the whole batch, and the target ids, are one tensor each.
    """
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
"""Number of prompt tokens and of generated tokens."""
_OUTPUT_STYLES, _INPUT_STYLES = ("colwise", "colwise_gather_output"), ("rowwise",)
"""transformers' styles by the dimension of a weight [out, in] that they split: outputs or inputs."""
FORWARD_REDUCES, BACKWARD_REDUCES, MEGATRON_REDUCES = 2, 5, 4
"""All-reduces per layer: forward after attention and after the MLP; backward for each matrix split by outputs (queries,
keys, values, and two of the MLP). Megatron-LM has two forward and two backward.
"""


def check_divisible(model: ModelOutline, processes: int) -> None:
    """Raise ParameterError if this model cannot be split over this number of processes."""
    if not model.plan or model.config.get("is_encoder_decoder"):
        raise ParameterError(
            tr("transformers has no tensor parallelism plan for {model}.").format(model=model.folder.name),
            tr("Choose storyteller."),
            "model",
        )
    heads = model.shape.kv_heads
    if heads % processes:
        raise ParameterError(
            tr("Its {heads} attention heads cannot be divided evenly among {count} processes.").format(
                heads=heads, count=processes
            ),
            tr("Use fewer processes, or another model."),
            "processes",
        )


def rank_parts(model: ModelOutline, processes: int) -> tuple[Parts, ...]:
    """Return the parts of each rank: matrices are split, norms are complete everywhere."""
    return tuple(_rank_states(model, processes, rank) for rank in range(processes))


def step_traffic(model: ModelOutline, processes: int, tokens: int) -> int:
    """Return the bytes that a rank sends in a training step.

    These are sums of hidden states [tokens, width], with an all-reduce counted twice, and the gathered logits of every
    token.
    """
    shape = model.shape
    sums = (FORWARD_REDUCES + BACKWARD_REDUCES) * shape.layers + 1 + model.is_tied
    whole = 2 * sums * tokens * shape.width + tokens * _padded_size(shape.vocabulary, processes)
    return FLOAT_BYTES * ring_share(whole, processes)


def paper_traffic(model: ModelOutline, processes: int, tokens: int) -> int:
    """Return the same by Megatron-LM's formula, for the layers alone."""
    whole = 2 * MEGATRON_REDUCES * model.shape.layers * tokens * model.shape.width
    return FLOAT_BYTES * ring_share(whole, processes)


def generation_traffic(model: ModelOutline, processes: int) -> int:
    """Return the bytes that a rank sends while generating: first the whole prompt, then token by token."""
    shape, rows = model.shape, PROMPT_TOKENS + GENERATED_TOKENS - 1
    sums = FORWARD_REDUCES * shape.layers + model.is_tied
    whole = 2 * sums * rows * shape.width + GENERATED_TOKENS * _padded_size(shape.vocabulary, processes)
    return FLOAT_BYTES * ring_share(whole, processes)


def _padded_size(count: int, processes: int) -> int:
    """Return the size of a gathered dimension, including padding of the shorter parts."""
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
"""Schemes that `measure` can run."""
PIPELINE_LENGTH = 64
"""Tokens of each micro-batch of a pipeline."""
TEXT_LENGTH = 32
"""Tokens of each text in other schemes."""


@dataclass(frozen=True)
class ExpectedLoad:
    """Expected bytes held and sent per step, by rank. `paper_traffic`: bytes sent according to the ZeRO or Megatron-LM
    paper, or 0 if neither gives a formula.
    """

    ranks: tuple[Parts, ...]
    traffic: tuple[int, ...]
    paper_traffic: int = 0
    is_untied: bool = False
    """Whether tied embeddings are trained separately."""
    generation_traffic: int = 0
    """Bytes that a rank sends while generating text."""


def expected_load(model: ModelOutline, scheme: str, processes: int, options: Options) -> ExpectedLoad:
    """Return the expected load of a scheme. Raises ParameterError for unsupported combinations."""
    if scheme in PIPELINES:
        return _pipeline_load(model, scheme, processes, options)
    if scheme == "tensor":
        return _tensor_parallel_load(model, processes)
    each = predicted_traffic(model.sizes, processes, scheme)
    paper = traffic(FLOAT_BYTES * count_numbers(model.sizes), processes, scheme)
    return ExpectedLoad(predicted_parts(model.sizes, processes, scheme), each, paper)


def _tensor_parallel_load(model: ModelOutline, processes: int) -> ExpectedLoad:
    check_divisible(model, processes)
    each = step_traffic(model, processes, TEXT_LENGTH)
    paper = paper_traffic(model, processes, TEXT_LENGTH)
    written = generation_traffic(model, processes)
    return ExpectedLoad(rank_parts(model, processes), (each,) * processes, paper, generation_traffic=written)


def text_length(scheme: str) -> int:
    """Return the number of tokens of a text."""
    return PIPELINE_LENGTH if scheme in PIPELINES else TEXT_LENGTH


def _pipeline_load(model: ModelOutline, scheme: str, stages: int, options: Options) -> ExpectedLoad:
    micro_batches = options.micro_batches
    if scheme == "1f1b" and micro_batches < stages:
        raise ParameterError(
            tr("1F1B needs at least as many micro-batches as stages, but {count} are fewer than {stages}.").format(
                count=micro_batches, stages=stages
            ),
            tr("Use more micro-batches or fewer processes."),
            "micro_batches",
        )
    cut = model.stages(stages)
    ranks = (_stage_parts(model, scheme, stage, cut, options) for stage in range(stages))
    sums = (
        scheme != "pipedream" and model.is_tied
    )  # PipeDream has no moment to sum the gradients, so its embeddings become untied
    handed = (_stage_traffic(model, stage, stages, micro_batches, sums) for stage in range(stages))
    return ExpectedLoad(tuple(ranks), tuple(handed), is_untied=stages > 1 and model.is_tied and not sums)


def _stage_parts(
    model: ModelOutline, scheme: str, stage: int, cut: Sequence[Sequence[TensorSize]], options: Options
) -> Parts:
    """Return the states of one stage's tensors and the activations of its micro-batches in flight."""
    sizes, count_of = cut[stage], options.micro_batches
    under_way = count_of if scheme == "gpipe" else min(len(cut) - stage, count_of)
    activation_bytes = stage_bytes(
        model.shape, PIPELINE_LENGTH, stage, len(cut),
        micro_batches=count_of, in_flight=under_way, recompute=options.recompute and scheme != "pipedream",
    )  # fmt: skip
    whole = FLOAT_BYTES * count_numbers(sizes)
    if scheme == "pipedream":  # plain SGD has no optimizer state
        others = max_versions(len(cut), count_of, options.weights)[stage] - 1
        return Parts(whole, whole, 0, activation_bytes, others * whole)
    return Parts(whole, whole, adam_bytes(count_numbers(sizes), len(sizes)), activation_bytes)


def _stage_traffic(model: ModelOutline, stage: int, stages: int, micro_batches: int, sums: bool) -> int:
    """Return the bytes that a stage sends: activations forward, gradients back, and, if it `sums`, the gradient of the
    tied embedding.
    """
    shape = model.shape
    neighbours = (stage > 0) + (stage < stages - 1)
    shares = sums and stages > 1 and stage in (0, stages - 1)
    table = shape.table_parameters if shares else 0
    return FLOAT_BYTES * (neighbours * micro_batches * PIPELINE_LENGTH * shape.width + table)
