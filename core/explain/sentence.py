"""A sentence that knows where its figures stand, so that a view can make them stand out without reading it."""

from __future__ import annotations

from collections.abc import Iterable
from string import Formatter
from typing import Any


class Figure(str):
    """A number in words that a reader looks for first: `31 %`, `14 of 2,048`."""

    __slots__ = ()


class Sentence(str):
    """Plain words; `figures` are the stretches [start, stop) of it that are figures."""

    __slots__ = ("figures",)
    figures: tuple[tuple[int, int], ...]

    def __new__(cls, text: str = "", figures: Iterable[tuple[int, int]] = ()) -> Sentence:
        made = super().__new__(cls, text)
        made.figures = tuple(figures)
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return Sentence, (str(self), self.figures)


def say(template: str, *values: str) -> Sentence:
    """`fill`, beginning with a capital letter."""
    told = fill(template, *values)
    return Sentence(told[:1].upper() + told[1:], told.figures)


def fill(template: str, *values: str) -> Sentence:
    """The template with `values` in place of its `{}`, in order; figures in them go along."""
    given = iter(values)
    parts: list[str] = []
    for literal, name, _, _ in Formatter().parse(template):
        parts.append(literal)
        if name is not None:
            parts.append(next(given))
    return _join(parts, "")


def together(*sentences: str) -> Sentence:
    """Sentences in a row; empty ones are left out."""
    return _join([sentence for sentence in sentences if sentence], " ")


def _join(parts: list[str], between: str) -> Sentence:
    figures: list[tuple[int, int]] = []
    start = 0
    for part in parts:
        if isinstance(part, Sentence):
            figures += [(start + one, start + other) for one, other in part.figures]
        elif isinstance(part, Figure):
            figures.append((start, start + len(part)))
        start += len(part) + len(between)
    return Sentence(between.join(parts), figures)
