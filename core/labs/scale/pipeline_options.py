"""How a pipeline is run, beside its kind and its processes."""

from __future__ import annotations

from dataclasses import dataclass

from core.arguments import check_text, check_truth
from core.errors import ParameterError
from core.labs.scale.integer_arguments import whole
from core.labs.scale.pipeline_schedule import WEIGHTS
from resources.language import tr

MOST_MICRO_BATCHES = 16


@dataclass(frozen=True)
class Options:
    """`recompute`: GPipe and 1F1B keep a stage's input alone and compute the rest again on the way back. `weights`:
    by which PipeDream goes back (one of `timetable.WEIGHTS`)."""

    micro_batches: int = 4
    recompute: bool = False
    weights: str = "stashed"

    def check(self) -> None:
        """Raises ParameterError."""
        if whole("micro_batches", self.micro_batches) > MOST_MICRO_BATCHES:
            raise ParameterError(
                tr("At most {most} micro-batches are run.").format(most=MOST_MICRO_BATCHES), parameter="micro_batches"
            )
        check_truth("recompute", self.recompute)
        check_text("weights", self.weights)
        if self.weights not in WEIGHTS:
            raise ParameterError(
                tr("There are no weights {name!r} to go back by.").format(name=self.weights),
                tr("Choose one of {names}.").format(names=", ".join(WEIGHTS)),
                "weights",
            )
