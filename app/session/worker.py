"""The worker: a QObject in a QThread that loads models and runs them, one thing at a time."""

from __future__ import annotations

import os
import sys
import threading
import traceback
import weakref
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING

import shiboken6
from PySide6.QtCore import QObject, Qt, QThread, Signal, Slot

from decodescope.app.session.mailbox import ModelLoaded, RunEnded, WorkerJob
from decodescope.app.session.queries.base import Answer, Query
from decodescope.app.state.worker_messages import ErrorReport, LoadRequest, make_error_report

if TYPE_CHECKING:
    from pathlib import Path

    from decodescope.app.session.engine import Engine
    from decodescope.app.session.recorded_stream import RunRecorder
    from decodescope.core.events import Event

_M_ARENA_MAX = -8
"""From glibc's malloc.h."""
SETTING = "MALLOC_ARENA_MAX"
"""Environment variable with the user's own setting, which has priority."""


def share_heap() -> bool:
    """Make new threads allocate from the process's main heap; return True if supported (glibc).

    A run in a thread reaches 0.96 of the main thread's speed without this, 1.00 with it.
    """
    if sys.platform != "linux" or SETTING in os.environ:
        return False
    import ctypes  # only needed once there is a thread

    try:
        return bool(ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 1) == 1)
    except AttributeError:  # another C library without mallopt
        return False


END_DISPLAY_SECONDS = 0.25
"""Seconds to wait for the window to show the end of a run before the rest of its recording is written: both need the
interpreter lock.
"""


class Worker(QObject):
    """Lives in the worker thread; its signals are queued to the main thread."""

    loading = Signal(object)
    loaded = Signal(object)
    prepared = Signal(int, object)
    eventsPending = Signal(int)
    ended = Signal(object)
    recorded = Signal(object)
    answered = Signal(object)

    def __init__(self, engine: Engine) -> None:
        super().__init__()
        self._engine = engine

    @Slot(object)
    def load(self, request: LoadRequest) -> None:
        """Load a model; answer with `loaded`."""
        self.loaded.emit(self._load(request, for_run=False))

    @Slot(object)
    def run(self, job: WorkerJob) -> None:
        """Run `job` to its end; answer with `ended` exactly once in all cases, then with `recorded` if it has a
        recording.
        """
        error: ErrorReport | None = None
        recorded = _start_recording(job.recording) if job.recording is not None else None
        try:
            if not job.cancel.is_set():
                error = self._run(job, recorded)
        except BaseException as failure:  # must answer even for SystemExit raised by a model's own code
            if recorded is not None:
                recorded.fail(failure)
            error = _error_report(failure)
        finally:
            self.ended.emit(RunEnded(job.number, error))
            if recorded is not None:
                job.end_reported.wait(END_DISPLAY_SECONDS)
                self.recorded.emit(recorded.close())

    @Slot(object)
    def answer(self, query: Query) -> None:
        """Answer a query with `answered`: for each part that is reported, and exactly once at its end."""

        def report(part: object) -> None:
            self.answered.emit(Answer(query, part, has_ended=False))

        result: object = None
        error: ErrorReport | None = None
        try:
            if not query.cancel.is_set():
                result = self._engine.answer(query, report)
        except BaseException as failure:
            error = _error_report(failure)
        self.answered.emit(Answer(query, result, error))

    def _load(self, request: LoadRequest, for_run: bool) -> ModelLoaded:
        self.loading.emit(request)
        try:
            return ModelLoaded(request, for_run, self._engine.load(request))
        except BaseException as failure:
            return ModelLoaded(request, for_run, error=_error_report(failure))

    def _run(self, job: WorkerJob, recorded: RunRecorder | None) -> ErrorReport | None:
        answer = self._load(job.request.load, for_run=True)
        self.loaded.emit(answer)
        if answer.error is not None or job.cancel.is_set():
            return answer.error
        prepared = self._engine.prepare(job.request)
        if prepared is not job.request:
            self.prepared.emit(job.number, prepared)
        stream = self._engine.stream(prepared, job.cancel)
        if recorded is not None:
            recorded.start(prepared)
        try:
            self._deliver(job, stream, recorded)
        finally:
            if isinstance(stream, Generator):
                stream.close()
        return None

    def _deliver(self, job: WorkerJob, stream: Iterator[Event], recorded: RunRecorder | None) -> None:
        from decodescope.core.events import BeamStep, TokenChosen  # imported with the first run

        has_begun = False
        for event in stream:
            if recorded is not None:
                recorded.write(event)
            begins = not has_begun and isinstance(event, (TokenChosen, BeamStep))
            has_begun = has_begun or begins
            if job.mailbox.put(event, is_urgent=begins):  # deliver the first token without batching
                self.eventsPending.emit(job.number)


