"""The size of a cache, as measured and as estimated, and the properties of a run that determine it."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from decodescope.core.parameter import Settings

if TYPE_CHECKING:
    from decodescope.core.common.size_terms import Term


class RunShape(NamedTuple):
    """The properties of a run that determine its cache size."""

    rows: int
    """Number of sequences, beams or candidates in the batch."""
    capacity: int
    """Tokens that a fixed-size cache is allocated for."""
    source_length: int | None = None
    """Tokens the encoder reads; None for a decoder-only model."""
    options: Settings = MappingProxyType({})


class CacheEstimate(NamedTuple):
    """Cache size in bytes as a function of the text length, with other properties of the cache."""

    size: Term
    window: int | None = None
    """Tokens visible to the layer with the smallest window; None if no layer drops tokens."""
    sinks: int = 0
    """Number of first tokens that are never dropped."""
    block: int | None = None
    """Tokens quantized at a time; until a block is full, its tokens stay exact."""
    bits: int | None = None
    capacity: int | None = None
    """Tokens it is allocated for; None if it grows."""
    resident: Term | None = None
    """The part of `size` that is in device memory at a time when the rest is offloaded; None: all of it."""


class Measurement(NamedTuple):
    """Bytes that a cache holds; `parts` and `layers` each sum to `bytes`."""

    bytes: int
    tokens: int
    parts: tuple[tuple[str, str, int], ...] = ()
    """(device, part, bytes): device is device, host or disk; part is keys, values, scales, residual, self, cross or
    state.
    """
    layers: tuple[int, ...] = ()
    held_ranges: tuple[tuple[int, int], ...] = ()
    """Text positions, as [start, stop) ranges, that the layer with the smallest window still holds; () if nothing is
    dropped.
    """
    error: float | None = None
    """Relative error of quantized keys, ‖keys − quantized keys‖ / ‖keys‖, over all quantized tokens."""
    spare_bytes: int = 0
    """Bytes allocated for later tokens besides `bytes`: a growing cache makes room for many tokens at a time."""
