"""Engine for remote models. Call it only from the worker thread."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

from decodescope.app.state.worker_messages import LoadRequest, ModelInfo, RunRequest
from decodescope.core import remote
from decodescope.core.errors import ComparisonError, DecodescopeError, ModelError
from decodescope.resources.language import current_language, tr

if TYPE_CHECKING:
    from decodescope import core
    from decodescope.app.session.queries.base import Query, Report
    from decodescope.core.events import Event


class RemoteEngine:
    """Connects to one model at a time."""

    def __init__(self) -> None:
        self._model: core.RemoteModel | None = None
        self._connected: LoadRequest | None = None
        self._info: ModelInfo | None = None
        self._language = ""

    def load(self, request: LoadRequest) -> ModelInfo:
        """Connect to the engine, unless connected. Raises EngineError, ModelNotFoundError."""
        if request != self._connected or self._model is None:
            self._model = self._info = self._connected = None
            self._model = _connect(request)
            self._connected = request
        if self._info is None or self._language != current_language():
            self._language = current_language()
            self._info = _describe(self._model, request)
        return self._info

    def prepare(self, request: RunRequest) -> RunRequest:
        """Return the request unchanged: the token count of a chat is known only to the engine."""
        return request

    def stream(self, request: RunRequest, cancel: threading.Event) -> Iterator[Event]:
        """Return the run's events. Raises DecodescopeError."""
        if self._model is None or request.load != self._connected:
            self.load(request.load)
        assert self._model is not None
        if request.scored:
            return remote.score_stream(self._model, _scored_text(request), request.top_n, cancel)
        return remote.stream(self._model, request, cancel)

    def answer(self, query: Query, report: Report) -> object:
        """Return the query's result for remote models. Raises DecodescopeError with the reason if there is none."""
        return query.remote_result(remote.parse(query.load.model, allow_plain=True).model or query.load.model)


def _connect(request: LoadRequest) -> core.RemoteModel:
    return remote.connect(request.model, allow_plain=request.allow_plain)


def _describe(model: core.RemoteModel, request: LoadRequest) -> ModelInfo:
    return ModelInfo(
        name=request.model,
        title=model.name,
        device=model.place,
        dtype="",
        context=model.context,
        vocabulary=model.vocabulary,
        has_chat=True,
        engine=model.kind.title,
        unsupported_strategies=model.refused_strategies(),
        unsupported_caches=model.refused_caches(),
        unsupported_settings=model.refused_settings(),
    )


def _scored_text(request: RunRequest) -> object:
    """Return the prompt followed by its answer, for scoring."""
    if request.second:
        raise ComparisonError(
            tr("Remote scoring does not support a comparison model."),
            tr("Score it with a local model."),
        )
    if not isinstance(request.prompt, str):
        raise _chat_unsupported_error()
    return (request.prompt, *request.beginning)


def _chat_unsupported_error() -> DecodescopeError:
    return ModelError(
        tr("A remote engine can score texts but not chats, as its chat format is unknown."),
        tr("Score it as a text."),
    )
