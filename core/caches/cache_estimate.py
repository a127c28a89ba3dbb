"""What a back end does with the cache of one run, told before it does it."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from core.parameter import Settings

if TYPE_CHECKING:
    from core.size_terms import Term


class RunShape(NamedTuple):
    """A run as far as its cache is concerned."""

    rows: int
    """Texts, beams or candidates side by side."""
    capacity: int
    """Tokens that a cache of fixed size is made for."""
    source_length: int | None = None
    """Tokens an encoder reads; None for a decoder."""
    options: Settings = MappingProxyType({})


class CacheEstimate(NamedTuple):
    """Bytes by the length of the text, and what of it is worth knowing besides."""

    size: Term
    window: int | None = None
    """Tokens seen at a time by the layer that forgets most; None when none forgets."""
    sinks: int = 0
    """First tokens that are never forgotten."""
    block: int | None = None
    """Tokens that are written at a time; fewer than that wait unharmed."""
    bits: int | None = None
    capacity: int | None = None
    """Tokens it is allocated for; None when it grows."""
    resident: Term | None = None
    """Of the size, what is in the device's memory at a time where the rest waits elsewhere; None: all of it."""
