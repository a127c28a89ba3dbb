"""A predicted size spelled out: in the names of what it is made of, or in their numbers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from core.common.size_terms import (
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
from resources.language import trc

LeafFormatter = Callable[[NamedNumber | Length | RemainderOf], str]


def format_names(term: Term) -> str:
    """`2 · head width · batch · length · layers`; empty for nothing."""
    return _format_term(term, partial(_name, said=_factor_names()))


def format_numbers(term: Term, length: int) -> str:
    """The same for a text of that many tokens: `2 · 8 · 1 · 36 · 4`."""
    return _format_term(term, partial(_number, length=length))


def is_constant(term: Term) -> bool:
    """There is nothing to work out."""
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
    """In brackets where the outside would bind more tightly."""
    text = _format_term(term, leaf)
    several = isinstance(term, DifferenceOf) or (isinstance(term, SumOf) and len(term.parts) > 1)
    return f"({text})" if several else text


def _name(leaf: NamedNumber | Length | RemainderOf, said: dict[str, str]) -> str:
    match leaf:
        case NamedNumber(value=value, name=name):
            return _translated_name(name, said) if name else _grouped(value)
        case Length():
            return said["length"]
        case RemainderOf(name=name):
            return _translated_name(name, said)


def _translated_name(name: str, said: dict[str, str]) -> str:
    """Several kinds of layers are numbered from the second on: `kv heads 2`."""
    plain, _, number = name.rpartition(" ")
    return f"{said[plain]} {number}" if plain in said and number.isdigit() else said.get(name, name)


def _factor_names() -> dict[str, str]:
    """What a size is made of, in the language of now, by the names that events carry."""
    return {
        "batch": trc("a factor", "batch"), "buffer": trc("a factor", "buffer"),
        "buffered": trc("a factor", "buffered"), "compression": trc("a factor", "compression"),
        "entry": trc("a factor", "entry"), "overlap": trc("a factor", "overlap"),
        "bits": trc("a factor", "bits"), "bytes": trc("a factor", "bytes"),
        "counter": trc("a factor", "counter"), "exact": trc("a factor", "exact"),
        "full layers": trc("a factor", "full layers"), "head width": trc("a factor", "head width"),
        "index": trc("a factor", "index"), "key group": trc("a factor", "key group"),
        "key width": trc("a factor", "key width"), "kv heads": trc("a factor", "kv heads"),
        "layers": trc("a factor", "layers"), "length": trc("a factor", "length"), "room": trc("a factor", "room"),
        "source": trc("a factor", "source"), "states": trc("a factor", "states"),
        "value group": trc("a factor", "value group"), "value width": trc("a factor", "value width"),
        "window": trc("a factor", "window"), "windowed layers": trc("a factor", "windowed layers"),
    }  # fmt: skip


def _number(leaf: NamedNumber | Length | RemainderOf, length: int) -> str:
    return _grouped(int(evaluate_exactly(leaf, length)))


def _grouped(value: int) -> str:
    return f"{value:,}".replace(",", "\u2009")
