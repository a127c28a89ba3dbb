"""The worker: one QObject on one QThread that loads models and runs them, one thing at a time."""

from __future__ import annotations

import traceback
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal, Slot

from app.session.mailbox import Answer, ModelLoaded, RunEnded, WorkerJob
from app.state.decode_backend import BackendRequest
from app.state.worker_messages import (
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
    from core.events import Event

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
