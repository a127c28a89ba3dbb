"""The core as the worker sees it. Only ever touched from the worker's thread: it imports torch."""

from __future__ import annotations

import importlib.util
import os
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from app.session.worker_jobs import (
    describe,
    model_missing_error,
    replay_step,
    score_stream,
    serve_prefix,
    trim_chat,
    with_phrase_ids,
)
from app.state.worker_messages import (
    ALL_IN_MEMORY,
    BackendRequest,
    LoadRequest,
    MemoryEstimate,
    ModelInfo,
    PrefixRequest,
    PrefixResult,
    RunRequest,
    StepReplayRequest,
    is_quantized,
)
from core.errors import InsideError, ModelTooLargeError
from resources.language import current_language, tr

if TYPE_CHECKING:
    import core
    from app.session.layer_jobs import PartialResult
    from app.state.layer_queries import ModelQuery
    from core.events import Event

LIBRARY = "libtorch_cpu.so"
"""By far the largest: `import` would open it with the lock held, which takes a second on a busy machine."""


def open_libraries() -> bool:
    """Have the loader open torch's main library; the import that follows then finds it open. True when it did.

    Calling `dlopen` as a foreign function releases the lock, opening a library through ctypes does not. Only on
    Linux; elsewhere, or when torch is laid out differently, nothing happens and the import does all the work.
    """
    spec = importlib.util.find_spec("torch") if sys.platform == "linux" and "torch" not in sys.modules else None
    if spec is None or spec.origin is None:
        return False
    path = Path(spec.origin).parent / "lib" / LIBRARY
    if not path.exists():
        return False
    import ctypes

    dlopen = ctypes.CDLL(None).dlopen
    dlopen.restype, dlopen.argtypes = ctypes.c_void_p, (ctypes.c_char_p, ctypes.c_int)
    return dlopen(os.fsencode(path), os.RTLD_NOW) is not None


class Engine(Protocol):
    """What the worker needs; tests bring one that follows a script."""

    def load(self, request: LoadRequest) -> ModelInfo:
        """Hold that model ready. Raises core.errors.DecodescopeError."""
        ...

    def prepare(self, request: RunRequest) -> RunRequest:
        """The run as the loaded model can do it: the same object, or one whose chat has lost the turns that have no
        place."""
        ...

    def stream(self, request: RunRequest, cancel: threading.Event) -> Iterator[Event]:
        """The events of a run that was prepared; looks at `cancel` before every forward pass."""
        ...

    def handle_prefix(self, request: PrefixRequest) -> PrefixResult:
        """Save or load what was read. Raises core.errors.DecodescopeError."""
        ...

    def replay_step(self, request: StepReplayRequest) -> core.WhatIf:
        """A step under other settings. Raises core.errors.DecodescopeError."""
        ...

    def estimate_memory(self, request: RunRequest) -> MemoryEstimate | None:
        """What the run would take in memory; loads nothing for it. Raises core.errors.DecodescopeError."""
        ...

    def has_native_step(self, request: BackendRequest) -> bool:
        """Whether that model's steps are taken in machine code; False for one that is not held."""
        ...

    def inspect_layers(self, request: ModelQuery) -> Iterator[PartialResult]:
        """What is found inside a step, in parts; ends early once the request is cancelled. Raises
        core.errors.DecodescopeError."""
        ...


