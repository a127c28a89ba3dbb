"""Measures of tours and the table of all of them."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import Any, NamedTuple

from decodescope.core import words

Number = int | float
MeasureValue = Number | str | None
"""None: the run lacks this number."""
FORMATS: Mapping[str, Callable[[float], str]] = {
    "count": lambda value: f"{value:,.0f}",
    "place": lambda value: f"{value + 1:,.0f}",
    "share": words.percent,
    "ratio": partial(words.percent, is_exact=True),
    "decimal": lambda value: f"{value:.6g}",
    "degree": lambda value: words.decimal(value, 2),
    "bits": lambda value: words.decimal(value, 1),
    "bytes": words.size,
}
"""Format of each kind of number; indices are shown counted from 1. A share is a probability, which may be rounded; a
ratio is one of counts, and exact.
"""
RELATIONS: Mapping[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
}


class TourNumber(NamedTuple):
    """A value and its kind: one of `FORMATS`, or `token` for the text of a token."""

    value: MeasureValue
    kind: str

    @property
    def text(self) -> str:
        """The value as text for a sentence; empty if there is none."""
        if self.value is None:
            return ""
        if isinstance(self.value, str):
            return words.quote(self.value) if self.kind == "token" else self.value
        return FORMATS[self.kind](self.value)


MeasureFunction = Callable[..., MeasureValue]
MEASURES: dict[str, TourMeasure] = {}


@dataclass(frozen=True, slots=True)
class TourMeasure:
    """A measure: `compute(run, …)` computes the value; `kind` is its number format (`FORMATS`)."""

    compute: MeasureFunction
    kind: str
    run_count: int = 1
    """Number of runs it needs; these are the first arguments, followed by any others."""
    may_be_missing: bool = False
    """Whether the value can be missing for some runs."""


def measure(kind: str, runs: int = 1, may_be_missing: bool = False) -> Callable[[MeasureFunction], MeasureFunction]:
    """Register a function as a measure under its own name."""

    def put(take: MeasureFunction) -> MeasureFunction:
        MEASURES[take.__name__] = TourMeasure(take, kind, runs, may_be_missing)
        return take

    return put


def measure_parts(find: Callable[..., Any], **parts: tuple[str, str | Callable[[Any], MeasureValue]]) -> None:
    """Register measures of what `find(run, …)` returns: each a kind, and an attribute or a function."""
    for name, (kind, part) in parts.items():
        take = attrgetter(part) if isinstance(part, str) else part
        MEASURES[name] = TourMeasure(partial(_measure_part, find, take), kind, may_be_missing=True)


def _measure_part(find: Callable[..., Any], take: Callable[[Any], MeasureValue], *inputs: Any) -> MeasureValue:
    found = find(*inputs)
    return None if found is None else take(found)
