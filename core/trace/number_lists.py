"""Lists of numbers as bytes (`core.trace.byte_planes`) and back."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Sequence
from itertools import accumulate
from typing import TypeVar

from resources.language import tr

Number = TypeVar("Number", int, float)
_CODES = {1: "B", 2: "H", 4: "I", 8: "Q"}


def unpack_ints(base: int, width: int, data: bytes) -> list[int]:
    """What `planes.pack_ints` was given. Raises ValueError."""
    if width not in _CODES:
        raise ValueError(tr("whole numbers have no width of {width}").format(width=width))
    empty: array[int] = array(_CODES[width])
    values = _join_byte_planes(empty, data).tolist()
    return [value + base for value in values] if base else values


def accumulate_differences(first: int, differences: Sequence[int]) -> list[int]:
    """The numbers that have these differences."""
    return list(accumulate(differences, initial=first))


def unpack_floats(code: str, data: bytes) -> list[float]:
    """Numbers of 32 bits (`f`) or 64 (`d`). Raises ValueError."""
    empty: array[float] = array(code)
    return _join_byte_planes(empty, data).tolist()


def _join_byte_planes(empty: array[Number], data: bytes) -> array[Number]:
    """`empty`, filled with the numbers whose bytes were taken apart."""
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
