"""Arithmetic as data: a quantity that depends on the length of a text. `core.explain.sizes` spells it out."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from fractions import Fraction


@dataclass(frozen=True, slots=True)
class Figure:
    """A number; with a name where it stands for something."""

    value: int
    name: str = ""


@dataclass(frozen=True, slots=True)
class Length:
    """Tokens of the text."""


@dataclass(frozen=True, slots=True)
class Rest:
    """What whole blocks of so many tokens leave over of the text."""

    block: int
    name: str


@dataclass(frozen=True, slots=True)
class Sum:
    """All parts together."""

    parts: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class Product:
    """All factors by each other."""

    factors: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class Less:
    """`whole` without `part`."""

    whole: Term
    part: Term


@dataclass(frozen=True, slots=True)
class Share:
    """`whole` divided by `by`."""

    whole: Term
    by: Term


@dataclass(frozen=True, slots=True)
class Least:
    """The smaller of two."""

    one: Term
    other: Term


Term: TypeAlias = Figure | Length | Rest | Sum | Product | Less | Share | Least
NOTHING = Sum(())


def exactly(term: Term, length: int) -> Fraction:
    """The quantity for a text of that many tokens."""
    from fractions import Fraction  # takes as long to import as all of this file: the window opens without it

    match term:
        case Figure(value=value):
            return Fraction(value)
        case Length():
            return Fraction(length)
        case Rest(block=block):
            return Fraction(length % block)
        case Sum(parts=parts):
            return sum((exactly(part, length) for part in parts), Fraction(0))
        case Product(factors=factors):
            return prod((exactly(factor, length) for factor in factors), start=Fraction(1))
        case Less(whole=whole, part=part):
            return exactly(whole, length) - exactly(part, length)
        case Share(whole=whole, by=by):
            return exactly(whole, length) / exactly(by, length)
        case Least(one=one, other=other):
            return min(exactly(one, length), exactly(other, length))


def worked_out(term: Term, length: int) -> int:
    """The same as a whole number, rounded down."""
    return int(exactly(term, length))
