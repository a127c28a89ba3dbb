"""What every rank is to hold and to send, whichever scheme it is run by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from core.errors import ParameterError
from core.labs.scale.memory_parts import Parts
from core.labs.scale.pipeline_options import Options
from core.labs.scale.pipeline_schedule import KINDS, most_versions
from core.labs.scale.ranks import activations, tensor_parallel_load
from core.labs.scale.ranks.model_outline import Outline, Size, count
from core.labs.scale.ranks.predicted_bytes import FLOAT, adam, predicted, sent
from core.labs.scale.zero_states import SCHEMES, traffic
from resources.language import tr

PIPELINES = KINDS
RUNS = (*SCHEMES, "tensor", *PIPELINES)
"""What `measure` can run."""
PIPELINE_LENGTH = 64
"""Tokens of each micro-batch of a pipeline."""
LENGTH = 32
"""Tokens of each text elsewhere."""


@dataclass(frozen=True)
class ExpectedLoad:
    """By rank: bytes held, bytes sent a step. `paper`: bytes sent as ZeRO's paper has them, or Megatron-LM's; 0 where
    neither says anything."""

    ranks: tuple[Parts, ...]
    traffic: tuple[int, ...]
    paper: int = 0
    parted: bool = False
    """Whether tables that the model ties learn apart."""
    written: int = 0
    """Bytes that a rank sends while text is written."""


def expected(model: Outline, scheme: str, processes: int, options: Options) -> ExpectedLoad:
    """The formulas. Raises ParameterError for what cannot be run so."""
    if scheme in PIPELINES:
        return _pipeline(model, scheme, processes, options)
    if scheme == "tensor":
        return _tensor(model, processes)
    each = sent(model.sizes, processes, scheme) if processes > 1 else 0
    paper = traffic(FLOAT * count(model.sizes), processes, scheme)
    return ExpectedLoad(predicted(model.sizes, processes, scheme), (each,) * processes, paper)


def _tensor(model: Outline, processes: int) -> ExpectedLoad:
    tensor_parallel_load.check(model, processes)
    each = tensor_parallel_load.step_traffic(model, processes, LENGTH)
    paper = tensor_parallel_load.paper_traffic(model, processes, LENGTH)
    written = tensor_parallel_load.written_traffic(model, processes)
    return ExpectedLoad(tensor_parallel_load.states(model, processes), (each,) * processes, paper, written=written)


def length(scheme: str) -> int:
    """Tokens of a text."""
    return PIPELINE_LENGTH if scheme in PIPELINES else LENGTH


def _pipeline(model: Outline, scheme: str, stages: int, options: Options) -> ExpectedLoad:
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
    ranks = (_staged(model, scheme, stage, cut, options) for stage in range(stages))
    sums = scheme != "pipedream" and model.is_tied  # PipeDream has no moment for it: its tables part
    handed = (_handed(model, stage, stages, micro_batches, sums) for stage in range(stages))
    return ExpectedLoad(tuple(ranks), tuple(handed), parted=stages > 1 and model.is_tied and not sums)


def _staged(model: Outline, scheme: str, stage: int, cut: Sequence[Sequence[Size]], options: Options) -> Parts:
    """States of one stage's tensors, and what its micro-batches under way leave behind."""
    sizes, count_of = cut[stage], options.micro_batches
    under_way = count_of if scheme == "gpipe" else min(len(cut) - stage, count_of)
    kept = activations.stage(
        model.shape, PIPELINE_LENGTH, stage, len(cut),
        micro_batches=count_of, under_way=under_way, recompute=options.recompute and scheme != "pipedream",
    )  # fmt: skip
    whole = FLOAT * count(sizes)
    if scheme == "pipedream":  # plain descent, which keeps nothing beside
        others = most_versions(len(cut), count_of, options.weights)[stage] - 1
        return Parts(whole, whole, 0, kept, others * whole)
    return Parts(whole, whole, adam(count(sizes), len(sizes)), kept)


def _handed(model: Outline, stage: int, stages: int, micro_batches: int, sums: bool) -> int:
    """Bytes that a stage sends: activations on, gradients back, and, where it `sums`, the gradient of a table that two
    stages have."""
    shape = model.shape
    neighbours = (stage > 0) + (stage < stages - 1)
    shares = sums and stages > 1 and stage in (0, stages - 1)
    table = shape.table_parameters if shares else 0
    return FLOAT * (neighbours * micro_batches * PIPELINE_LENGTH * shape.width + table)
