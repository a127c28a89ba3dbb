"""The worker: one QObject on one QThread that loads models and runs them, one thing at a time."""

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

from app.session.mailbox import Answer, ModelLoaded, RunEnded, WorkerJob
from app.state.worker_messages import (
    BackendRequest,
    ErrorReport,
    LoadRequest,
    PrefixRequest,
    RunRequest,
    StepReplayRequest,
    make_error_report,
)

if TYPE_CHECKING:
    from pathlib import Path

    from app.session.engine import Engine
    from app.session.recorded_stream import RunRecorder
    from app.state.layer_queries import ModelQuery
    from app.state.worker_messages import LoadRequest
    from core.events import Event

_M_ARENA_MAX = -8
"""Of glibc's malloc.h."""
SETTING = "MALLOC_ARENA_MAX"
"""The variable by which a user says the same; it goes before this."""


def share_heap() -> bool:
    """Have threads that begin from now on allocate from the process's first heap. True where that can be said (glibc).

    A run in a thread of its own has 0.96 of the speed that it has in the main one, with this 1.00.
    """
    if sys.platform != "linux" or SETTING in os.environ:
        return False
    import ctypes  # not before there is a thread

    try:
        return bool(ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 1) == 1)
    except AttributeError:  # another C library, which has one heap or has it otherwise
        return False


END_DISPLAY_SECONDS = 0.25
"""Seconds that the window has to show the end of a run before the rest of its recording is written: both need the
interpreter's lock, and somebody waits for the one."""


class Worker(QObject):
    """Lives on the worker's thread. Everything it says crosses to the main thread as a queued signal."""

    loading = Signal(object)
    loaded = Signal(object)
    prepared = Signal(int, object)
    eventsPending = Signal(int)
    ended = Signal(object)
    recorded = Signal(object)
    answered = Signal(object)
    layersInspected = Signal(object)

    def __init__(self, engine: Engine) -> None:
        super().__init__()
        self._engine = engine

    @Slot(object)
    def load(self, request: LoadRequest) -> None:
        """Hold a model ready; answers with `loaded`."""
        self.loaded.emit(self._load(request, for_run=False))

    @Slot(object)
    def run(self, job: WorkerJob) -> None:
        """Run `job` to its end; answers with `ended`, exactly once, whatever happens, and behind it with `recorded`,
        once its recording is closed, if it has one."""
        error: ErrorReport | None = None
        recorded = _start_recording(job.recording) if job.recording is not None else None
        try:
            if not job.cancel.is_set():
                error = self._run(job, recorded)
        except BaseException as failure:  # the answer must go out even for SystemExit raised by a model's own code
            if recorded is not None:
                recorded.fail(failure)
            error = _error_report(failure)
        finally:
            self.ended.emit(RunEnded(job.number, error))
            if recorded is not None:
                job.end_reported.wait(END_DISPLAY_SECONDS)
                self.recorded.emit(recorded.close())

    @Slot(object)
    def handle_request(self, request: PrefixRequest | RunRequest | StepReplayRequest | BackendRequest) -> None:
        """Save or load a prefix, suppose a step, reckon what a run would take, or find out who takes the steps; answers
        with `answered`."""
        try:
            if isinstance(request, PrefixRequest):
                answer = Answer(request, self._engine.handle_prefix(request))
            elif isinstance(request, StepReplayRequest):
                answer = Answer(request, self._engine.replay_step(request))
            elif isinstance(request, BackendRequest):
                answer = Answer(request, self._engine.has_native_step(request))
            else:
                answer = Answer(request, self._engine.estimate_memory(request))
        except BaseException as failure:
            answer = Answer(request, error=_error_report(failure))
        self.answered.emit(answer)

    @Slot(object)
    def inspect_layers(self, request: ModelQuery) -> None:
        """Look inside a step; answers with `layersInspected`, part by part, the last of which has ended."""
        from app.state.layer_queries import LayerResult

        try:
            for found, done, total in self._engine.inspect_layers(request) if not request.cancel.is_set() else ():
                self.layersInspected.emit(LayerResult(request, found, done, total))
            self.layersInspected.emit(LayerResult(request, has_ended=True))
        except BaseException as failure:
            self.layersInspected.emit(LayerResult(request, error=_error_report(failure), has_ended=True))

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
        from core.events import BeamStep, TokenChosen  # not before there is a run

        has_begun = False
        for event in stream:
            if recorded is not None:
                recorded.write(event)
            begins = not has_begun and isinstance(event, (TokenChosen, BeamStep))
            has_begun = has_begun or begins
            if job.mailbox.put(event, is_urgent=begins):  # the text's beginning waits for no batch
                self.eventsPending.emit(job.number)


