"""How a pipeline is run, beside its kind and its processes."""

from __future__ import annotations

from dataclasses import dataclass

from core.arguments import check_bool, check_text
from core.errors import ParameterError
from core.labs.scale.integer_arguments import positive_integer
from core.labs.scale.pipeline_schedule import WEIGHT_POLICIES
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
        if positive_integer("micro_batches", self.micro_batches) > MOST_MICRO_BATCHES:
            raise ParameterError(
                tr("At most {most} micro-batches are run.").format(most=MOST_MICRO_BATCHES), parameter="micro_batches"
            )
        check_bool("recompute", self.recompute)
        check_text("weights", self.weights)
        if self.weights not in WEIGHT_POLICIES:
            raise ParameterError(
                tr("There are no weights {name!r} to go back by.").format(name=self.weights),
                tr("Choose one of {names}.").format(names=", ".join(WEIGHT_POLICIES)),
                "weights",
            )
