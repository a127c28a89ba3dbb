"""Parts of many events laid out field by field, for who wants columns and not one object after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

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
