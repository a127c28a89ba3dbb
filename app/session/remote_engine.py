"""Models on other machines as the worker sees them. Only ever touched from the worker's thread."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

from app.session.layer_jobs import PartialResult
from app.state.layer_queries import ModelQuery
from app.state.worker_messages import (
    BackendRequest,
    LoadRequest,
    MemoryEstimate,
    ModelInfo,
    PrefixRequest,
    PrefixResult,
    RunRequest,
    StepReplayRequest,
)
from core import remote
from core.errors import CacheError, ComparisonError, DecodescopeError, InsideError, ModelError
from resources.language import current_language, tr

if TYPE_CHECKING:
    import core
    from core.events import Event


class RemoteEngine:
    """Reaches one model at a time."""

    def __init__(self) -> None:
        self._model: core.RemoteModel | None = None
        self._connected: LoadRequest | None = None
        self._info: ModelInfo | None = None
        self._language = ""

    def load(self, request: LoadRequest) -> ModelInfo:
        """Ask the engine what it is, unless it has been asked. Raises EngineError, ModelNotFoundError."""
        if request != self._connected or self._model is None:
            self._model = self._info = self._connected = None
            self._model = _connect(request)
            self._connected = request
        if self._info is None or self._language != current_language():
            self._language = current_language()
            self._info = _describe(self._model, request)
        return self._info

    def prepare(self, request: RunRequest) -> RunRequest:
        """As it is: how long a chat is in tokens, the engine alone knows."""
        return request

    def stream(self, request: RunRequest, cancel: threading.Event) -> Iterator[Event]:
        """The run's events. Raises DecodescopeError."""
        if self._model is None or request.load != self._connected:
            self.load(request.load)
        assert self._model is not None
        if request.scored:
            return remote.score_stream(self._model, _scored_text(request), request.top_n, cancel)
        return remote.stream(self._model, request, cancel)

    def handle_prefix(self, request: PrefixRequest) -> PrefixResult:
        """Raises CacheError: what it has read stays with the engine."""
        raise CacheError(
            tr("What {model} has read stays on its machine.").format(model=_model_name(request.load)),
            tr("Prefixes can be kept of models in this machine's memory."),
        )

    def replay_step(self, request: StepReplayRequest) -> core.WhatIf:
        """Raises ModelError: its scores are not told."""
        raise ModelError(
            tr("{model} tells a few of its shares, not the scores that other settings would act on.").format(
                model=_model_name(request.request.load)
            ),
            tr("Run it again with these settings."),
        )

    def estimate_memory(self, request: RunRequest) -> MemoryEstimate | None:
        """Nothing: it takes no memory here."""
        return None

    def has_native_step(self, _request: BackendRequest) -> bool:
        """False: they are taken elsewhere."""
        return False

    def inspect_layers(self, request: ModelQuery) -> Iterator[PartialResult]:
        """Raises InsideError: nobody looks into another machine's model."""
        raise InsideError(
            tr("{model} runs on another machine, which shows nothing of what happens inside it.").format(
                model=_model_name(request.load)
            ),
            tr("Load a model into this machine's memory to look inside it."),
        )


def _connect(request: LoadRequest) -> core.RemoteModel:
    return remote.connect(request.model, allow_plain=request.allow_plain)


def _model_name(request: LoadRequest) -> str:
    return remote.parse(request.model, allow_plain=True).model or request.model


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
    """The prompt with its answer behind it; an engine scores texts."""
    if request.second:
        raise ComparisonError(
            tr("A text that another machine scores is read by its model alone."),
            tr("Score it with a model in this machine's memory."),
        )
    if not isinstance(request.prompt, str):
        raise _chat_unsupported_error()
    return (request.prompt, *request.beginning)


def _chat_unsupported_error() -> DecodescopeError:
    return ModelError(
        tr("An engine on another machine scores texts, no chats: how it writes a chat down, it does not tell."),
        tr("Score it as a text."),
    )
