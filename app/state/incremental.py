"""Incremental fold over a run's events, shared by several views: each event is processed once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from decodescope.core.events import Event


class IncrementalFold(ABC):
    """Fold that stores how many events of a run it has processed."""

    def __init__(self) -> None:
        self._processed = 0

    def update(self, events: Sequence[Event]) -> None:
        """Process the events that are new since the last call; `events` are all events of the run, which only grow."""
        if len(events) > self._processed:
            self.append(events[self._processed :])
            self._processed = len(events)

    @abstractmethod
    def append(self, events: Iterable[Event]) -> None:
        """Process new events."""
