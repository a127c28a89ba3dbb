"""What a cache holds: counted bytes, by place, part and layer."""

from __future__ import annotations

from typing import NamedTuple


class Measurement(NamedTuple):
    """Bytes a cache holds; `parts` sums up to `bytes`, `layers` too."""

    bytes: int
    tokens: int
    parts: tuple[tuple[str, str, int], ...] = ()
    """(place, part, bytes): place device/host/disk; part keys, values, scales, residual, self, cross, state."""
    layers: tuple[int, ...] = ()
    held: tuple[tuple[int, int], ...] = ()
    """Places in the text, [start, stop), that the most forgetful layer still holds; () when none forgets."""
    error: float | None = None
    """Quantized: ‖keys − kept keys‖ / ‖keys‖ over all that was quantized."""
