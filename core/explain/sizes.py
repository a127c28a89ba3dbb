"""A predicted size spelled out: in the names of what it is made of, or in their numbers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from core.arithmetic import Figure, Least, Length, Less, Product, Rest, Share, Sum, Term, exactly

Leaf = Callable[[Figure | Length | Rest], str]


def in_names(term: Term) -> str:
    """`2 · head width · batch · length · layers`; empty for nothing."""
    return _spelled(term, _name)


def in_numbers(term: Term, length: int) -> str:
    """The same for a text of that many tokens: `2 · 8 · 1 · 36 · 4`."""
    return _spelled(term, partial(_number, length=length))


def is_a_number(term: Term) -> bool:
    """There is nothing to work out."""
    return isinstance(term, Figure)


def _spelled(term: Term, leaf: Leaf) -> str:
    match term:
        case Figure() | Length() | Rest():
            return leaf(term)
        case Sum(parts=parts):
            return " + ".join(_spelled(part, leaf) for part in parts)
        case Product(factors=factors):
            return " · ".join(_closed(factor, leaf) for factor in factors)
        case Less(whole=whole, part=part):
            return f"{_spelled(whole, leaf)} − {_closed(part, leaf)}"
        case Share(whole=whole, by=by):
            return f"{_closed(whole, leaf)} ÷ {_closed(by, leaf)}"
        case Least(one=one, other=other):
            return f"min({_spelled(one, leaf)}, {_spelled(other, leaf)})"


def _closed(term: Term, leaf: Leaf) -> str:
    """In brackets where the outside would bind more tightly."""
    text = _spelled(term, leaf)
    several = isinstance(term, Less) or (isinstance(term, Sum) and len(term.parts) > 1)
    return f"({text})" if several else text


def _name(leaf: Figure | Length | Rest) -> str:
    match leaf:
        case Figure(value=value, name=name):
            return name or _grouped(value)
        case Length():
            return "length"
        case Rest(name=name):
            return name


def _number(leaf: Figure | Length | Rest, length: int) -> str:
    return _grouped(int(exactly(leaf, length)))


def _grouped(value: int) -> str:
    return f"{value:,}".replace(",", "\u2009")
