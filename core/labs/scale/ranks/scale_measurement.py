"""What came of a measurement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from core.labs.scale.memory_parts import Parts
from core.labs.scale.pipeline_options import Options
from core.labs.scale.pipeline_schedule import Box, schedule
from core.labs.scale.ranks.expected_load import PIPELINES, ExpectedLoad
from core.labs.scale.ranks.rank_messages import BytesCounted, SampledTexts


@dataclass(frozen=True)
class Measured:
    """What was counted in the last step, by rank, beside what was reckoned."""

    scheme: str
    ranks: tuple[Parts, ...]
    predicted: tuple[Parts, ...]
    traffic: tuple[int, ...]
    """Bytes that each rank sent, an all-reduce counted twice."""
    predicted_traffic: int
    """Of the engine that was used; of the rank that sends most."""
    paper_traffic: int
    """Of ZeRO's paper, or Megatron-LM's; 0 for what neither speaks of."""
    losses: tuple[float, ...]
    alone: tuple[float, ...]
    """The same steps by one process that reads all texts."""
    seconds: float
    expected_traffic: tuple[int, ...] = ()
    """By rank."""
    difference: float = 0.0
    """Of pipelines and tensor parallelism: the gradients' greatest difference from those of one process, as a share of
    the greatest."""
    boxes: tuple[Box, ...] = ()
    """Of pipelines: what each did in the last step, in milliseconds from its beginning, as the clock had it."""
    expected_boxes: tuple[Box, ...] = ()
    """The same by the schedule, from what one process takes, each stage its share."""
    weights: str = ""
    """Of PipeDream: by which it went back; one of `timetable.WEIGHTS`."""
    stray: float = 0.0
    """Of PipeDream: how far its gradients are from those of the weights that went forward, as a share of the
    greatest; 0 where it keeps these."""
    parted: bool = False
    """Whether tables that the model ties learned apart."""
    written: SampledTexts | None = None
    """Of tensor parallelism: the text, as the first rank had it."""
    expected_written: int = 0
    """Bytes that a rank was to send meanwhile."""

    @property
    def loss(self) -> float:
        """Of the last step."""
        return self.losses[-1]


def combine_counts(
    scheme: str, counted: Sequence[BytesCounted], expectation: ExpectedLoad, options: Options
) -> Measured:
    """Put together what the ranks have told, in their order."""
    return Measured(
        scheme,
        tuple(Parts(**rank.parts) for rank in counted),
        expectation.ranks,
        tuple(sum(rank.traffic.values()) for rank in counted),
        max(expectation.traffic),
        expectation.paper_traffic,
        tuple(next(rank.losses for rank in reversed(counted) if rank.losses)),
        tuple(counted[0].single_process_losses),
        max(rank.seconds for rank in counted),
        expectation.traffic,
        max(rank.difference for rank in counted),
        _shift_to_zero([box for rank in counted for box in rank.boxes]),
        _expected_schedule(scheme, len(counted), options, counted[0].costs) if scheme in PIPELINES else (),
        options.weights if scheme == "pipedream" else "",
        counted[0].unstashed_error,
        expectation.is_untied,
        counted[0].sampled_texts,
        expectation.generation_traffic,
    )


def _shift_to_zero(boxes: Sequence[Box]) -> tuple[Box, ...]:
    """On a clock that starts with the first of them."""
    begun = min((box.start for box in boxes), default=0.0)
    moved = (replace(box, start=round(box.start - begun, 2), stop=round(box.stop - begun, 2)) for box in boxes)
    return tuple(sorted(moved, key=lambda box: (box.start, box.stop, box.device)))


def _expected_schedule(
    scheme: str, stages: int, options: Options, costs: tuple[float, float, float]
) -> tuple[Box, ...]:
    """What the plan says, each stage taking its share of what one process takes."""
    forward, backward, update = (cost / stages for cost in costs)
    again = forward if options.recompute and scheme != "pipedream" else 0.0
    return schedule(
        stages, options.micro_batches, scheme, forward=forward, backward=backward + again, update=update,
        weights=options.weights,
    )  # fmt: skip
