"""Lists of numbers as bytes: no wider than they must be, first bytes first, so that likes lie beside likes."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Sequence
from itertools import accumulate
from operator import eq, sub
from typing import TypeAlias, TypeVar

from resources.language import tr

Ints: TypeAlias = tuple[int, int, bytes]
"""What is added to each number, bytes of a number, and the numbers."""
Number = TypeVar("Number", int, float)

_CODES = {1: "B", 2: "H", 4: "I", 8: "Q"}
_LOOKED_AT = 16
_NEAR = 100
_LIMIT = 2**62


def pack_ints(values: Sequence[int]) -> Ints:
    """The numbers, or OverflowError for those that need more than 64 bits."""
    low, high = min(values), max(values)
    if low < -(2**63) or high >= 2**63:
        raise OverflowError
    base = low if low < 0 else 0
    width = next(width for width in _CODES if high - base < 1 << 8 * width)
    return base, width, _planes(array(_CODES[width], [value - base for value in values] if base else values))


def unpack_ints(base: int, width: int, data: bytes) -> list[int]:
    """What `pack_ints` was given. Raises ValueError."""
    if width not in _CODES:
        raise ValueError(tr("whole numbers have no width of {width}").format(width=width))
    empty: array[int] = array(_CODES[width])
    values = _joined(empty, data).tolist()
    return [value + base for value in values] if base else values


def steps(values: Sequence[int]) -> list[int] | None:
    """The differences, where the numbers climb or fall by little and are too many for a byte; else None."""
    if len(values) < _LOOKED_AT or abs(values[-1] - values[0]) < 256 or abs(values[0]) > _LIMIT:
        return None
    if not all(abs(one - other) < _NEAR for one, other in zip(values[1:_LOOKED_AT], values, strict=False)):
        return None
    found = list(map(sub, values[1:], values))
    return found if max(found) - min(found) < 256 else None


def climbed(first: int, differences: Sequence[int]) -> list[int]:
    """The numbers that have these differences."""
    return list(accumulate(differences, initial=first))


def narrowed(values: Sequence[float]) -> tuple[array[float], list[bool]]:
    """The numbers in 32 bits, and which of them are the same there; one that is not a number never is."""
    short = array("f", values)
    return short, list(map(eq, short, values))


def pack_floats(values: array[float]) -> bytes:
    """Numbers of 32 or 64 bits."""
    return _planes(values)


def unpack_floats(code: str, data: bytes) -> list[float]:
    """Numbers of 32 bits (`f`) or 64 (`d`). Raises ValueError."""
    empty: array[float] = array(code)
    return _joined(empty, data).tolist()


def _planes(values: array[Number]) -> bytes:
    """All first bytes of the numbers (little-endian), then all second ones …"""
    if sys.byteorder == "big":
        values = values[:]
        values.byteswap()
    data, width = values.tobytes(), values.itemsize
    return data if width == 1 else b"".join(data[place::width] for place in range(width))


def _joined(empty: array[Number], data: bytes) -> array[Number]:
    """`empty`, filled with the numbers that `_planes` took apart."""
    width = empty.itemsize
    count, rest = divmod(len(data), width)
    if rest:
        raise ValueError(tr("a column of numbers ends within one of them"))
    mixed = bytearray(len(data))
    for place in range(width):
        mixed[place::width] = data[place * count : (place + 1) * count]
    empty.frombytes(mixed)
    if sys.byteorder == "big":
        empty.byteswap()
    return empty
