"""The worker: one QObject on one QThread that loads models and runs them, one thing at a time."""

from __future__ import annotations

import threading
import traceback
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal, Slot

from app.state.requests import ErrorReport, Fit, LoadRequest, PrefixNews, PrefixRequest, RunRequest, report

if TYPE_CHECKING:
    from app.session.engine import Engine
    from core.events import Event


class Mailbox:
    """Events on their way to the window. Appending and taking are single steps of a deque: no lock is held."""

    def __init__(self) -> None:
        self._events: deque[Event] = deque()

    def put(self, event: Event) -> bool:
        """Add one; True when it is the first, that is, when the window must be told.

        Looking after adding, not before: the window may empty the box in between.
        """
        self._events.append(event)
        return len(self._events) == 1

    def take(self) -> list[Event]:
        """Everything in it, oldest first."""
        taken = []
        while self._events:
            taken.append(self._events.popleft())
        return taken


@dataclass(slots=True, eq=False)
class Job:
    """One run as the worker sees it."""

    number: int
    request: RunRequest
    cancel: threading.Event = field(default_factory=threading.Event)
    mailbox: Mailbox = field(default_factory=Mailbox)


@dataclass(frozen=True, slots=True)
class Loaded:
    """Answer to a load request: `info` or `error`; `for_run` when a run asked for it, not the window."""

    request: LoadRequest
    for_run: bool = False
    info: object = None
    error: ErrorReport | None = None


@dataclass(frozen=True, slots=True)
class Ended:
    """Answer to a job, once all its events are in its mailbox; `error` is None when the stream ended by itself."""

    number: int
    error: ErrorReport | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of an errand: `result` or `error`."""

    request: PrefixRequest | RunRequest
    result: PrefixNews | Fit | None = None
    error: ErrorReport | None = None


class Worker(QObject):
    """Lives on the worker's thread. Everything it says crosses to the main thread as a queued signal."""

    loading = Signal(object)
    loaded = Signal(object)
    prepared = Signal(int, object)
    mail = Signal(int)
    ended = Signal(object)
    answered = Signal(object)

    def __init__(self, engine: Engine) -> None:
        super().__init__()
        self._engine = engine

    @Slot(object)
    def load(self, request: LoadRequest) -> None:
        """Hold a model ready; answers with `loaded`."""
        self.loaded.emit(self._load(request, for_run=False))

    @Slot(object)
    def run(self, job: Job) -> None:
        """Run `job` to its end; answers with `ended`, exactly once, whatever happens."""
        error: ErrorReport | None = None
        try:
            if not job.cancel.is_set():
                error = self._run(job)
        except BaseException as failure:  # the answer must go out even for SystemExit raised by a model's own code
            error = _report(failure)
        finally:
            self.ended.emit(Ended(job.number, error))

    @Slot(object)
    def do(self, request: PrefixRequest | RunRequest) -> None:
        """Save or load a prefix, or reckon what a run would take; answers with `answered`."""
        try:
            if isinstance(request, PrefixRequest):
                answer = Answer(request, self._engine.prefix(request))
            else:
                answer = Answer(request, self._engine.reckon(request))
        except BaseException as failure:
            answer = Answer(request, error=_report(failure))
        self.answered.emit(answer)

    def _load(self, request: LoadRequest, for_run: bool) -> Loaded:
        self.loading.emit(request)
        try:
            return Loaded(request, for_run, self._engine.load(request))
        except BaseException as failure:
            return Loaded(request, for_run, error=_report(failure))

    def _run(self, job: Job) -> ErrorReport | None:
        answer = self._load(job.request.loading(), for_run=True)
        self.loaded.emit(answer)
        if answer.error is not None or job.cancel.is_set():
            return answer.error
        prepared = self._engine.prepare(job.request)
        if prepared is not job.request:
            self.prepared.emit(job.number, prepared)
        stream = self._engine.stream(prepared, job.cancel)
        try:
            self._deliver(job, stream)
        finally:
            close = getattr(stream, "close", None)
            if close is not None:
                close()
        return None

    def _deliver(self, job: Job, stream: Iterator[Event]) -> None:
        for event in stream:
            if job.mailbox.put(event):
                self.mail.emit(job.number)


def _report(failure: BaseException) -> ErrorReport:
    """`failure` in words, without keeping the frames (and the tensors in them) that it passed through."""
    details = "".join(traceback.format_exception(failure))
    words = report(failure, details)
    traceback.clear_frames(failure.__traceback__)
    return words