class CoreEngine:
    """Loads one model at a time and streams runs from it."""

    def __init__(self) -> None:
        self._model: core.LoadedModel | None = None
        self._loaded: LoadRequest | None = None
        self._info: ModelInfo | None = None
        self._language = ""
        """In which it was described: why it refuses a strategy is a sentence."""
        self._drafters: dict[str, core.LoadedModel] = {}
        self._prefixes: core.PrefixStore | None = None
        self._scores: core.KeptScores | None = None
        """What came into the funnel of the last run's steps."""
        self._blueprints: dict[LoadRequest, core.LoadedModel] = {}
        self._throughput_texts: dict[tuple[LoadRequest, bool], str] = {}
        """How quick models with layers on the disk are, and whether they were in memory when it was found out."""

    def load(self, request: LoadRequest) -> ModelInfo:
        """The model of `request`, from memory when it is the one held already."""
        if self._info is None or request != self._loaded:
            self._unload()
            self._model = _load_checked(request)
            self._loaded, self._info = request, None
        if self._info is None or self._language != current_language():
            self._language = current_language()
            self._info = describe(self._loaded_for(request), request)
        return self._info

    def prepare(self, request: RunRequest) -> RunRequest:
        """The run without the turns of its chat that have no place in the context."""
        model = self._loaded_for(request.load)
        return trim_chat(model, request)

    def stream(self, request: RunRequest, cancel: threading.Event) -> Iterator[Event]:
        """The run's events, from the model the request names."""
        import core

        model = self._loaded_for(request.load)
        if request.scored:
            return score_stream(model, request, self._comparison_model(request), cancel)
        return core.stream(
            model,
            with_phrase_ids(model, request),
            cancel=cancel,
            prefixes=self._prefix_store(request.prefix_budget),
            drafters=self._load_drafts(request),
            scores=self._score_cache() if request.top_n else None,
        )

    def handle_prefix(self, request: PrefixRequest) -> PrefixResult:
        """Write what this model has read to a file, or read such a file."""
        if request.ids is None:
            self.load(request.load)
        return serve_prefix(self._loaded_for(request.load), self._prefix_store(request.budget), request)

    def replay_step(self, request: StepReplayRequest) -> core.WhatIf:
        """From the scores that the run has left, else from a pass of its model, where that is here."""
        if self._model is None or self._loaded is None or self._loaded.model != request.request.model:
            raise model_missing_error(request.request.model)
        return replay_step(self._model, request, self._load_drafts(request.request), self._scores)

    def estimate_memory(self, request: RunRequest) -> MemoryEstimate:
        """By the models in memory where they are there, else by their blueprints."""
        import core

        model = self._model_or_blueprint(request.load)
        drafts = [self._model_or_blueprint(_draft_load_request(request, name)) for name in request.draft_names]
        held = [*self._drafters.values(), *([self._model] if self._model is not None else [])]
        loaded_bytes = sum(known.weight_bytes for known in (model, *drafts) if known in held)
        estimate = core.estimate(model, with_phrase_ids(model, request), loaded_bytes, drafters=drafts)
        pace = self._throughput_text(request.load, model)
        return MemoryEstimate(
            estimate.figures, estimate.advice, estimate.tokens, estimate.rows, estimate.needed, estimate.cache, pace
        )

    def _throughput_text(self, request: LoadRequest, model: core.LoadedModel) -> str:
        """In a sentence; found out once. Raises core.errors.DecodescopeError."""
        import core

        key = request, model is self._model
        if key not in self._throughput_texts:
            foretold = core.foretell(model)
            self._throughput_texts[key] = foretold.sentence if foretold is not None else ""
        return self._throughput_texts[key]

    def has_native_step(self, request: BackendRequest) -> bool:
        """By trying it, where nobody has."""
        import core

        is_held = self._loaded is not None and self._loaded.model == request.model
        return is_held and self._model is not None and core.has_quick_step(self._model)

    def inspect_layers(self, request: ModelQuery) -> Iterator[PartialResult]:
        """By the model in memory, where it is the run's own."""
        if self._model is None or self._loaded != request.load:
            raise InsideError(
                tr("{model} is not loaded any more, and nobody else can say how it decided.").format(
                    model=request.load.model
                ),
                tr("Choose it again, or run this again, then look."),
            )
        from app.session.layer_jobs import inspect_layers

        yield from inspect_layers(self._model, request)

    def _loaded_for(self, request: LoadRequest) -> core.LoadedModel:
        """The model in memory. Raises CacheError when it is another one than asked for."""
        if self._model is None or self._loaded != request:
            raise _not_loaded_error()
        return self._model

    def _model_or_blueprint(self, request: LoadRequest) -> core.LoadedModel:
        """A model to reckon with."""
        import core

        if request == self._loaded and self._model is not None:
            return self._model
        if request.model in self._drafters:
            return self._drafters[request.model]
        if request not in self._blueprints:
            open_libraries()
            self._blueprints[request] = core.blueprint(
                request.model,
                device=request.device,
                dtype=request.dtype,
                weights=request.weights,
                allow_remote_code=request.allow_remote_code,
                memory_limit=request.memory_limit,
            )
        return self._blueprints[request]

    def _prefix_store(self, budget: int) -> core.PrefixStore | None:
        """What earlier runs of this model have read, within `budget` bytes; None for a run that begins from nothing."""
        import core

        if not budget:
            return None
        if self._prefixes is None:
            self._prefixes = core.PrefixStore()
        self._prefixes.set_budget(budget)
        return self._prefixes

    def _score_cache(self) -> core.KeptScores:
        import core

        if self._scores is None:
            self._scores = core.KeptScores()
        return self._scores

    def _unload(self) -> None:
        """Let the old model go before the new one takes its memory."""
        self._model = self._loaded = self._info = None
        self._drafters = {}
        self._prefixes = self._scores = None

    def _comparison_model(self, request: RunRequest) -> core.LoadedModel | None:
        """The model that reads along; it keeps the place of a draft."""
        if not request.second:
            return None
        if request.second == request.model and self._model is not None and not is_quantized(request.load.weights):
            return self._model
        return self._load_drafts(replace(request, draft_names=(request.second,)))[0]

    def _load_drafts(self, request: RunRequest) -> list[core.LoadedModel]:
        """The run's draft models, from memory where they are; others are let go."""
        drafters = {name: self._drafters[name] for name in request.draft_names if name in self._drafters}
        self._drafters = drafters
        for name in request.draft_names:
            if name not in drafters:
                drafters[name] = _load_model(_draft_load_request(request, name))
        return [drafters[name] for name in request.draft_names]


