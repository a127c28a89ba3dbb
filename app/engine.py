"""The core as the worker sees it. Only ever touched from the worker's thread: it imports torch."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from app.requests import LoadRequest, ModelInfo, RunRequest

if TYPE_CHECKING:
    import core
    from core.events import Event


class Engine(Protocol):
    """What the worker needs; tests bring one that follows a script."""

    def load(self, request: LoadRequest) -> ModelInfo:
        """Hold that model ready. Raises core.errors.TokenscopeError."""
        ...

    def stream(self, request: RunRequest, cancel: threading.Event) -> Iterator[Event]:
        """The run's events; looks at `cancel` before every forward pass."""
        ...


class CoreEngine:
    """Loads one model at a time and streams runs from it."""

    def __init__(self) -> None:
        self._model: core.LoadedModel | None = None
        self._loaded: LoadRequest | None = None
        self._info: ModelInfo | None = None

    def load(self, request: LoadRequest) -> ModelInfo:
        """The model of `request`, from memory when it is the one held already."""
        if self._info is None or request != self._loaded:
            self._forget()
            self._model = _load(request)
            self._loaded, self._info = request, _describe(self._model, request)
        return self._info

    def stream(self, request: RunRequest, cancel: threading.Event) -> Iterator[Event]:
        """The run's events, from the model the request names."""
        import core

        self.load(request.loading())
        assert self._model is not None
        return core.stream(self._model, build_request(request, self._model), cancel=cancel)

    def _forget(self) -> None:
        """Let the old model go before the new one takes its memory."""
        self._model = self._loaded = self._info = None


def _load(request: LoadRequest) -> core.LoadedModel:
    import torch

    import core

    torch.set_num_threads(request.threads or default_threads())
    return core.load(
        request.model,
        device=request.device,
        dtype=request.dtype,
        allow_pickle=request.allow_pickle,
        allow_remote_code=request.allow_remote_code,
    )


def default_threads() -> int:
    """As many as there are processors, up to eight: small models gain nothing beyond."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(8, usable))


def _describe(model: core.LoadedModel, request: LoadRequest) -> ModelInfo:
    import torch

    import core

    refused = {name: strategy.why_not(model) for name, strategy in core.strategies.registry.items()}
    caches = {name: cache.why_not(model) for name, cache in core.caches.registry.items()}
    return ModelInfo(
        name=request.model,
        title=model.name,
        device=str(model.device),
        dtype=str(model.model.dtype).removeprefix("torch."),
        threads=torch.get_num_threads() if str(model.device) == "cpu" else 0,
        note=getattr(model, "device_note", ""),
        parameters=sum(weight.numel() for weight in model.model.parameters()),
        context=getattr(model, "context", None),
        vocabulary=getattr(model, "vocabulary", 0) or 0,
        has_chat=bool(getattr(model.tokenizer, "chat_template", None)),
        defaults=_own_defaults(model.model.generation_config),
        refused_strategies={name: why for name, why in refused.items() if why},
        refused_caches={name: why for name, why in caches.items() if why},
    )


def _own_defaults(config: Any) -> Mapping[str, Any]:
    """What the model's generation_config sets itself."""
    plain: dict[str, Any] = config.to_diff_dict()
    return {name: value for name, value in plain.items() if value is not None}


def build_request(request: RunRequest, model: core.LoadedModel) -> core.Request:
    """The core's own request for what the panels describe."""
    from transformers import GenerationConfig

    import core

    strategy = core.strategies.registry[request.strategy]
    options = {p.name for p in strategy.parameters if p.option}
    params = {name: value for name, value in request.params.items() if value is not None}
    config = {name: value for name, value in params.items() if name not in options}
    return core.Request(
        prompt=request.prompt if isinstance(request.prompt, str) else [dict(turn) for turn in request.prompt],
        config=GenerationConfig(**config),
        strategy=request.strategy,
        options={name: value for name, value in params.items() if name in options},
        cache=request.cache,
        cache_options=dict(request.cache_params),
        top_n=request.top_n,
        seed=request.seed,
    )