def _error_report(failure: BaseException) -> ErrorReport:
    """Return `failure` as a report, without keeping its frames and the tensors in them."""
    details = "".join(traceback.format_exception(failure))
    words = make_error_report(failure, details)
    traceback.clear_frames(failure.__traceback__)
    return words


def _start_recording(path: Path) -> RunRecorder:
    """Return a recording; its module is imported on first use."""
    from decodescope.app.session.recorded_stream import RunRecorder

    return RunRecorder(path)


MAX_WAIT_MS = 5000
"""For a worker that does not check its cancel event: loading a large model, or a looping template."""
SWITCH_INTERVAL = 0.001
"""Seconds that a Python thread may hold the interpreter lock while another waits. With Python's 5 ms the worker stalled
while the window was drawn: a run in the window had 0.75 of the core's speed, with this 0.83.
"""
_stuck: list[tuple[QThread, Worker]] = []
"""Threads that did not end. Qt aborts when a running thread's object is destroyed, so references are kept."""


class WorkerThread(QObject):
    """Sends requests to the worker as queued signals; starts the thread with the first. The worker and its model are
    released at the end.
    """

    _loadRequested = Signal(object)
    _runRequested = Signal(object)
    _queryRequested = Signal(object)

    def __init__(self, worker: Worker, parent: QObject) -> None:
        super().__init__(parent)
        self._thread = QThread(self)
        self._thread.setObjectName("worker")
        self._cancels: dict[type, threading.Event] = {}
        """Cancel events of the last run, and of the last query of each class."""
        worker.moveToThread(self._thread)
        queued = Qt.ConnectionType.QueuedConnection
        self._loadRequested.connect(worker.load, queued)
        self._runRequested.connect(worker.run, queued)
        self._queryRequested.connect(worker.answer, queued)
        self._end = weakref.finalize(self, _end, self._thread, worker, self._cancels)
        self._has_begun = False

    def load(self, request: LoadRequest) -> None:
        """Load a model in the worker."""
        self._begin()
        self._loadRequested.emit(request)

    def send(self, query: Query) -> None:
        """Send a query, which is answered once the worker is free; cancel an earlier one that it replaces."""
        if query.replaces_earlier and type(query) in self._cancels:
            self._cancels[type(query)].set()
        self._cancels[type(query)] = query.cancel
        self._begin()
        self._queryRequested.emit(query)

    def start(self, job: WorkerJob) -> None:
        """Run `job` in the worker; cancel queries that yield to runs."""
        for kind, cancel in self._cancels.items():
            if issubclass(kind, Query) and kind.yields_to_runs:
                cancel.set()
        self._cancels[WorkerJob] = job.cancel
        self._begin()
        self._runRequested.emit(job)

    def _begin(self) -> None:
        if not self._has_begun and self._end.alive:  # requests after the end are ignored
            self._has_begun = True
            sys.setswitchinterval(min(SWITCH_INTERVAL, sys.getswitchinterval()))
            share_heap()
            self._thread.start()

    def end(self) -> None:
        """Cancel the work and wait for the thread, at most `MAX_WAIT_MS`."""
        self._end()


def is_any_stuck() -> bool:
    """Return whether a worker thread did not end, so that the process must exit without cleanup."""
    return any(thread.isRunning() for thread, _worker in _stuck)


def _end(thread: QThread, worker: Worker, cancels: dict[type, threading.Event]) -> None:
    """Also called at interpreter exit; otherwise Qt would abort."""
    for cancel in cancels.values():
        cancel.set()
    if not shiboken6.isValid(thread):
        return
    thread.quit()
    if not thread.wait(MAX_WAIT_MS):
        thread.setParent(None)
        _stuck.append((thread, worker))