def _not_loaded_error() -> Exception:
    from core.errors import CacheError

    return CacheError(tr("The model of this run is not loaded any more, and what it has read went with it."),
                      tr("Run it again, then save."))  # fmt: skip


def _draft_load_request(request: RunRequest, name: str) -> LoadRequest:
    """How a draft model is loaded: where the run's own is, without its permissions and its kind of weights, whole in
    memory."""
    return replace(
        request.load, model=name, weights="auto", memory=ALL_IN_MEMORY, allow_pickle=False, allow_remote_code=False
    )


def _load_model(request: LoadRequest) -> core.LoadedModel:
    open_libraries()
    from transformers.utils import logging

    import core

    # It would write to a terminal that a window need not have; transformers leaves it unannotated.
    logging.disable_progress_bar()
    model = core.load(
        request.model,
        device=request.device,
        dtype=request.dtype,
        weights=request.weights,
        allow_pickle=request.allow_pickle,
        allow_remote_code=request.allow_remote_code,
        memory_limit=request.memory_limit,
    )
    assert isinstance(model, core.LoadedModel)  # what an address stands for never comes here
    return model


def _check_memory(request: LoadRequest) -> None:
    """That a model which is to be in memory whole finds room there. Raises core.errors.ModelTooLargeError, and why it
    cannot be loaded at all."""
    import core

    if request.memory != ALL_IN_MEMORY:
        return
    fit = core.catalog.fits(core.catalog.inspect(request.model), request.weights)
    if fit.ok:
        return
    open_libraries()
    shape = core.blueprint(
        request.model, device=request.device, dtype=request.dtype, weights=request.weights,
        allow_remote_code=request.allow_remote_code,
    )  # fmt: skip
    if shape.device.type == "cpu" and shape.weight_bytes > fit.free:
        raise ModelTooLargeError(
            tr("The weights of {model} take {needed}, and {free} are free.").format(
                model=shape.name, needed=core.words.size(shape.weight_bytes), free=core.words.size(fit.free)
            ),
            tr("Have what does not fit read from the disk, keep its weights in fewer bits, or close other programs."),
        )


def _load_checked(request: LoadRequest) -> core.LoadedModel:
    import torch

    _check_memory(request)
    model = _load_model(request)
    torch.set_num_threads(request.threads or default_threads(model.parameters))
    return model


def default_threads(parameters: int) -> int:
    """One for a small model, whose steps are too short to share; else as many as there are processors, up to eight."""
    if parameters < 30_000_000:
        return 1
    from app.session.layer_jobs import usable_processors

    return usable_processors()
