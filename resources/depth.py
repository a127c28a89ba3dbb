"""Level of detail of all texts: global state, like the language.

- `plain`: no technical terms, probabilities as “about 3 in 10”, for readers who have never heard the word “token”;
- `usual`: the field's terms, rounded numbers;
- `exact`: term, symbols, exact numbers.

`pick(plain, usual, exact)` returns the current one. Displayed texts are updated when the level changes:
`Appearance.wordingChanged`, and in a view `wording_changed`.
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
"""Overrides the global level while one text is made."""


def current_depth() -> str:
    """Return the current level of detail."""
    return _context_depth.get() or _depth


def set_depth(depth: str) -> None:
    """Set the level of detail. Raises ValueError for an unknown one."""
    global _depth
    _depth = _check_depth(depth)


@contextmanager
def depth_context(depth: str) -> Iterator[None]:
    """Use a level of detail within a `with` block, in this thread only. Raises ValueError for an unknown one."""
    token = _context_depth.set(_check_depth(depth))
    try:
        yield
    finally:
        _context_depth.reset(token)


def pick(plain: T, usual: T, exact: T) -> T:
    """Return the argument for the current level of detail."""
    return (plain, usual, exact)[DEPTHS.index(current_depth())]


def _check_depth(depth: str) -> str:
    if depth not in DEPTHS:
        raise ValueError(f"no depth of words: {depth!r}")
    return depth
