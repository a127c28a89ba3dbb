"""Parts of many events laid out field by field, for who wants columns and not one object after the other."""

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
    """A tuple of each of many events, all of them behind each other."""

    lengths: np.ndarray[tuple[int], np.dtype[np.int64]]
    """How many parts each event has."""
    parts: Mapping[str | int, Values | Columns]
    """By the name of a part's field, or by its place where parts are tuples themselves: a value of each part."""

    @property
    def total(self) -> int:
        """How many parts there are."""
        return int(self.lengths.sum())


def mutable_builder(cls: type[Any]) -> type[Any]:
    """A class with the slots of a frozen dataclass, whose instances are filled field by field; `made.__class__ = cls`
    closes one. The dataclass itself sets every field through `object.__setattr__`."""
    own = {"__slots__": tuple(item.name for item in fields(cls)), "__setattr__": object.__setattr__}
    return type(f"Open{cls.__name__}", cls.__bases__, own)
