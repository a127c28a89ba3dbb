"""A sentence that knows where its figures stand, so that a view can make them stand out without reading it.

What it says is a `Saying`: one claim, worded for each depth, each a whole sentence that can be translated.
"""

from __future__ import annotations

from collections.abc import Iterable
from string import Formatter
from typing import NamedTuple

from resources import depth
from resources.language import tr

_NARROW = ("%", "−")
_CLOSING = "。！？；："
"""Punctuation that needs no space behind it."""


class SentenceNumber(str):
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

    def __reduce__(self) -> tuple[object, ...]:
        return Sentence, (str(self), self.figures)


class Saying(NamedTuple):
    """One claim in the words of each depth, marked for translation; its places have names."""

    plain: str
    usual: str
    exact: str

    def words(self, **values: str) -> Sentence:
        """In the depth and language of now, with `values` in the places it has; others are left out."""
        return fill(tr(depth.pick(*self)), **values)

    def say(self, **values: str) -> Sentence:
        """`words`, beginning with a capital letter."""
        return capitalize(self.words(**values))


def format_sentence(template: str, *values: str, **named: str) -> Sentence:
    """`fill`, beginning with a capital letter."""
    return capitalize(fill(template, *values, **named))


def capitalize(sentence: Sentence) -> Sentence:
    """The same, beginning with a capital letter."""
    return Sentence(sentence[:1].upper() + sentence[1:], sentence.figures)


def fill(template: str, *values: str, **named: str) -> Sentence:
    """The template with `values` in place of its `{}`, in order, and `named` in those with a name; figures in them go
    along."""
    given = iter(values)
    parts: list[str] = []
    for literal, name, _, _ in Formatter().parse(template):
        if literal:
            parts.append(literal)
        if name is not None:
            parts.append(named[name] if name else next(given))
    return _join((part, _script_gap(part, behind)) for part, behind in zip(parts, [*parts[1:], ""], strict=True))


def _script_gap(part: str, behind: str) -> str:
    """A space where Chinese meets Latin letters or digits: which does, is known only once the places are filled."""
    one, other = part[-1:], behind[:1]
    wide, narrow = (one, other) if _is_han(one) else (other, one)
    return " " if _is_han(wide) and (narrow in _NARROW or (narrow.isascii() and narrow.isalnum())) else ""


def _is_han(letter: str) -> bool:
    return "\u4e00" <= letter <= "\u9fff"


def together(*sentences: str) -> Sentence:
    """Sentences in a row, with a space between where the script has one; empty ones are left out."""
    return _join((sentence, "" if sentence[-1] in _CLOSING else " ") for sentence in sentences if sentence)


def _join(parts: Iterable[tuple[str, str]]) -> Sentence:
    """Parts, each with what stands between it and the next."""
    text, between = "", ""
    figures: list[tuple[int, int]] = []
    for part, behind in parts:
        text += between
        if isinstance(part, Sentence):
            figures += [(len(text) + one, len(text) + other) for one, other in part.figures]
        elif isinstance(part, SentenceNumber):
            figures.append((len(text), len(text) + len(part)))
        text, between = text + part, behind
    return Sentence(text, figures)
