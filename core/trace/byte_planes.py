"""Lists of numbers as bytes: no wider than they must be, first bytes first, so that likes lie beside likes."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

PackedInts: TypeAlias = tuple[int, int, bytes]
"""What is added to each number, bytes of a number, and the numbers."""
Int64Array: TypeAlias = np.ndarray[tuple[int], np.dtype[np.int64]]
Float64Array: TypeAlias = np.ndarray[tuple[int], np.dtype[np.float64]]
Float32Array: TypeAlias = np.ndarray[tuple[int], np.dtype[np.float32]]
BoolArray: TypeAlias = np.ndarray[tuple[int], np.dtype[np.bool_]]

_WIDTHS = (1, 2, 4, 8)
_PROBE_LENGTH = 16
_MAX_STEP = 100
_LIMIT = 2**61


def pack_ints(values: Int64Array) -> PackedInts:
    """One number or more."""
    low, high = int(values.min()), int(values.max())
    base = min(low, 0)
    width = next(width for width in _WIDTHS if high - base < 1 << 8 * width)
    return base, width, _byte_planes((values - base if base else values).astype(f"<u{width}"))


def small_differences(values: Int64Array) -> Int64Array | None:
    """The differences, where the numbers climb or fall by little and are too many for a byte; else None."""
    first, last = int(values[0]), int(values[-1])
    if (
        len(values) < _PROBE_LENGTH
        or abs(last - first) < 256
        or np.abs(np.diff(values[:_PROBE_LENGTH])).max() >= _MAX_STEP
    ):
        return None
    if max(-int(values.min()), int(values.max())) > _LIMIT:  # differences that do not fit would come round again
        return None
    found: Int64Array = np.diff(values)
    return found if found.max() - found.min() < 256 else None


def to_float32(values: Float64Array) -> tuple[Float32Array, BoolArray]:
    """The numbers in 32 bits, and which of them are the same there; one that is not a number never is."""
    with np.errstate(over="ignore"):
        short: Float32Array = values.astype(np.float32)
    return short, short == values


def pack_floats(values: Float32Array | Float64Array) -> bytes:
    """Numbers of 32 or 64 bits."""
    return _byte_planes(values.astype(values.dtype.newbyteorder("<")))


def _byte_planes(values: np.ndarray[Any, Any]) -> bytes:
    """All first bytes of little-endian numbers, then all second ones …"""
    return values.view(np.uint8).reshape(-1, values.itemsize).T.tobytes()
