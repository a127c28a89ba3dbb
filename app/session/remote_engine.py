"""Engine for remote models. Call it only from the worker thread."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

from app.session.layer_jobs import PartialResult
from app.state.layer_queries import ModelQuery
from app.state.worker_messages import (
    AdapterInfo,
    AdapterRequest,
    BackendRequest,
    LoadRequest,
    MemoryEstimate,
    ModelExportRequest,
    ModelExportResult,
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

    def handle_prefix(self, request: PrefixRequest) -> PrefixResult:
        """Raise CacheError, as the cache stays on the engine."""
        raise CacheError(
            tr("The cache of {model} is on another machine.").format(model=_model_name(request.load)),
            tr("Prefixes can be saved only for models in this machine's memory."),
        )

    def export_model(self, request: ModelExportRequest) -> ModelExportResult:
        """Raise ModelError, as the weights stay on the engine."""
        raise ModelError(
            tr("The weights of {model} are on another machine.").format(model=_model_name(request.load)),
            tr("Only models in this machine's memory can be exported."),
        )

    def replay_step(self, request: StepReplayRequest) -> core.StepCounterfactual:
        """Raise ModelError, as the engine does not return all logits."""
        raise ModelError(
            tr("{model} returns only some probabilities, not the scores that other settings would change.").format(
                model=_model_name(request.request.load)
            ),
            tr("Run again with these settings."),
        )

    def estimate_memory(self, request: RunRequest) -> MemoryEstimate | None:
        """Return None, as no local memory is used."""
        return None

    def has_native_step(self, _request: BackendRequest) -> bool:
        """Return False, as decoding is remote."""
        return False

    def check_adapter(self, _request: AdapterRequest) -> AdapterInfo | None:
        """Return None, as adapters are not applied to remote models."""
        return None

    def inspect_layers(self, request: ModelQuery) -> Iterator[PartialResult]:
        """Raise InsideError, as remote models cannot be inspected."""
        raise InsideError(
            tr("{model} runs on another machine and cannot be inspected.").format(model=_model_name(request.load)),
            tr("Load a model on this machine to inspect it."),
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
