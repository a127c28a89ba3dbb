"""The memory of a run: what its cache is going to take, and what it takes."""

from dataclasses import dataclass

from core.events.run import Event
from core.size_terms import Term


@dataclass(frozen=True, slots=True)
class CacheMeasured(Event):
    """Bytes the key–value cache holds now. `parts` sums up to `bytes`."""

    step: int
    tokens: int
    bytes: int
    peak: int
    parts: tuple[tuple[str, str, int], ...] = ()
    """(place, part, bytes): place device/host/disk; part keys, values, scales, residual, self, cross, state."""
    layers: tuple[int, ...] = ()
    held: tuple[tuple[int, int], ...] = ()
    """Places in the text, [start, stop), that the most forgetful layer still holds; () when none forgets."""
    error: float | None = None
    """Quantized caches: relative error of the keys."""


@dataclass(frozen=True, slots=True)
class CachePlan(Event):
    """What the cache of this run is going to take, by length of the text; told once the prompt has been read."""

    backend: str
    size: Term
    """Bytes as arithmetic on named figures and the length of the text (tokens read)."""
    start: int
    """Length of the text the decoder has read with the prompt."""
    lengths: tuple[int, ...]
    """Lengths in tokens that were predicted, ascending, up to the run's limit."""
    predicted: tuple[int, ...]
    """Bytes at those lengths."""
    dynamic: tuple[int, ...]
    """Bytes a cache that keeps everything would take at those lengths."""
    capacity: int | None = None
    """Tokens it was allocated for; None when it grows."""
    sinks: int = 0
    """First tokens that are never forgotten."""
    window: int | None = None
    """Tokens seen at a time by the layer that forgets most; None when none forgets."""
    block: int | None = None
    """Quantized: tokens that are written at a time; fewer than that wait unharmed."""
    bits: int | None = None
