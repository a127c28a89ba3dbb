"""Format a predicted size as an expression of named factors or of numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import partial
from typing import Any, get_args

from decodescope.core.common.size_terms import (
    DifferenceOf,
    Length,
    MinimumOf,
    NamedNumber,
    ProductOf,
    QuotientOf,
    RemainderOf,
    SumOf,
    Term,
    evaluate_exactly,
)
from decodescope.resources.language import trc

LeafFormatter = Callable[[NamedNumber | Length | RemainderOf], str]


def named_number(term: Term, name: str) -> int | None:
    """Return the number of that name in a term; None if it has none."""
    if isinstance(term, NamedNumber):
        return term.value if term.name == name else None
    parts = [getattr(term, field.name) for field in fields(term)]
    inner: list[Any] = [one for part in parts for one in (part if isinstance(part, tuple) else (part,))]
    found = (named_number(one, name) for one in inner if isinstance(one, get_args(Term)))
    return next((value for value in found if value is not None), None)


def format_names(term: Term) -> str:
    """Format with names: `2 · head width · batch · length · layers`; empty for an empty term."""
    return _format_term(term, partial(_name, names=_factor_names()))


def format_numbers(term: Term, length: int) -> str:
    """Format with the numbers for a text of `length` tokens: `2 · 8 · 1 · 36 · 4`."""
    return _format_term(term, partial(_number, length=length))


def is_constant(term: Term) -> bool:
    """Return whether the term is a constant."""
    return isinstance(term, NamedNumber)


def _format_term(term: Term, leaf: LeafFormatter) -> str:
    match term:
        case NamedNumber() | Length() | RemainderOf():
            return leaf(term)
        case SumOf(parts=parts):
            return " + ".join(_format_term(part, leaf) for part in parts)
        case ProductOf(factors=factors):
            return " · ".join(_parenthesized(factor, leaf) for factor in factors)
        case DifferenceOf(whole=whole, part=part):
            return f"{_format_term(whole, leaf)} − {_parenthesized(part, leaf)}"
        case QuotientOf(whole=whole, by=by):
            return f"{_parenthesized(whole, leaf)} ÷ {_parenthesized(by, leaf)}"
        case MinimumOf(one=one, other=other):
            return f"min({_format_term(one, leaf)}, {_format_term(other, leaf)})"


def _parenthesized(term: Term, leaf: LeafFormatter) -> str:
    """Format a term, in parentheses where precedence requires them."""
    text = _format_term(term, leaf)
    several = isinstance(term, DifferenceOf) or (isinstance(term, SumOf) and len(term.parts) > 1)
    return f"({text})" if several else text


def _name(leaf: NamedNumber | Length | RemainderOf, names: dict[str, str]) -> str:
    match leaf:
        case NamedNumber(value=value, name=name):
            return _translated_name(name, names) if name else _grouped(value)
        case Length():
            return names["length"]
        case RemainderOf(name=name):
            return _translated_name(name, names)


def _translated_name(name: str, names: dict[str, str]) -> str:
    """Translate a factor's name; a second kind of layers is numbered: `kv heads 2`."""
    plain, _, number = name.rpartition(" ")
    return f"{names[plain]} {number}" if plain in names and number.isdigit() else names.get(name, name)


def _factor_names() -> dict[str, str]:
    """Return the translated names of factors, by the names used in events."""
    return {
        "batch": trc("a factor", "batch"), "buffer": trc("a factor", "buffer"),
        "buffered": trc("a factor", "buffered"), "compression": trc("a factor", "compression"),
        "entry": trc("a factor", "entry"), "overlap": trc("a factor", "overlap"),
        "bits": trc("a factor", "bits"), "bytes": trc("a factor", "bytes"),
        "counter": trc("a factor", "counter"), "exact": trc("a factor", "unquantized"),
        "full layers": trc("a factor", "full layers"), "head width": trc("a factor", "head size"),
        "index": trc("a factor", "index"), "key group": trc("a factor", "key group"),
        "key width": trc("a factor", "key size"), "kv heads": trc("a factor", "kv heads"),
        "layers": trc("a factor", "layers"), "length": trc("a factor", "length"), "room": trc("a factor", "capacity"),
        "source": trc("a factor", "source"), "states": trc("a factor", "states"),
        "value group": trc("a factor", "value group"), "value width": trc("a factor", "value size"),
        "window": trc("a factor", "window"), "windowed layers": trc("a factor", "windowed layers"),
    }  # fmt: skip


def _number(leaf: NamedNumber | Length | RemainderOf, length: int) -> str:
    return _grouped(int(evaluate_exactly(leaf, length)))


def _grouped(value: int) -> str:
    return f"{value:,}".replace(",", "\u2009")