def _error_report(failure: BaseException) -> ErrorReport:
    """`failure` in words, without keeping the frames (and the tensors in them) that it passed through."""
    details = "".join(traceback.format_exception(failure))
    words = make_error_report(failure, details)
    traceback.clear_frames(failure.__traceback__)
    return words


def _start_recording(path: Path) -> RunRecorder:
    """What writes a run to a file; imported with the first."""
    from app.session.recorded_stream import RunRecorder

    return RunRecorder(path)


MAX_WAIT_MS = 5000
"""For a worker that does not look at its cancel event: loading reads the whole of a large model, a tokenizer or a
template may loop."""
SWITCH_INTERVAL = 0.001
"""Seconds that a thread which computes in Python may keep the interpreter's lock while another one waits for it. With
Python's own 5 ms the worker, which needs it between any two steps of the model, stood still while the window was drawn:
a run through the window had 0.75 of the core's speed, with this 0.83."""
_stuck: list[tuple[QThread, Worker]] = []
"""Those that did not come back. Qt aborts when a running thread's object is destroyed, so these are never let go."""


class WorkerThread(QObject):
    """What is asked of it crosses to the worker, whose answers cross back queued; it begins with the first.

    The worker, and with it the model, is let go at the end.
    """

    _loadRequested = Signal(object)
    _runRequested = Signal(object)
    _answerRequested = Signal(object)
    _inspectionRequested = Signal(object)

    def __init__(self, worker: Worker, parent: QObject) -> None:
        super().__init__(parent)
        self._thread = QThread(self)
        self._thread.setObjectName("worker")
        self._cancels: dict[str, threading.Event] = {}
        """Of the run and of the look inside a step that were asked for last."""
        worker.moveToThread(self._thread)
        queued = Qt.ConnectionType.QueuedConnection
        self._loadRequested.connect(worker.load, queued)
        self._runRequested.connect(worker.run, queued)
        self._answerRequested.connect(worker.handle_request, queued)
        self._inspectionRequested.connect(worker.inspect_layers, queued)
        self._end = weakref.finalize(self, _end, self._thread, worker, self._cancels)
        self._has_begun = False

    def load(self, request: LoadRequest) -> None:
        """Have the worker hold that model."""
        self._begin()
        self._loadRequested.emit(request)

    def send_request(self, request: object) -> None:
        """Have the worker answer one of the questions that it knows."""
        self._begin()
        self._answerRequested.emit(request)

    def start(self, job: WorkerJob) -> None:
        """Have the worker run `job`, which is to be cancelled at the end; a look that it finds under way ends."""
        if "look" in self._cancels:
            self._cancels["look"].set()
        self._cancels["run"] = job.cancel
        self._begin()
        self._runRequested.emit(job)

    def inspect_layers(self, request: ModelQuery) -> None:
        """Have the worker look inside a step once it is free; it is cancelled at the end as a job is."""
        self._cancels["look"] = request.cancel
        self._begin()
        self._inspectionRequested.emit(request)

    def _begin(self) -> None:
        if not self._has_begun and self._end.alive:  # what is asked behind the end is not answered
            self._has_begun = True
            sys.setswitchinterval(min(SWITCH_INTERVAL, sys.getswitchinterval()))
            share_heap()
            self._thread.start()

    def end(self) -> None:
        """Cancel what runs and wait for the thread, at most `MAX_WAIT_MS`."""
        self._end()


def is_any_stuck() -> bool:
    """Whether a worker did not come back: the process then has to be left without tidying up."""
    return any(thread.isRunning() for thread, _worker in _stuck)


def _end(thread: QThread, worker: Worker, cancels: dict[str, threading.Event]) -> None:
    """Also called when the interpreter ends, at the latest: Qt would abort else."""
    for cancel in cancels.values():
        cancel.set()
    if not shiboken6.isValid(thread):
        return
    thread.quit()
    if not thread.wait(MAX_WAIT_MS):
        thread.setParent(None)
        _stuck.append((thread, worker))
