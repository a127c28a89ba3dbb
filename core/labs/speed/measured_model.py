"""The measured model, its draft model, and the timing of one row."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import torch

from decodescope.core.decoding.speculation.drafters.compatibility import why_not_draft
from decodescope.core.errors import OutOfMemoryError
from decodescope.core.explain.words import size
from decodescope.core.generation.running import Result, run
from decodescope.core.labs.speed.events import MeasurementRequest, Row, RowMeasurement, SpeedReference
from decodescope.core.models import catalog, model_entry
from decodescope.core.models.config_validation import PACKED
from decodescope.core.models.devices import choose_device
from decodescope.core.models.loaded_model import LoadedModel, load
from decodescope.core.models.model_entry import ModelEntry, free_memory, has_room, weight_bytes
from decodescope.core.request import Request
from decodescope.core.system.gpu import free_device_bytes, synchronize
from decodescope.resources.language import tr

_MIN_BYTES, _MAX_BYTES = 2**20, 2**29
"""Minimum and maximum bytes of the block."""
_REPEATS = 5


def measure_bandwidth(size: int, device: torch.device) -> float:
    """Return bytes per second, the best of several reads of a block of `size` bytes (at most 512 MiB).

    A block that fits into the processor's cache is read from there, as weights of that size are.
    """
    rows = max(1, min(max(size, _MIN_BYTES), _MAX_BYTES) // (4 * _WIDTH))
    block, row = torch.ones(rows, _WIDTH, device=device), torch.ones(_WIDTH, device=device)
    with torch.inference_mode():
        torch.mv(block, row)
        return block.numel() * block.element_size() / min(_time_read(block, row) for _ in range(_REPEATS))


_WIDTH = 1024


def _time_read(block: torch.Tensor, row: torch.Tensor) -> float:
    """Return the time of one product, which reads every number once, like a layer's."""
    synchronize(block.device)
    began = time.perf_counter()
    torch.mv(block, row)
    synchronize(block.device)
    return time.perf_counter() - began


_MIN_TOKENS, _MAX_TOKENS = 8, 64
"""Minimum and maximum tokens of a repeat."""
_WARMUP_TOKENS = 6
"""Tokens of warm-up runs, and of the run that determines how many fit into a repeat."""
_GREEDY = {"do_sample": False}


class MeasurementCancelled(Exception):
    """The measurement was cancelled."""


class TimedRun(NamedTuple):
    """The results of a request's repeats."""

    speeds: tuple[float, ...]
    last: Result


