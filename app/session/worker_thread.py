"""The thread that the worker lives on: it is cancelled and waited for at the end, but not for ever."""

from __future__ import annotations

import sys
import threading
import weakref
from typing import TYPE_CHECKING

import shiboken6
from PySide6.QtCore import QObject, Qt, QThread, Signal

from app.session.mailbox import WorkerJob
from app.session.malloc_arena import share_heap
from app.session.worker import Worker

if TYPE_CHECKING:
    from app.state.layer_queries import ModelQuery
    from app.state.worker_messages import LoadRequest

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
