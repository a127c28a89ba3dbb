"""Data passed between the two threads: jobs, events, and answers to load requests and runs."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from PySide6.QtCore import QObject, Qt, QTimer, Signal, Slot

from decodescope.app.state.run import Run
from decodescope.app.state.worker_messages import ErrorReport, LoadRequest, ModelInfo, RunRequest
from decodescope.core.common.lightweight_dataclass import plain

if TYPE_CHECKING:
    from decodescope.core.events import Event

MIN_INTERVAL, MAX_INTERVAL = 1 / 30, 1 / 5
"""Minimum and maximum seconds between two batches; the first token is not delayed. The longest batches contain hundreds
of tokens.
"""
MAX_DRAWING_FRACTION = 0.03
"""Maximum fraction of the time for drawing during a run: both threads share the interpreter lock, so drawing slows the
run.
"""


class DeliveryRate:
    """Computes when the next batch is due."""

    def __init__(self) -> None:
        self.interval = MIN_INTERVAL
        self._last = (-math.inf, 0.0)
        self._batches = 0

    def begin(self) -> None:
        """Start a run: schedule its first batch soon, since short prompts finish quickly. The drawing cost is known
        from earlier runs.
        """
        self._last, self._batches = (time.monotonic() + MIN_INTERVAL - self.interval, time.thread_time()), 0

    def seconds_until_due(self) -> float:
        """Return the seconds until the next batch is due, at most 0 if it is."""
        return self._last[0] + self.interval - time.monotonic()

    def record_batch(self) -> None:
        """Record a delivered batch; the CPU time since the last one is its drawing cost. The first batch is ignored, as
        it contains a single token.
        """
        now = (time.monotonic(), time.thread_time())
        if self._batches > 1:
            due = (now[1] - self._last[1]) / MAX_DRAWING_FRACTION
            self.interval += (min(MAX_INTERVAL, max(MIN_INTERVAL, due)) - self.interval) / 3
        self._last, self._batches = now, self._batches + 1


class Mailbox:
    """Events on their way to the window. Appending and taking are atomic deque operations, so no lock is needed."""

    def __init__(self) -> None:
        self._events: deque[Event] = deque()
        self.is_urgent = False
        """Whether it contains an event to be shown at once."""

    def put(self, event: Event, is_urgent: bool = False) -> bool:
        """Add an event; return True if the window must be notified: it is the first in the box, or urgent.

        The length is read after adding, as the window may empty the box in between.
        """
        self._events.append(event)
        if is_urgent:
            self.is_urgent = True
        return is_urgent or len(self._events) == 1

    def take(self) -> list[Event]:
        """Return all events, oldest first, and empty the box."""
        self.is_urgent, taken = False, []
        while self._events:
            taken.append(self._events.popleft())
        return taken


@plain(eq=False)
class WorkerJob:
    """A run as the worker sees it."""

    number: int
    request: RunRequest
    recording: Path | None = None
    """File to record to, if any."""
    cancel: threading.Event = field(default_factory=threading.Event)
    end_reported: threading.Event = field(default_factory=threading.Event)
    """Set once the window has been notified of the end."""
    mailbox: Mailbox = field(default_factory=Mailbox)


class ModelLoaded(NamedTuple):
    """Answer to a load request: `info` or `error`; `for_run` if requested by a run, not by the window."""

    request: LoadRequest
    for_run: bool = False
    info: ModelInfo | None = None
    error: ErrorReport | None = None


class RunEnded(NamedTuple):
    """Answer to a job, after all its events; `error` is None if the stream ended normally."""

    number: int
    error: ErrorReport | None = None


class Recording(NamedTuple):
    """Closed recording of a finished run; `error`: why it is incomplete."""

    path: Path
    error: ErrorReport | None = None


@plain(frozen=True, eq=False)
class RunInProgress:
    """A run in progress with its job; a silent one is measured and not shown."""

    job: WorkerJob
    run: Run
    is_silent: bool = False


class EventDelivery(QObject):
    """Delivers events. `arrived(run, events)`: a batch of a shown run; `trimmed(run)`: its request was shortened."""

    arrived = Signal(object, object)
    trimmed = Signal(object)

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._current: RunInProgress | None = None
        self._rate = DeliveryRate()
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setTimerType(Qt.TimerType.PreciseTimer)
        self._timer.timeout.connect(self.deliver)

    def begin(self, underway: RunInProgress) -> None:
        """Start to deliver the events of a run."""
        self._current = underway
        self._rate.begin()

    def finish(self) -> list[Event]:
        """Apply the remaining events, stop delivering and return them."""
        self._timer.stop()
        events = self._apply_new_events()
        self._current = None
        return events

    @Slot(int, object)
    def on_prepared(self, number: int, request: RunRequest) -> None:
        """Update the request after the worker removed chat turns that do not fit."""
        underway = self._current
        if underway is not None and number == underway.job.number:
            underway.run.request = request
            if not underway.is_silent:
                self.trimmed.emit(underway.run)

    @Slot(int)
    def on_mail(self, number: int) -> None:
        """Deliver new events now or when the next batch is due."""
        if self._current is None or number != self._current.job.number:
            return
        wait = 0.0 if self._current.job.mailbox.is_urgent else self._rate.seconds_until_due()
        if wait <= 0:
            self._timer.stop()
            self.deliver()
        elif not self._timer.isActive():
            self._timer.start(max(1, round(wait * 1000)))

    @Slot()
    def deliver(self) -> None:
        """Deliver all new events."""
        events = self._apply_new_events()
        if events and self._current is not None and not self._current.is_silent:
            self.arrived.emit(self._current.run, events)

    def _apply_new_events(self) -> list[Event]:
        """Take the new events and apply them to the run."""
        if self._current is None:
            return []
        events = self._current.job.mailbox.take()
        if events:
            self._rate.record_batch()
            self._current.run.apply(events)
        return events
