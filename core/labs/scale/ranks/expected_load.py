"""What every rank is to hold and to send, whichever scheme it is run by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from core.errors import ParameterError
from core.labs.scale.memory_parts import Parts
from core.labs.scale.pipeline_options import Options
from core.labs.scale.pipeline_schedule import SCHEDULE_KINDS, max_versions
from core.labs.scale.ranks import activations, tensor_parallel_load
from core.labs.scale.ranks.model_outline import ModelOutline, TensorSize, count_numbers
from core.labs.scale.ranks.predicted_bytes import FLOAT_BYTES, adam_bytes, predicted_parts, predicted_traffic
from core.labs.scale.zero_states import SCHEMES, traffic
from resources.language import tr

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
    tensor_parallel_load.check_divisible(model, processes)
    each = tensor_parallel_load.step_traffic(model, processes, TEXT_LENGTH)
    paper = tensor_parallel_load.paper_traffic(model, processes, TEXT_LENGTH)
    written = tensor_parallel_load.generation_traffic(model, processes)
    return ExpectedLoad(
        tensor_parallel_load.rank_parts(model, processes), (each,) * processes, paper, generation_traffic=written
    )


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
    kept = activations.stage_bytes(
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
