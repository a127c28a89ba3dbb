"""How deep the program's words go: one place of state for both halves, as the language is one.

- `plain`: no technical word at all, shares as “about 3 in 10”, for somebody who has never heard the word “token”;
- `usual`: the field's words, figures rounded for reading;
- `exact`: the term, the symbols, the full figures.

`pick(plain, usual, exact)` is whichever is asked for now. What is shown is said again when the depth changes:
`Appearance.wordsChanged`, and in a view `words_changed`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")
PLAIN, USUAL, EXACT = "plain", "usual", "exact"
DEPTHS = (PLAIN, USUAL, EXACT)

_depth = USUAL
_context_depth: ContextVar[str] = ContextVar("depth", default="")
"""Another depth than the program's, for as long as one text is made."""


def current_depth() -> str:
    """The depth of now."""
    return _context_depth.get() or _depth


def set_depth(depth: str) -> None:
    """Speak so from now on. Raises ValueError for what is no depth."""
    global _depth
    _depth = _check_depth(depth)


@contextmanager
def depth_context(depth: str) -> Iterator[None]:
    """Speak so within a `with`, in this thread alone. Raises ValueError for what is no depth."""
    token = _context_depth.set(_check_depth(depth))
    try:
        yield
    finally:
        _context_depth.reset(token)


def pick(plain: T, usual: T, exact: T) -> T:
    """The one for the depth of now."""
    return (plain, usual, exact)[DEPTHS.index(current_depth())]


def _check_depth(depth: str) -> str:
    if depth not in DEPTHS:
        raise ValueError(f"no depth of words: {depth!r}")
    return depth
