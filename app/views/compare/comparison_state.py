"""The comparisons of every kind, and which of them is under way. No Qt."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from app.state.comparison.results import Comparison
from app.state.run import Run
from app.state.worker_messages import RunRequest
from app.views.compare.comparison_kinds import KINDS


class ComparisonStore:
    """`active` is the kind that runs now; `is_measuring`: runs beside the shown one are under way, whosever."""

    def __init__(self) -> None:
        self.comparisons = {kind: Comparison() for kind, _ in KINDS}
        self.active: str | None = None
        self.is_measuring = False

    def begin(self, kind: str, comparison: Comparison, measure: Callable[[Sequence[RunRequest]], None]) -> None:
        """Compare these from now on; `measure` has what is to be run begun, which `set_measuring` then hears of."""
        self.active = kind
        self.comparisons[kind] = comparison
        measure(comparison.start())
        if not self.is_measuring:  # nothing was to be run, or another run is under way
            comparison.stop_remaining()
            self.active = None

    def set_measuring(self, on: bool) -> None:
        """Measuring begins or ends, for a comparison or for another view."""
        self.is_measuring = on
        if not on and self.active is not None:
            self.comparisons[self.active].stop_remaining()
            self.active = None

    def add_result(self, run: Run) -> bool:
        """Sort in a run that has ended; False when it is none of these."""
        return self.active is not None and self.comparisons[self.active].assign_result(run)

    def contains(self, run: Run | None) -> bool:
        """Whether that run is one of the results."""
        return any(comparison.entry_of(run) is not None for comparison in self.comparisons.values())
