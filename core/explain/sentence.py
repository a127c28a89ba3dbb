"""Sentences that record the positions of their numbers, so that a view can highlight them.

A `SentenceTemplate` states one fact, worded for each level of detail as a whole translatable sentence.
"""

from __future__ import annotations

from collections.abc import Iterable
from string import Formatter
from typing import NamedTuple

from decodescope.resources import depth
from decodescope.resources.language import start_sentence, tr

_NARROW = ("%", "−")
_CLOSING = "。！？；："
"""Punctuation that needs no space after it."""


class SentenceNumber(str):
    """A number or quantity to highlight in a sentence: `31 %`, `14 of 2,048`."""

    __slots__ = ()


class Sentence(str):
    """Plain text; `figures` are the ranges [start, stop) of its numbers."""

    __slots__ = ("figures",)
    figures: tuple[tuple[int, int], ...]

    def __new__(cls, text: str = "", figures: Iterable[tuple[int, int]] = ()) -> Sentence:
        made = super().__new__(cls, text)
        made.figures = tuple(figures)
        return made

    def __reduce__(self) -> tuple[object, ...]:
        return Sentence, (str(self), self.figures)


class SentenceTemplate(NamedTuple):
    """A sentence template for each level of detail, marked for translation, with named placeholders."""

    plain: str
    usual: str
    exact: str

    def words(self, **values: str) -> Sentence:
        """Fill the template for the current level of detail and language; unused `values` are ignored."""
        return fill(tr(depth.pick(*self)), **values)

    def say(self, **values: str) -> Sentence:
        """Fill the template and capitalize the result."""
        return capitalize(self.words(**values))


def capitalize(sentence: Sentence) -> Sentence:
    """Capitalize the first letter of a sentence that does not begin with a name."""
    return Sentence(start_sentence(sentence), sentence.figures)


def fill(template: str, *values: str, **named: str) -> Sentence:
    """Replace each `{}` of a template by the next of `values`, and named placeholders by `named`; ranges of numbers are
    kept.
    """
    given = iter(values)
    parts: list[str] = []
    for literal, name, _, _ in Formatter().parse(template):
        if literal:
            parts.append(literal)
        if name is not None:
            parts.append(named[name] if name else next(given))
    parts = [_without_gap(part, following) for part, following in zip(parts, [*parts[1:], ""], strict=True)]
    return _join((part, _script_gap(part, following)) for part, following in zip(parts, [*parts[1:], ""], strict=True))


def _script_gap(part: str, following: str) -> str:
    """Return the space between Chinese and Latin letters or digits: whether one is needed depends on the filled-in
    values.
    """
    one, other = part[-1:], following[:1]
    wide, narrow = (one, other) if _is_han(one) else (other, one)
    return " " if _is_han(wide) and (narrow in _NARROW or (narrow.isascii() and narrow.isalnum())) else ""


def _without_gap(part: str, following: str) -> str:
    """Drop a template's space between two Chinese letters: it stands before a value that is a number in most texts."""
    has_gap = type(part) is str and part.endswith(" ") and _is_han(part[-2:-1]) and _is_han(following[:1])
    return part[:-1] if has_gap else part


def _is_han(letter: str) -> bool:
    return "\u4e00" <= letter <= "\u9fff"


def together(*sentences: str) -> Sentence:
    """Join sentences, with spaces where the script uses them; skip empty ones."""
    return _join((sentence, "" if sentence[-1] in _CLOSING else " ") for sentence in sentences if sentence)


def _join(parts: Iterable[tuple[str, str]]) -> Sentence:
    """Join parts, each given with the separator that follows it."""
    text, between = "", ""
    figures: list[tuple[int, int]] = []
    for part, separator in parts:
        text += between
        if isinstance(part, Sentence):
            figures += [(len(text) + one, len(text) + other) for one, other in part.figures]
        elif isinstance(part, SentenceNumber):
            figures.append((len(text), len(text) + len(part)))
        text, between = text + part, separator
    return Sentence(text, figures)
