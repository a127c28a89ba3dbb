"""Columnar layout of the parts of many events, one sequence per field."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import numpy as np

    Values: TypeAlias = Sequence[object] | np.ndarray[tuple[int], np.dtype[np.generic]]
    """One of each, in order; whole numbers, numbers and truths may be an array."""


@dataclass(frozen=True, slots=True)
class Columns:
    """The items of a tuple field of many events, concatenated."""

    lengths: np.ndarray[tuple[int], np.dtype[np.int64]]
    """Number of items of each event."""
    parts: Mapping[str | int, Values | Columns]
    """Columns by field name, or by index where items are tuples."""

    @property
    def total(self) -> int:
        """Total number of items."""
        return int(self.lengths.sum())


def mutable_builder(cls: type[Any]) -> type[Any]:
    """Return a class with the slots of a frozen dataclass, filled field by field; `made.__class__ = cls` freezes an
    instance. The dataclass's own constructor sets every field through `object.__setattr__`.
    """
    own = {"__slots__": tuple(item.name for item in fields(cls)), "__setattr__": object.__setattr__}
    return type(f"Open{cls.__name__}", cls.__bases__, own)
