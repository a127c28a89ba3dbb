"""Arithmetic expressions as data: sizes that depend on the length of a text. `core.explain.sizes` formats them."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from fractions import Fraction


@dataclass(frozen=True, slots=True)
class NamedNumber:
    """A number, with a name if it has a meaning."""

    value: int
    name: str = ""


@dataclass(frozen=True, slots=True)
class Length:
    """The number of tokens of the text."""


@dataclass(frozen=True, slots=True)
class RemainderOf:
    """The remainder of the text's length after whole blocks of `block` tokens."""

    block: int
    name: str


@dataclass(frozen=True, slots=True)
class SumOf:
    """The sum of all parts."""

    parts: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class ProductOf:
    """The product of all factors."""

    factors: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class DifferenceOf:
    """`whole` − `part`."""

    whole: Term
    part: Term


@dataclass(frozen=True, slots=True)
class QuotientOf:
    """`whole` ÷ `by`."""

    whole: Term
    by: Term


@dataclass(frozen=True, slots=True)
class MinimumOf:
    """The smaller of two terms."""

    one: Term
    other: Term


Term: TypeAlias = NamedNumber | Length | RemainderOf | SumOf | ProductOf | DifferenceOf | QuotientOf | MinimumOf
NOTHING = SumOf(())


def evaluate_exactly(term: Term, length: int) -> Fraction:
    """Evaluate the term for a text of `length` tokens."""
    from fractions import Fraction  # slow to import, and not needed to open the window

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
    """Evaluate the term, rounded down to an integer."""
    return int(evaluate_exactly(term, length))