class MeasuredModel:
    """Loads the model when a row first needs it, and times requests on it."""

    def __init__(self, settings: MeasurementRequest, cancel: threading.Event) -> None:
        self.settings, self._cancel = settings, cancel
        self._baseline: TimedRun | None = None
        self._base: LoadedModel | None = None
        self._offloaded: LoadedModel | None = None
        self.sequences_by_row: dict[Row, tuple[int, ...]] = {}
        """Sequences written by rows that use other engines."""
        self._bandwidths: dict[int, float] = {}

    @property
    def base(self) -> LoadedModel:
        """The model as specified. Raises DecodescopeError."""
        if self._base is None:
            self._base = self.load_as(self.settings.weights)
        return self._base

    @property
    def offloaded(self) -> LoadedModel:
        """The model with as many layers as possible offloaded to disk. Raises DecodescopeError."""
        if self._offloaded is None:
            settings = self.settings
            wish = "auto" if settings.weights in PACKED else settings.weights
            self._offloaded = load(
                settings.model, device="cpu", dtype=settings.dtype, weights=wish, allow_pickle=settings.allow_pickle,
                allow_remote_code=settings.allow_remote_code, memory_limit=0,
            )  # fmt: skip
        return self._offloaded

    def release_offloaded(self) -> None:
        """Release the offloaded model."""
        self._offloaded = None

    def load_as(self, weights: str) -> LoadedModel:
        """Load the model with these weights if memory allows. Raises DecodescopeError."""
        settings = self.settings
        device = choose_device(settings.device, needs_cpu=weights in tuple(PACKED))
        needed, free = weight_bytes(self.entry, weights), free_device_bytes(device)
        free = free_memory() if free is None else free
        if not has_room(needed, free):
            raise OutOfMemoryError(
                tr("Its weights need {needed}, but only {free} are free.").format(needed=size(needed), free=size(free))
            )
        return load(
            settings.model, device=settings.device, dtype=settings.dtype, weights=weights,
            allow_pickle=settings.allow_pickle, allow_remote_code=settings.allow_remote_code,
        )  # fmt: skip

    @cached_property
    def entry(self) -> ModelEntry:
        """Facts about the model that are available without loading it."""
        return model_entry.describe(catalog.locate(self.settings.model), self.settings.model, "folder")

    @cached_property
    def draft(self) -> LoadedModel | None:
        """The draft model, or None. Raises DecodescopeError if the specified one does not fit."""
        return self.find_draft(self.base)

    def find_draft(self, model: LoadedModel) -> LoadedModel | None:
        """Return a draft model for this model."""
        if name := self.settings.draft:
            return load(name, device=str(model.device))
        for name in _draft_candidates(self.entry):
            found = load(name, device=str(model.device))
            if why_not_draft(model, found) is None:
                return found
        return None

    def bandwidth(self, model: LoadedModel) -> float:
        """Return the bytes per second at which a block as large as the model's weights is read."""
        weighs = model.weight_bytes
        if weighs not in self._bandwidths:
            self._bandwidths[weighs] = measure_bandwidth(weighs, model.device)
        return self._bandwidths[weighs]

    @cached_property
    def tokens(self) -> int:
        """Number of tokens that fit into the time of a repeat."""
        tried = self.run_once(self.base, _WARMUP_TOKENS)
        speed = tried.metrics.decode_tokens_per_second or 1.0
        room = (self.base.context or _MAX_TOKENS * 4) - tried.metrics.prompt_tokens
        return max(_MIN_TOKENS, min(_MAX_TOKENS, round(speed * self.settings.seconds), room))

    @property
    def baseline(self) -> TimedRun:
        """Timing of one text, token by token: the reference of most techniques."""
        if self._baseline is None:
            self._baseline = self.time_request(self.base)
        return self._baseline

    def reference_events(self) -> Iterator[SpeedReference]:
        """Yield the reference event; nothing if the model does not fit into memory."""
        try:
            base = self.base
        except OutOfMemoryError:
            return
        yield SpeedReference(
            base.name, str(base.device), base.weights, base.weight_bytes, self.bandwidth(base),
            torch.get_num_threads(), self.tokens, self.draft.name if self.draft is not None else "",
        )  # fmt: skip

    def time_request(
        self,
        model: LoadedModel,
        request: Request | None = None,
        warmup_tokens: int = _WARMUP_TOKENS,
        tokens: int | None = None,
    ) -> TimedRun:
        """Time the repeats of a request after a warm-up. Raises MeasurementCancelled, DecodescopeError."""
        self.run_once(model, warmup_tokens, request)
        results = [self.run_once(model, tokens or self.tokens, request) for _ in range(self.settings.repeats)]
        return TimedRun(tuple(found.metrics.decode_tokens_per_second or 0.0 for found in results), results[-1])

    def time_against_baseline(
        self, request: Request, warmup_tokens: int = _WARMUP_TOKENS, model: LoadedModel | None = None
    ) -> tuple[TimedRun, tuple[float, ...]]:
        """Time the repeats of a request interleaved with the baseline on `base`, so that disturbances affect both.

        Raises MeasurementCancelled, DecodescopeError.
        """
        model = model or self.base
        self.run_once(model, warmup_tokens, request)
        pairs = [
            (self.run_once(self.base, self.tokens), self.run_once(model, self.tokens, request))
            for _ in range(self.settings.repeats)
        ]
        plain, own = (
            tuple(found.metrics.decode_tokens_per_second or 0.0 for found in each) for each in zip(*pairs, strict=True)
        )
        return TimedRun(own, pairs[-1][1]), plain

    def run_once(self, model: LoadedModel, tokens: int, like: Request | None = None) -> Result:
        """Run exactly this many tokens, greedily unless the request says otherwise. Raises MeasurementCancelled,
        DecodescopeError.
        """
        like = like or self.build_request()
        more = like.config if isinstance(like.config, Mapping) else {}
        config = {**_GREEDY, "max_new_tokens": tokens, "min_new_tokens": tokens, **more}
        found = run(model, replace(like, config=config), self._cancel)
        self.check_cancelled()
        return found

    def build_request(self, strategy: str | None = None, **config: object) -> Request:
        """Return a request for the prompt with a strategy, or with settings that differ from greedy decoding."""
        return Request(self.settings.prompt, config=config, strategy=strategy, top_n=0, memory_fallback=False)

    def check_cancelled(self) -> None:
        """Raise MeasurementCancelled if the measurement was cancelled."""
        if self._cancel.is_set():
            raise MeasurementCancelled

    def to_measured(
        self, row: Row, timed_run: TimedRun, model: LoadedModel, base: float = 0.0, texts: int = 1
    ) -> RowMeasurement:
        """Return the row's result, with the limit of `texts` tokens for each read of the weights."""
        metrics = timed_run.last.metrics
        return RowMeasurement(
            row,
            timed_run.speeds,
            model.weight_bytes + metrics.cache_peak_bytes,
            self.bandwidth(model) / model.weight_bytes * texts,
            texts,
            per_pass=metrics.tokens_per_target_pass if texts == 1 else None,
            base=base,
        )


def _draft_candidates(entry: ModelEntry) -> list[str]:
    """Return models on this disk with the same tokenizer and at most a third of the weights, the largest first."""
    if not catalog.tokenizer_of(entry.path):
        return []
    found = [
        one
        for one in catalog.bundled()
        if 3 * one.bytes <= entry.bytes and one.problem is None and catalog.same_tokenizer(entry, one)
    ]
    return [one.name for one in sorted(found, key=lambda one: -one.bytes)]


def free_unused_memory() -> None:
    """Free the memory of models that are no longer referenced."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
