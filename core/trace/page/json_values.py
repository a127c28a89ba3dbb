"""JSON values of a page, with no more digits than single precision."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from decodescope.core.explain.words import label
from decodescope.core.processors.pipeline_stages import stage_label

if TYPE_CHECKING:
    from decodescope.core.events import Stage

PageValues = dict[str, object]
SentenceParts = list[str]
"""A sentence split at its numbers: items at odd indices are numbers."""

_DIGITS = 7
"""Precision of single-precision floats."""


def rounded_number(value: float | None) -> float | None:
    """Round to seven digits; None for values without a number, including −∞. A probability below 1 never becomes 1."""
    if value is None or not math.isfinite(value):
        return None
    rounded = float(f"{value:.{_DIGITS}g}")
    return value if rounded == 1 != value else rounded


def sentence_parts(sentence: str, figures: tuple[tuple[int, int], ...]) -> SentenceParts:
    """Split the sentence at its numbers: string offsets differ in a browser."""
    found, done = [], 0
    for start, stop in figures:
        found += [sentence[done:start], sentence[start:stop]]
        done = stop
    return [*found, sentence[done:]]


class TokenTextTable:
    """Assigns a number to every token text; `labels` are the readable texts by number."""

    def __init__(self) -> None:
        self.labels: list[str] = []
        self._numbers: dict[tuple[str, bool | None], int] = {}

    def __call__(self, piece: str, special: bool | None = None) -> int:
        number = self._numbers.get((piece, special))
        if number is None:
            number = self._numbers[piece, special] = len(self.labels)
            self.labels.append(label(piece, special))
        return number


class StageTable:
    """Table of stage headings, each stored once; a step refers to them by index."""

    def __init__(self) -> None:
        self.headings: list[list[str]] = []
        self._numbers: dict[tuple[str, str], int] = {}

    def __call__(self, stage: Stage) -> int:
        key = (stage.name, stage.label)
        if key not in self._numbers:
            self._numbers[key] = len(self.headings)
            self.headings.append([stage_label(stage), stage.kind])
        return self._numbers[key]
