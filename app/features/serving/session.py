"""Runs the requests of a server in the window's session, one after another."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt, QTimer, Signal, Slot

from decodescope.app.session.queries.base import Answer, Query, Report
from decodescope.app.session.session import Session
from decodescope.app.state.run import Run
from decodescope.app.state.worker_messages import ErrorReport, RunRequest
from decodescope.core.common.lightweight_dataclass import plain
from decodescope.core.errors import DecodescopeError, ParameterError, PromptTooLongError
from decodescope.resources.language import join_sentences, tr

if TYPE_CHECKING:
    from decodescope.app.session.local_models import LocalModels
    from decodescope.core.events import Event
    from decodescope.core.server import ServedRequest

_POLL_SECONDS = 0.1
"""Time after which a run notices that its client has gone away."""


@plain(frozen=True)
class PromptEncoding(Query):
    """Query for the token ids of a prompt and their text.

    A run of ids is shown as a run; the messages of a chat would join the window's own conversation.
    """

    prompt: object
    template_settings: Mapping[str, object] = field(default_factory=dict)

    def run(self, models: LocalModels, report: Report) -> tuple[tuple[int, ...], str]:
        """Return ids and text; load the model first if it is not loaded. Raises DecodescopeError."""
        from decodescope import core

        models.load(self.load)
        model = models.loaded_for(self.load)
        ids = core.encode(model, self.prompt, template_settings=self.template_settings)
        return tuple(ids), model.tokenizer.decode(ids, skip_special_tokens=True) if model.tokenizer is not None else ""


class _ServedRun:
    """One request: waiting, in progress or ended. Its events go to the server's thread through `items`, and at the end
    its error, or None.
    """

    def __init__(self, request: ServedRequest, cancel: threading.Event) -> None:
        self.request, self.cancel = request, cancel
        self.items: SimpleQueue[Event | Exception | None] = SimpleQueue()
        self.encoding: PromptEncoding | None = None
        self.run_request: RunRequest | None = None
        self.run: Run | None = None


class ServedRuns(QObject):
    """Runs the requests of a server when no other run of the window is in progress.

    `changed`: a request has begun or ended.
    """

    changed = Signal()
    _posted = Signal(object)
    _abandoned = Signal(object)

    def __init__(
        self,
        session: Session,
        make_request: Callable[[ServedRequest, tuple[int, ...], str], RunRequest],
        parent: QObject,
    ) -> None:
        """`make_request` completes a request for the window, from its token ids and their text."""
        super().__init__(parent)
        self._session, self._make_request = session, make_request
        self._waiting = deque[_ServedRun]()
        self._current: _ServedRun | None = None
        self._is_closed = False
        self.count = 0
        self._posted.connect(self._on_posted, Qt.ConnectionType.QueuedConnection)
        self._abandoned.connect(self._on_abandoned, Qt.ConnectionType.QueuedConnection)
        session.answered.connect(self._on_answered)
        session.eventsArrived.connect(self._on_events)
        session.finished.connect(self._on_finished)
        session.stateChanged.connect(self._on_state)

    def run(self, request: ServedRequest, cancel: threading.Event) -> Iterator[Event]:
        """Yield the events of a request: the runner of a `HttpServer`, called in the server's threads."""
        served = _ServedRun(request, cancel)
        if self._is_closed:
            raise _closed_error()
        self._posted.emit(served)
        is_reported = False
        while True:
            try:
                item = served.items.get(timeout=_POLL_SECONDS)
            except Empty:
                if self._is_closed:
                    raise _closed_error() from None
                if cancel.is_set() and not is_reported:
                    is_reported = True
                    self._abandoned.emit(served)
                continue
            if item is None:
                return
            if isinstance(item, Exception):
                raise item
            yield item

    @property
    def is_answering(self) -> bool:
        """Whether a request is in progress."""
        return self._current is not None

    def has_started(self, run: Run | None) -> bool:
        """Return whether `run` answers a request, and its end was not reported yet."""
        return run is not None and self._current is not None and run is self._current.run

    def close(self) -> None:
        """End all requests; a run in progress stops."""
        self._is_closed = True
        for served in (*self._waiting, *([self._current] if self._current is not None else ())):
            served.items.put(_closed_error())
        self._waiting.clear()
        if self._current is not None and self._current.run is not None:
            self._session.stop()
        self._current = None

    @Slot(object)
    def _on_posted(self, served: _ServedRun) -> None:
        if self._is_closed:
            served.items.put(_closed_error())
            return
        self._waiting.append(served)
        self._start_next()

    @Slot(object)
    def _on_abandoned(self, served: _ServedRun) -> None:
        """Stop the run of a client that has gone away."""
        if served in self._waiting:
            self._waiting.remove(served)
            served.items.put(None)
        elif served is self._current and served.run is not None:
            self._session.stop()
        elif served is self._current and served.encoding is not None:
            served.encoding.cancel.set()

    @Slot(str)
    def _on_state(self, state: str) -> None:
        if state == "idle":
            self._start_next()

    @Slot()
    def _start_next(self) -> None:
        """Encode the next prompt, or start the run whose prompt is encoded, when the session is free."""
        if self._is_closed or self._session.busy:
            return
        if self._current is None and self._waiting:
            self._current = served = self._waiting.popleft()
            self.count += 1
            self.changed.emit()
            load = self._make_request(served.request, (), "").load
            served.encoding = PromptEncoding(
                served.request.prompt, served.request.template_settings, load=load, cancel=served.cancel
            )
            self._session.request(served.encoding)
        elif (served_now := self._current) is not None and served_now.run_request is not None:
            request, served_now.run_request = served_now.run_request, None
            self._session.start(request)
            served_now.run = self._session.latest

    @Slot(object)
    def _on_answered(self, answer: Answer) -> None:
        served = self._current
        if served is None or answer.query is not served.encoding or not answer.has_ended:
            return
        if answer.error is not None or answer.result is None:
            self._end(_to_error(answer.error) if answer.error is not None else None)
            return
        ids, text = answer.result
        served.run_request = self._make_request(served.request, ids, text)
        self._start_next()

    @Slot(object, object)
    def _on_events(self, run: Run, events: list[Event]) -> None:
        if self._current is not None and run is self._current.run:
            for event in events:
                self._current.items.put(event)

    @Slot(object)
    def _on_finished(self, _outcome: object) -> None:
        run = self._current.run if self._current is not None else None
        if run is None or run.outcome is None:
            return
        error = run.outcome.error
        self._end(_to_error(error) if error is not None else None)

    def _end(self, error: Exception | None) -> None:
        if self._current is not None:
            self._current.items.put(error)
        self._current = None
        self.changed.emit()
        QTimer.singleShot(0, self, self._start_next)  # the session may start a run of its own first


def _to_error(report: ErrorReport) -> Exception:
    """Return the exception of a report, as the server distinguishes settings and prompts that the client can
    correct.
    """
    if report.kind == PromptTooLongError.__name__:
        from decodescope.core.server import CONTEXT_EXCEEDED, ApiError  # imports the classes of all events

        return ApiError(join_sentences(report.cause, report.remedy), param="prompt", code=CONTEXT_EXCEEDED)
    if report.parameter:
        return ParameterError(report.cause, report.remedy, report.parameter)
    return DecodescopeError(report.cause, report.remedy)


def _closed_error() -> DecodescopeError:
    return DecodescopeError(tr("The server was stopped."), tr("Start it again in the program."))
