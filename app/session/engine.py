"""The core engine, used by the worker. Call it only from the worker thread, as it imports torch."""

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
    export_model,
    model_missing_error,
    replay_step,
    score_stream,
    serve_prefix,
    trim_chat,
    with_phrase_ids,
)
from app.state.worker_messages import (
    ALL_IN_MEMORY,
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
"""The largest library: `import` would open it with the lock held, about a second on a busy machine."""


def open_libraries() -> bool:
    """Open torch's main library, so that the import that follows is quick; return True if done.

    Calling `dlopen` as a foreign function releases the lock; opening a library through ctypes does not. Linux only;
    does nothing elsewhere or if torch is laid out differently.
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
    """Engine interface of the worker; tests use a scripted one."""

    def load(self, request: LoadRequest) -> ModelInfo:
        """Load a model. Raises core.errors.DecodescopeError."""
        ...

    def prepare(self, request: RunRequest) -> RunRequest:
        """Return the request as the loaded model can run it: the same object, or one without the chat turns that do not
        fit.
        """
        ...

    def stream(self, request: RunRequest, cancel: threading.Event) -> Iterator[Event]:
        """Yield the events of a prepared run; check `cancel` before every forward pass."""
        ...

    def handle_prefix(self, request: PrefixRequest) -> PrefixResult:
        """Save or load a prefix file. Raises core.errors.DecodescopeError."""
        ...

    def export_model(self, request: ModelExportRequest) -> ModelExportResult:
        """Write the model as a GGUF file; load it first if it is not loaded. Raises core.errors.DecodescopeError."""
        ...

    def replay_step(self, request: StepReplayRequest) -> core.StepCounterfactual:
        """Replay a step with other settings. Raises core.errors.DecodescopeError."""
        ...

    def estimate_memory(self, request: RunRequest) -> MemoryEstimate | None:
        """Estimate the memory of a run without loading anything. Raises core.errors.DecodescopeError."""
        ...

    def has_native_step(self, request: BackendRequest) -> bool:
        """Return whether the model uses native decode steps; False if it is not loaded."""
        ...

    def check_adapter(self, request: AdapterRequest) -> AdapterInfo | None:
        """Load an adapter for the loaded model and describe it; None if the model is not loaded. Raises
        core.errors.DecodescopeError.
        """
        ...

    def inspect_layers(self, request: ModelQuery) -> Iterator[PartialResult]:
        """Yield partial results of a layer inspection; stop early when cancelled. Raises
        core.errors.DecodescopeError.
        """
        ...


class CoreEngine:
    """Loads one model at a time and streams its runs."""

    def __init__(self) -> None:
        self._model: core.LoadedModel | None = None
        self._loaded: LoadRequest | None = None
        self._info: ModelInfo | None = None
        self._language = ""
        """Language of the model info, which contains translated reasons."""
        self._drafters: dict[str, core.LoadedModel] = {}
        self._prefixes: core.PrefixStore | None = None
        self._scores: core.ScoreCache | None = None
        """Logits that entered the processors in the last run."""
        self._blueprints: dict[LoadRequest, core.LoadedModel] = {}
        self._throughput_texts: dict[tuple[LoadRequest, bool], str] = {}
        """Predicted speeds of models with layers on the disk, and whether the model was loaded for the prediction."""

    def load(self, request: LoadRequest) -> ModelInfo:
        """Load the model of `request`, unless it is loaded already."""
        if self._info is None or request != self._loaded:
            self._unload()
            self._model = _load_checked(request)
            self._loaded, self._info = request, None
        if self._info is None or self._language != current_language():
            self._language = current_language()
            self._info = describe(self._loaded_for(request), request)
        return self._info

    def prepare(self, request: RunRequest) -> RunRequest:
        """Return the request without the chat turns that do not fit the context."""
        model = self._loaded_for(request.load)
        return trim_chat(model, request)

    def stream(self, request: RunRequest, cancel: threading.Event) -> Iterator[Event]:
        """Return the events of the run."""
        import core

        model = self._loaded_for(request.load)
        model.adapters.set(request.adapters or (), request.load.allow_pickle)
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
        """Save the tokens that this model has read to a file, or load such a file."""
        if request.ids is None:
            self.load(request.load)
        return serve_prefix(self._loaded_for(request.load), self._prefix_store(request.budget), request)

    def export_model(self, request: ModelExportRequest) -> ModelExportResult:
        """Write the model as a GGUF file; load it first if it is not loaded."""
        self.load(request.load)
        return export_model(self._loaded_for(request.load), request)

    def replay_step(self, request: StepReplayRequest) -> core.StepCounterfactual:
        """Replay a step from the stored logits, or with a forward pass if the model is loaded."""
        if self._model is None or self._loaded is None or self._loaded.model != request.request.model:
            raise model_missing_error(request.request.model)
        return replay_step(self._model, request, self._load_drafts(request.request), self._scores)

    def estimate_memory(self, request: RunRequest) -> MemoryEstimate:
        """Estimate with the loaded models, or with blueprints of those not loaded."""
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
        """Return the predicted speed as a sentence, computed once. Raises core.errors.DecodescopeError."""
        import core

        key = request, model is self._model
        if key not in self._throughput_texts:
            throughput = core.estimate_throughput(model)
            self._throughput_texts[key] = throughput.sentence if throughput is not None else ""
        return self._throughput_texts[key]

    def has_native_step(self, request: BackendRequest) -> bool:
        """Return whether native decode steps work for the loaded model, trying them once if needed."""
        import core

        is_held = self._loaded is not None and self._loaded.model == request.model
        return is_held and self._model is not None and core.has_native_step(self._model)

    def check_adapter(self, request: AdapterRequest) -> AdapterInfo | None:
        """Load an adapter for the loaded model, again if its files have changed, and describe it."""
        if self._model is None or self._loaded != request.load:
            return None
        if self._model.adapters.is_outdated(request.path):
            self._model.adapters.remove(request.path)
        found = self._model.adapters.load(request.path, request.load.allow_pickle)
        return AdapterInfo(found.kind, found.base, found.ranks, len(found.layers), found.nbytes)

    def inspect_layers(self, request: ModelQuery) -> Iterator[PartialResult]:
        """Inspect with the loaded model, if it is that of the run."""
        if self._model is None or self._loaded != request.load:
            raise InsideError(
                tr("{model} is no longer loaded, so this step cannot be inspected.").format(model=request.load.model),
                tr("Select the model again, or repeat the run."),
            )
        from app.session.layer_jobs import inspect_layers

        self._model.adapters.set(request.adapters)
        yield from inspect_layers(self._model, request)

    def _loaded_for(self, request: LoadRequest) -> core.LoadedModel:
        """Return the loaded model. Raises CacheError if it is another one."""
        if self._model is None or self._loaded != request:
            raise _not_loaded_error()
        return self._model

    def _model_or_blueprint(self, request: LoadRequest) -> core.LoadedModel:
        """Return a loaded model, or a blueprint for estimates."""
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
        """Return the prefix cache limited to `budget` bytes; None if the budget is 0."""
        import core

        if not budget:
            return None
        if self._prefixes is None:
            self._prefixes = core.PrefixStore()
        self._prefixes.set_budget(budget)
        return self._prefixes

    def _score_cache(self) -> core.ScoreCache:
        import core

        if self._scores is None:
            self._scores = core.ScoreCache()
        return self._scores

    def _unload(self) -> None:
        """Release the old model before the new one needs its memory."""
        self._model = self._loaded = self._info = None
        self._drafters = {}
        self._prefixes = self._scores = None

    def _comparison_model(self, request: RunRequest) -> core.LoadedModel | None:
        """Return the comparison model; it is kept like a draft model."""
        if not request.second:
            return None
        if request.second == request.model and self._model is not None and not is_quantized(request.load.weights):
            return self._model
        return self._load_drafts(replace(request, draft_names=(request.second,)))[0]

    def _load_drafts(self, request: RunRequest) -> list[core.LoadedModel]:
        """Return the run's draft models, loading missing ones and releasing others."""
        drafters = {name: self._drafters[name] for name in request.draft_names if name in self._drafters}
        self._drafters = drafters
        for name in request.draft_names:
            if name not in drafters:
                wanted = _draft_load_request(request, name)
                # With packed weights or a memory limit, the device “auto” is the CPU, which the draft does not require.
                device = wanted.device if self._model is None else str(self._model.device)
                drafters[name] = _load_model(replace(wanted, device=device))
        return [drafters[name] for name in request.draft_names]


def _not_loaded_error() -> Exception:
    from core.errors import CacheError

    return CacheError(tr("The model of this run is no longer loaded, and its cache is gone."),
                      tr("Repeat the run, then save."))  # fmt: skip


def _draft_load_request(request: RunRequest, name: str) -> LoadRequest:
    """Return the load request of a draft: on the same device, without permissions and weight format, fully in
    memory.
    """
    return replace(
        request.load, model=name, weights="auto", memory=ALL_IN_MEMORY, allow_pickle=False, allow_remote_code=False
    )


def _load_model(request: LoadRequest) -> core.LoadedModel:
    open_libraries()
    from transformers.utils import logging

    import core

    # It would write to a terminal, which may not exist; transformers leaves it unannotated.
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
    assert isinstance(model, core.LoadedModel)  # addresses of remote engines are handled elsewhere
    return model


def _check_memory(request: LoadRequest) -> None:
    """Check that a model fits in memory, unless it may stay on the disk. Raises core.errors.ModelTooLargeError, and
    other errors if it cannot be loaded.
    """
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
            tr("The weights of {model} need {needed}, but only {free} are free.").format(
                model=shape.name, needed=core.words.size(shape.weight_bytes), free=core.words.size(fit.free)
            ),
            tr("Keep part of them on the disk, choose a smaller weight format, or close other programs."),
        )


def _load_checked(request: LoadRequest) -> core.LoadedModel:
    import torch

    import core

    _check_memory(request)
    model = _load_model(request)
    torch.set_num_threads(request.threads or core.choose_threads(model))
    return model
