"""What a measure is, and the table of all of them."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from core import words

Number = int | float
MeasureValue = Number | str | None
"""None: this run has no such figure."""
FORMATS: Mapping[str, Callable[[float], str]] = {
    "count": lambda value: f"{value:,.0f}",
    "place": lambda value: f"{value + 1:,.0f}",
    "share": words.percent,
    "decimal": lambda value: f"{value:.6g}",
    "degree": lambda value: words.decimal(value, 2),
    "bits": lambda value: words.decimal(value, 1),
    "bytes": words.size,
}
"""How each kind of number is written; a place is counted from 1."""
RELATIONS: Mapping[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
}


class TourNumber(NamedTuple):
    """A value and what kind of figure it is: one of `FORMATS`, or `token` for a token's own text."""

    value: MeasureValue
    kind: str

    @property
    def text(self) -> str:
        """As it stands in a sentence; empty where there is none."""
        if self.value is None:
            return ""
        if isinstance(self.value, str):
            return words.quote(self.value) if self.kind == "token" else self.value
        return FORMATS[self.kind](self.value)


MeasureFunction = Callable[..., MeasureValue]
MEASURES: dict[str, TourMeasure] = {}


@dataclass(frozen=True, slots=True)
class TourMeasure:
    """`compute(run, …)` gives the figure; `kind` says how it is written (`app.state.tours.measures.measure`)."""

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
