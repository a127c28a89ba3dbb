"""What a measure is, and the table of all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from app.state.tours.tour_numbers import MeasureValue

MeasureFunction = Callable[..., MeasureValue]
MEASURES: dict[str, TourMeasure] = {}


@dataclass(frozen=True, slots=True)
class TourMeasure:
    """`compute(run, …)` gives the figure; `kind` says how it is written (`app.state.tours.tour_numbers`)."""

    compute: MeasureFunction
    kind: str
    run_count: int = 1
    """How many runs it is taken of; they come first, what else it needs behind them."""
    may_be_missing: bool = False
    """Whether there are runs that have no such figure."""


def measure(kind: str, runs: int = 1, may_be_missing: bool = False) -> Callable[[MeasureFunction], MeasureFunction]:
    """Puts a function into the table, by its own name."""

    def put(take: MeasureFunction) -> MeasureFunction:
        MEASURES[take.__name__] = TourMeasure(take, kind, runs, may_be_missing)
        return take

    return put
