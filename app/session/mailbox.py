"""What crosses between the two threads: a run to be done, its events, and the answers to everything asked."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from PySide6.QtCore import QObject, Qt, QTimer, Signal, Slot

from app.state.run import Run
from app.state.worker_messages import (
    BackendRequest,
    ErrorReport,
    LoadRequest,
    MemoryEstimate,
    ModelInfo,
    PrefixRequest,
    PrefixResult,
    RunRequest,
    StepReplayRequest,
)
from core.common.lightweight_dataclass import plain

if TYPE_CHECKING:
    from core import WhatIf
    from core.events import Event

MIN_INTERVAL, MAX_INTERVAL = 1 / 30, 1 / 5
"""Seconds between two batches; the first token waits for none. At the longest a batch holds hundreds of tokens:
nobody reads them as they come, and each drawing in between takes the run's own time."""
MAX_DRAWING_FRACTION = 0.03
"""Share of its time that this thread may draw while a run is under way: both threads need the interpreter's lock, so
what one of them uses the other cannot have."""


class DeliveryRate:
    """When the next batch is due."""

    def __init__(self) -> None:
        self.interval = MIN_INTERVAL
        self._last = (-math.inf, 0.0)
        self._batches = 0

    def begin(self) -> None:
        """A run begins: its first batch is due soon, for a short prompt is read by then. What drawing takes is known
        from the runs before."""
        self._last, self._batches = (time.monotonic() + MIN_INTERVAL - self.interval, time.thread_time()), 0

    def seconds_until_due(self) -> float:
        """Seconds until the next batch is due; not above 0 when it is."""
        return self._last[0] + self.interval - time.monotonic()

    def record_batch(self) -> None:
        """A batch goes out now; what this thread has computed since the last one was the drawing of that. The first of
        a run is a single token, which says nothing of a page of them."""
        now = (time.monotonic(), time.thread_time())
        if self._batches > 1:
            due = (now[1] - self._last[1]) / MAX_DRAWING_FRACTION
            self.interval += (min(MAX_INTERVAL, max(MIN_INTERVAL, due)) - self.interval) / 3
        self._last, self._batches = now, self._batches + 1


class Mailbox:
    """Events on their way to the window. Appending and taking are single steps of a deque: no lock is held."""

    def __init__(self) -> None:
        self._events: deque[Event] = deque()
        self.is_urgent = False
        """It holds something that is to be shown at once."""

    def put(self, event: Event, is_urgent: bool = False) -> bool:
        """Add one; True when the window must be told: it is the first in the box, or urgent.

        Looking after adding, not before: the window may empty the box in between.
        """
        self._events.append(event)
        if is_urgent:
            self.is_urgent = True
        return is_urgent or len(self._events) == 1

    def take(self) -> list[Event]:
        """Everything in it, oldest first."""
        self.is_urgent, taken = False, []
        while self._events:
            taken.append(self._events.popleft())
        return taken


@plain(eq=False)
class WorkerJob:
    """One run as the worker sees it."""

    number: int
    request: RunRequest
    recording: Path | None = None
    """Where it is to be recorded, if anywhere."""
    cancel: threading.Event = field(default_factory=threading.Event)
    end_reported: threading.Event = field(default_factory=threading.Event)
    """Set once the window has been told of its end."""
    mailbox: Mailbox = field(default_factory=Mailbox)


class ModelLoaded(NamedTuple):
    """Answer to a load request: `info` or `error`; `for_run` when a run asked for it, not the window."""

    request: LoadRequest
    for_run: bool = False
    info: ModelInfo | None = None
    error: ErrorReport | None = None


class RunEnded(NamedTuple):
    """Answer to a job, once all its events are in its mailbox; `error` is None when the stream ended by itself."""

    number: int
    error: ErrorReport | None = None


class Recording(NamedTuple):
    """The recording of a run that has ended, closed; `error` says why it is not whole."""

    path: Path
    error: ErrorReport | None = None


class Answer(NamedTuple):
    """What came of a prefix served, a run reckoned, a step supposed, or who takes the steps: `result` or `error`."""

    request: PrefixRequest | RunRequest | StepReplayRequest | BackendRequest
    result: PrefixResult | MemoryEstimate | WhatIf | bool | None = None
    error: ErrorReport | None = None


@plain(frozen=True, eq=False)
class RunInProgress:
    """A run that the worker is busy with, on both sides; a silent one is measured and not shown."""

    job: WorkerJob
    run: Run
    is_silent: bool = False


class EventDelivery(QObject):
    """`arrived(run, events)` for each batch of a run that is shown; `trimmed(run)`: its request is shorter."""

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
        """Deliver the events of this run from now on."""
        self._current = underway
        self._rate.begin()

    def finish(self) -> list[Event]:
        """What is left, in the run already: it is told together with the run's end. Nothing comes any more."""
        self._timer.stop()
        events = self._apply_new_events()
        self._current = None
        return events

    @Slot(int, object)
    def on_prepared(self, number: int, request: RunRequest) -> None:
        """The worker has left out the turns of a chat that have no place."""
        underway = self._current
        if underway is not None and number == underway.job.number:
            underway.run.request = request
            if not underway.is_silent:
                self.trimmed.emit(underway.run)

    @Slot(int)
    def on_mail(self, number: int) -> None:
        """There is something in the mailbox of that job."""
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
        """Hand over everything that has come."""
        events = self._apply_new_events()
        if events and self._current is not None and not self._current.is_silent:
            self.arrived.emit(self._current.run, events)

    def _apply_new_events(self) -> list[Event]:
        """Everything that has come, in the run from now on."""
        if self._current is None:
            return []
        events = self._current.job.mailbox.take()
        if events:
            self._rate.record_batch()
            self._current.run.apply(events)
        return events
