"""Arithmetic as data: a quantity that depends on the length of a text. `core.explain.sizes` spells it out."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from fractions import Fraction


@dataclass(frozen=True, slots=True)
class NamedNumber:
    """A number; with a name where it stands for something."""

    value: int
    name: str = ""


@dataclass(frozen=True, slots=True)
class Length:
    """Tokens of the text."""


@dataclass(frozen=True, slots=True)
class RemainderOf:
    """What whole blocks of so many tokens leave over of the text."""

    block: int
    name: str


@dataclass(frozen=True, slots=True)
class SumOf:
    """All parts together."""

    parts: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class ProductOf:
    """All factors by each other."""

    factors: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class DifferenceOf:
    """`whole` without `part`."""

    whole: Term
    part: Term


@dataclass(frozen=True, slots=True)
class QuotientOf:
    """`whole` divided by `by`."""

    whole: Term
    by: Term


@dataclass(frozen=True, slots=True)
class MinimumOf:
    """The smaller of two."""

    one: Term
    other: Term


Term: TypeAlias = NamedNumber | Length | RemainderOf | SumOf | ProductOf | DifferenceOf | QuotientOf | MinimumOf
NOTHING = SumOf(())


def evaluate_exactly(term: Term, length: int) -> Fraction:
    """The quantity for a text of that many tokens."""
    from fractions import Fraction  # takes as long to import as all of this file: the window opens without it

    match term:
        case NamedNumber(value=value):
            return Fraction(value)
        case Length():
            return Fraction(length)
        case RemainderOf(block=block):
            return Fraction(length % block)
        case SumOf(parts=parts):
            return sum((evaluate_exactly(part, length) for part in parts), Fraction(0))
        case ProductOf(factors=factors):
            return prod((evaluate_exactly(factor, length) for factor in factors), start=Fraction(1))
        case DifferenceOf(whole=whole, part=part):
            return evaluate_exactly(whole, length) - evaluate_exactly(part, length)
        case QuotientOf(whole=whole, by=by):
            return evaluate_exactly(whole, length) / evaluate_exactly(by, length)
        case MinimumOf(one=one, other=other):
            return min(evaluate_exactly(one, length), evaluate_exactly(other, length))


def evaluate(term: Term, length: int) -> int:
    """The same as a whole number, rounded down."""
    return int(evaluate_exactly(term, length))
