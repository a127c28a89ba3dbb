"""Values as a page has them: JSON, of no more digits than the model's own arithmetic has."""

from __future__ import annotations

import math

from core.explain.words import label

PageValues = dict[str, object]
SentenceParts = list[str]
"""A sentence: words, a figure, words, a figure …; what stands at odd places is a figure."""

_DIGITS = 7
"""As exact as single precision."""


def rounded_number(value: float | None) -> float | None:
    """`value` with seven digits; None for what has no number, −∞ among it. A share below 1 never becomes 1."""
    if value is None or not math.isfinite(value):
        return None
    rounded = float(f"{value:.{_DIGITS}g}")
    return value if rounded == 1 != value else rounded


def sentence_parts(sentence: str, figures: tuple[tuple[int, int], ...]) -> SentenceParts:
    """The sentence cut at its figures: places in a text are counted otherwise in a browser."""
    found, done = [], 0
    for start, stop in figures:
        found += [sentence[done:start], sentence[start:stop]]
        done = stop
    return [*found, sentence[done:]]


class TokenTextTable:
    """Gives every token's text a number; `labels` are the texts by that number, made to be read."""

    def __init__(self) -> None:
        self.labels: list[str] = []
        self._numbers: dict[tuple[str, bool | None], int] = {}

    def __call__(self, piece: str, special: bool | None = None) -> int:
        number = self._numbers.get((piece, special))
        if number is None:
            number = self._numbers[piece, special] = len(self.labels)
            self.labels.append(label(piece, special))
        return number
