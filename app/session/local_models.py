"""The models on this machine. Call it only from the worker thread, as it imports torch."""

from __future__ import annotations

import importlib.util
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from decodescope.app.session.worker_jobs import describe
from decodescope.app.state.worker_messages import ALL_IN_MEMORY, LoadRequest, ModelInfo, RunRequest, is_quantized
from decodescope.core.errors import CacheError, ModelTooLargeError
from decodescope.resources.language import current_language, tr

if TYPE_CHECKING:
    from decodescope import core

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


class LocalModels:
    """Loads one model at a time, with its draft models and stores."""

    def __init__(self) -> None:
        self.scores: core.ScoreCache | None = None
        """Logits that entered the processors in the last run."""
        self._model: core.LoadedModel | None = None
        self._loaded: LoadRequest | None = None
        self._info: ModelInfo | None = None
        self._language = ""
        """Language of the model info, which contains translated reasons."""
        self._drafters: dict[str, core.LoadedModel] = {}
        self._prefixes: core.PrefixStore | None = None
        self._blueprints: dict[LoadRequest, core.LoadedModel] = {}
        self._throughput_texts: dict[tuple[LoadRequest, bool], str] = {}
        """Predicted speeds of models with layers on the disk, and whether the model was loaded for the prediction."""

    def load(self, request: LoadRequest) -> ModelInfo:
        """Load the model of `request`, unless it is loaded already and as it would be loaded now."""
        if self._info is None or request != self._loaded or _is_outdated(self._model):
            self._unload()
            self._model = _load_checked(request)
            self._loaded, self._info = request, None
        if self._info is None or self._language != current_language():
            self._language = current_language()
            self._info = describe(self.loaded_for(request), request)
        return self._info

    def find(self, model: LoadRequest | str) -> core.LoadedModel | None:
        """Return the loaded model if it is the one of this request or of this name."""
        if self._loaded is None or model not in (self._loaded, self._loaded.model):
            return None
        return self._model

    def loaded_for(self, request: LoadRequest) -> core.LoadedModel:
        """Return the loaded model. Raises CacheError if it is another one."""
        model = self.find(request)
        if model is None:
            raise CacheError(tr("The model of this run is no longer loaded, and its cache is gone."),
                             tr("Repeat the run, then save."))  # fmt: skip
        return model

    def is_loaded(self, model: core.LoadedModel) -> bool:
        """Return whether its weights are in memory, as the model or as a draft model."""
        return model is self._model or model in self._drafters.values()

    def models_or_blueprints(self, request: RunRequest) -> list[core.LoadedModel]:
        """Return the run's model, followed by its draft models; blueprints for estimates of those not loaded."""
        drafts = (_draft_load_request(request, name) for name in request.draft_names)
        return [self._model_or_blueprint(load) for load in (request.load, *drafts)]

    def throughput_text(self, request: LoadRequest, model: core.LoadedModel) -> str:
        """Return the predicted speed of a model or its blueprint as a sentence, computed once. Raises
        core.errors.DecodescopeError.
        """
        from decodescope import core

        key = request, model is self._model
        if key not in self._throughput_texts:
            throughput = core.estimate_throughput(model)
            self._throughput_texts[key] = throughput.sentence if throughput is not None else ""
        return self._throughput_texts[key]

    def _model_or_blueprint(self, request: LoadRequest) -> core.LoadedModel:
        """Return a loaded model, or a blueprint for estimates."""
        from decodescope import core

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

    def prefix_store(self, budget: int) -> core.PrefixStore | None:
        """Return the prefix cache limited to `budget` bytes; None if the budget is 0."""
        from decodescope import core

        if not budget:
            return None
        if self._prefixes is None:
            self._prefixes = core.PrefixStore()
        self._prefixes.set_budget(budget)
        return self._prefixes

    def score_cache(self) -> core.ScoreCache:
        """Return `scores`, created on first use."""
        from decodescope import core

        if self.scores is None:
            self.scores = core.ScoreCache()
        return self.scores

    def _unload(self) -> None:
        """Release the old model before the new one needs its memory."""
        self._model = self._loaded = self._info = None
        self._drafters = {}
        self._prefixes = self.scores = None

    def comparison_model(self, request: RunRequest) -> core.LoadedModel | None:
        """Return the comparison model; it is kept like a draft model."""
        if not request.second:
            return None
        if request.second == request.model and self._model is not None and not is_quantized(request.load.weights):
            return self._model
        return self.load_drafters(replace(request, draft_names=(request.second,)))[0]

    def load_beside(self, request: LoadRequest) -> core.LoadedModel:
        """Load a model for one comparison, beside the selected one; it is not kept. Raises ModelTooLargeError."""
        _check_memory(request)
        return _load_model(request)

    def load_other_beside(self, request: RunRequest, name: str) -> core.LoadedModel:
        """Load another model as `load_beside`, on the device of the request and without its permissions."""
        return self.load_beside(_draft_load_request(request, name))

    def load_drafters(self, request: RunRequest) -> list[core.LoadedModel]:
        """Return the run's draft models, loading missing ones and releasing others."""
        kept = {name: draft for name, draft in self._drafters.items() if not _is_outdated(draft)}
        drafters = {name: kept[name] for name in request.draft_names if name in kept}
        self._drafters = drafters
        for name in request.draft_names:
            if name not in drafters:
                wanted = _draft_load_request(request, name)
                # With packed weights or a memory limit, the device “auto” is the CPU, which the draft does not require.
                device = wanted.device if self._model is None else str(self._model.device)
                drafters[name] = _load_model(replace(wanted, device=device))
        return [drafters[name] for name in request.draft_names]


def _is_outdated(model: core.LoadedModel | None) -> bool:
    """Return whether the weights were unpacked because there was no native code, which has been compiled since."""
    from decodescope import core

    return model is not None and bool(model.unpacked_format) and core.kernel_status().state == "ready"


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

    from decodescope import core

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
    from decodescope import core

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

    from decodescope import core

    _check_memory(request)
    model = _load_model(request)
    torch.set_num_threads(request.threads or core.choose_threads(model))
    return model
