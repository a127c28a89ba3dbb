"""What grows with a run's events: several views ask for it, and each event is taken in once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from core.events import Event


class IncrementalFold(ABC):
    """Knows how much of a run it has seen."""

    def __init__(self) -> None:
        self._processed = 0

    def update(self, events: Sequence[Event]) -> None:
        """Sort in what has come since it was last asked; `events` are all of the run's, and only ever grow."""
        if len(events) > self._processed:
            self.append(events[self._processed :])
            self._processed = len(events)

    @abstractmethod
    def append(self, events: Iterable[Event]) -> None:
        """Sort in what has come."""
