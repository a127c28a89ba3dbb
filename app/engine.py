"""The core as the worker sees it. Only ever touched from the worker's thread: it imports torch."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from app.preload import open_libraries
from app.requests import LoadRequest, ModelInfo, RunRequest

if TYPE_CHECKING:
    import core
    from core.events import Event


PHRASES = {"bad_words_ids"}
"""Settings that take several tokens in a row."""


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
        self._drafters: dict[str, core.LoadedModel] = {}
        self._prefixes: core.PrefixStore | None = None

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
        drafters = self._draft_with(request)
        prepared = replace(build_request(request, self._model, drafters), prefix_store=self._store(request))
        return core.stream(self._model, prepared, cancel=cancel)

    def _store(self, request: RunRequest) -> core.PrefixStore | None:
        """What earlier runs of this model have read, within the budget; None for a run that begins from nothing."""
        import core

        if not request.prefix_budget:
            return None
        if self._prefixes is None:
            self._prefixes = core.PrefixStore()
        self._prefixes.set_budget(request.prefix_budget)
        return self._prefixes

    def _forget(self) -> None:
        """Let the old model go before the new one takes its memory."""
        self._model = self._loaded = self._info = None
        self._drafters = {}
        self._prefixes = None

    def _draft_with(self, request: RunRequest) -> list[core.LoadedModel]:
        """The run's draft models, from memory where they are; others are let go."""
        kept = {name: self._drafters[name] for name in request.drafters if name in self._drafters}
        self._drafters = kept
        for name in request.drafters:
            if name not in kept:
                kept[name] = _read(replace(request.loading(), model=name, allow_pickle=False, allow_remote_code=False))
        return [kept[name] for name in request.drafters]


def _read(request: LoadRequest) -> core.LoadedModel:
    open_libraries()
    from transformers.utils import logging

    import core

    logging.disable_progress_bar()  # it would write to a terminal that a window need not have
    return core.load(
        request.model,
        device=request.device,
        dtype=request.dtype,
        allow_pickle=request.allow_pickle,
        allow_remote_code=request.allow_remote_code,
    )


def _load(request: LoadRequest) -> core.LoadedModel:
    import torch

    model = _read(request)
    torch.set_num_threads(request.threads or default_threads(model.parameters))
    return model


def default_threads(parameters: int) -> int:
    """One for a small model, whose steps are too short to share; else as many as there are processors, up to eight."""
    if parameters < 30_000_000:
        return 1
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
        dtype=str(model.dtype).removeprefix("torch."),
        threads=torch.get_num_threads() if model.device.type == "cpu" else 0,
        note=_why_here(request.device, model.device.type),
        parameters=model.parameters,
        context=model.context,
        vocabulary=model.vocabulary,
        has_chat=bool(getattr(model.tokenizer, "chat_template", None)),
        defaults=_own_defaults(model.generation_config),
        refused_strategies={name: why for name, why in refused.items() if why},
        refused_caches={name: why for name, why in caches.items() if why},
    )


def _why_here(wish: str, device: str) -> str:
    """Why a model runs on the CPU although the choice of a device was left open; empty elsewhere."""
    return "no GPU that this torch can use" if wish == "auto" and device == "cpu" else ""


def _own_defaults(config: Any) -> Mapping[str, Any]:
    """What the model's generation_config sets itself."""
    plain: dict[str, Any] = config.to_diff_dict()
    return {name: value for name, value in plain.items() if value is not None}


def build_request(
    request: RunRequest, model: core.LoadedModel, drafters: Sequence[core.LoadedModel] = ()
) -> core.Request:
    """The core's own request for what the panels describe. Raises ParameterError, StrategyError."""
    import core

    strategy = core.strategies.registry.get(request.strategy)
    known = {p.name: p for p in strategy.parameters} if strategy is not None else {}
    params = {name: _with_ids(name, value, model) for name, value in request.params.items() if value is not None}
    options = {name: value for name, value in params.items() if name in known and known[name].option}
    config = {name: value for name, value in params.items() if name not in options}
    flags = dict(strategy.flags) if strategy is not None else {}
    return core.Request(
        prompt=request.prompt if isinstance(request.prompt, str) else [dict(turn) for turn in request.prompt],
        config=core.make_config({**flags, **config}),
        strategy=request.strategy,
        options=options,
        cache=request.cache,
        cache_options=dict(request.cache_params),
        drafters=tuple(drafters),
        top_n=request.top_n,
        seed=request.seed,
        memory_fallback=request.memory_fallback,
    )


def _with_ids(name: str, value: Any, model: core.LoadedModel) -> Any:
    """Phrases that people typed where the core wants token ids, as ids. Raises ParameterError."""
    typed = isinstance(value, list | tuple) and bool(value) and all(isinstance(item, str) for item in value)
    if name == "stop_strings" or not typed:
        return value
    from core.errors import ParameterError

    if model.tokenizer is None:
        raise ParameterError(f"{name} holds text, and {model.name} has no tokenizer.", "Write token ids.", name)
    if name in PHRASES:  # a word inside a sentence begins with its space, at the start of a line without
        spellings = [spelling for text in value for spelling in (text, f" {text.lstrip()}")]
        return _unique(model.tokenizer.encode(text, add_special_tokens=False) for text in spellings)
    pieces = [model.tokenizer.encode(text, add_special_tokens=False) for text in value]
    if long := [text for text, ids in zip(value, pieces, strict=True) if len(ids) != 1]:
        raise ParameterError(
            f"{name} takes single tokens; “{long[0]}” is {len(pieces[value.index(long[0])])} of them.",
            "Write token ids, or text that is one token.", name,
        )  # fmt: skip
    return [ids[0] for ids in pieces]


def _unique(lists: Iterable[list[int]]) -> list[list[int]]:
    return [list(ids) for ids in dict.fromkeys(tuple(ids) for ids in lists) if ids]
