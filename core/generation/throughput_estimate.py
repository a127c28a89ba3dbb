"""Predict the speed of a disk-offloaded model before a run.

A few steps of a real run are timed with and without the disk: reading while computing is slower than reading alone, and
choosing a token also takes time.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

import torch
from torch.nn import functional as F

from decodescope.core.checks.arguments import check_cancel
from decodescope.core.decoding.prompt import encode
from decodescope.core.errors import DecodescopeError, PromptError
from decodescope.core.generation.running import run
from decodescope.core.models.layer_offload import DiskOffload, OffloadedLayer
from decodescope.core.models.loaded_model import Blueprint, LoadedModel, check_model
from decodescope.core.models.text_decoder import dummy_encoder_outputs
from decodescope.core.request import Request
from decodescope.core.system.torch_state import isolated, isolated_iterator
from decodescope.resources.language import tr

if TYPE_CHECKING:
    from decodescope.core.models.loaded_model import LoadedModel

_SAMPLE_BYTES = 2**28
"""Bytes that a timed step reads; of a larger model only a part is read."""
_TIMED_STEPS = 3
"""Timed steps of each short run, not counting the first pass."""
_MIN_ROUNDS, _MIN_SECONDS = 2, 1.5
"""Minimum number and duration of short runs with and without the disk: other programs cause fluctuations."""
_SLOW_PASS_SECONDS = 0.5
"""Pass duration in seconds from which one pass of each kind is accurate enough."""
_LAYER_OVERHEAD_SECONDS = 4e-4
"""Estimated seconds per layer besides its matrix products, for models that cannot be run."""


@dataclass(frozen=True, slots=True)
class ThroughputEstimate:
    """The predicted time of a forward pass: reading from disk, plus everything else."""

    read_bytes: int
    """Bytes read from disk in each pass."""
    kept_bytes: int
    """Bytes of weights in memory."""
    read_speed: float
    """Reading speed in bytes per second while the model computes."""
    computing: float
    """Seconds of a step without reading."""
    kept_layers: int = 0
    """Number of layers in memory."""
    layers: int = 0
    """Total number of layers."""

    @property
    def seconds(self) -> float:
        """Seconds of one pass."""
        return self.read_bytes / self.read_speed + self.computing

    @property
    def tokens_per_second(self) -> float:
        """Speed without drafts; drafts can add several tokens per pass."""
        return 1 / self.seconds

    @property
    def limit(self) -> float:
        """Tokens per second if reading took all the time."""
        return self.read_speed / self.read_bytes

    @property
    def sentence(self) -> str:
        """Prediction as a sentence: `3 of 12 layers stay in memory, the others are read for every token: about 1.4
        tokens/s.`
        """
        template = (
            tr("{kept} of {layers} layers stay in memory, the others are read for every token: about {speed} tokens/s.")
            if self.kept_layers
            else tr("All {layers} layers are read from the disk for every token: about {speed} tokens/s.")
        )
        return template.format(kept=self.kept_layers, layers=self.layers, speed=_format_speed(self.tokens_per_second))


def _format_speed(speed: float) -> str:
    return f"{speed:,.0f}" if speed >= 10 else f"{speed:.2g}"


@isolated
def estimate_throughput(model: LoadedModel) -> ThroughputEstimate | None:
    """Predict the speed of a model loaded with a `memory_limit`, or of its `Blueprint`; None if all layers are in
    memory.

    Time steps of a real run that read some of its layers; for a blueprint, time the products of one layer, which is
    less accurate. Raises CorruptWeightsError if a file no longer exists.
    """
    check_model(model)
    offload = model.disk_offload
    if offload is None:
        return None
    sample = _sample_layers(offload)
    try:
        reading, computing = (
            _estimate_from_layer(offload, model) if _cannot_run(model) else _time_runs(model, offload, sample)
        )
    except DecodescopeError:  # this model cannot generate from text alone
        reading, computing = _estimate_from_layer(offload, model)
    layers_in_memory = offload.total_layers - len(offload.layers)
    return ThroughputEstimate(
        offload.bytes, offload.kept_bytes, 1 / reading, computing, layers_in_memory, offload.total_layers
    )


def _cannot_run(model: LoadedModel) -> bool:
    return isinstance(model, Blueprint) or model.modalities.media


def _sample_layers(offload: DiskOffload) -> list[OffloadedLayer]:
    """Return the first layers that together are large enough for timing."""
    found, read = [], 0
    for layer in offload.layers:
        found.append(layer)
        read += layer.bytes
        if read > _SAMPLE_BYTES:
            break
    return found


def _time_runs(model: LoadedModel, offload: DiskOffload, sample: Sequence[OffloadedLayer]) -> tuple[float, float]:
    """Return the seconds for reading a byte, and for a step without reading. Raises DecodescopeError."""
    for layer in sample:  # warm the page cache: a real run rereads these layers
        offload.read_layer(layer)
    size, slow = sum(layer.bytes for layer in sample), _time_single_passes(model, offload, sample)
    if slow is not None:
        return slow[0] / size, slow[1]
    began, spent = time.perf_counter(), offload.read_seconds
    with_disk, without = list[float](), list[float]()
    while len(without) < _MIN_ROUNDS or time.perf_counter() - began < _MIN_SECONDS:
        with offload.read_only_layers(sample):
            with_disk.append(_step_seconds(model))
        with offload.read_only_layers(()):
            without.append(_step_seconds(model))
    min_difference = (offload.read_seconds - spent) / (len(with_disk) * (_TIMED_STEPS + 1))
    return max(median(with_disk) - median(without), min_difference) / size, median(without)


def _time_single_passes(
    model: LoadedModel, offload: DiskOffload, sample: Sequence[OffloadedLayer]
) -> tuple[float, float] | None:
    """Return the seconds for reading the sample and for computing, from one pass each; None if passes are so short that
    the time between them matters.
    """
    ids = torch.ones(1, 1, dtype=torch.long)
    inputs = {"input_ids": ids, **({"decoder_input_ids": ids} if model.is_encoder_decoder else {})}
    with torch.inference_mode():
        with offload.read_only_layers(()):
            computing = min(_pass_seconds(model, inputs) for _ in range(2))  # the first pass includes setup
        if computing < _SLOW_PASS_SECONDS:
            return None
        spent = offload.read_seconds
        with offload.read_only_layers(sample):
            both = _pass_seconds(model, inputs)
    return max(both - computing, offload.read_seconds - spent), computing


def _pass_seconds(model: LoadedModel, inputs: Mapping[str, torch.Tensor]) -> float:
    began = time.perf_counter()
    model.model(**inputs)
    return time.perf_counter() - began


def _step_seconds(model: LoadedModel) -> float:
    """Return the average seconds per step of a short run. Raises DecodescopeError."""
    tokens = _TIMED_STEPS + 1
    config = {"max_new_tokens": tokens, "min_new_tokens": tokens, "do_sample": False}
    metrics = run(model, Request([1], config=config, top_n=0, memory_fallback=False)).metrics
    return 1 / (metrics.decode_tokens_per_second or 1.0)


def _estimate_from_layer(offload: DiskOffload, model: LoadedModel) -> tuple[float, float]:
    """Estimate for a model that cannot be run: read and multiply one layer repeatedly, and extrapolate."""
    layer = max(offload.layers, key=lambda one: one.bytes)
    matrices = [view for name, view in offload.layer_views(layer).items() if view.dim() == 2]
    reads, products = [], []
    with torch.inference_mode():
        for _ in range(_TIMED_STEPS + 1):
            began = time.perf_counter()
            offload.read_layer(layer)
            read = time.perf_counter()
            for matrix in matrices:
                F.linear(torch.ones(1, matrix.shape[1], dtype=matrix.dtype), matrix)
            reads.append(read - began)
            products.append(time.perf_counter() - read)
    multiplied = sum(matrix.nbytes for matrix in matrices) or 1
    whole = model.parameters * offload.dtype.itemsize
    return median(reads) / layer.bytes, median(
        products
    ) * whole / multiplied + offload.total_layers * _LAYER_OVERHEAD_SECONDS


_REPORT_INTERVAL = 64
"""Number of tokens between two reports."""


@dataclass(frozen=True, slots=True)
class WeightsCost:
    """Quality cost of quantized weights, measured by scoring a text up to one of its tokens."""

    done: int
    """Number of tokens evaluated so far."""
    total: int
    error: float
    """‖logits − plain logits‖ ÷ ‖plain logits‖, over all positions and tokens."""
    perplexity: float
    plain_perplexity: float

    @property
    def change(self) -> float:
        """Perplexity ÷ perplexity of the plain weights, minus 1."""
        return self.perplexity / self.plain_perplexity - 1


@isolated_iterator
def weights_cost(
    model: LoadedModel, plain: LoadedModel, text: str, cancel: threading.Event | None = None
) -> Iterator[WeightsCost]:
    """Compare `model` with `plain`, the same model with its original weights, on `text`; report every 64 tokens.

    The last report, with `done` = `total`, covers the whole text, which is truncated at the model's context. Ends early
    when `cancel` is set. Raises PromptError for a text of fewer than two tokens.
    """
    check_model(plain)
    check_cancel(cancel)
    ids = torch.tensor([encode(model, text, unbounded=True)[: model.context]])
    total = ids.shape[1] - 1
    if total < 1:
        raise PromptError(tr("The text has fewer than two tokens."), tr("Pass a longer text."))
    ours, theirs = (_logits(one, ids) for one in (model, plain))
    apart = whole = lost = plain_lost = 0.0
    for start in range(0, total, _REPORT_INTERVAL):
        if cancel is not None and cancel.is_set():
            return
        part = slice(start, min(start + _REPORT_INTERVAL, total))
        following = ids[0, 1:][part]
        apart += float((ours[part] - theirs[part]).square().sum())
        whole += float(theirs[part].square().sum())
        lost += _summed_loss(ours[part], following)
        plain_lost += _summed_loss(theirs[part], following)
        done = part.stop
        yield WeightsCost(
            done, total, math.sqrt(apart / whole), math.exp(lost / done), math.exp(plain_lost / done)
        )  # fmt: skip


def _logits(model: LoadedModel, ids: torch.Tensor) -> torch.Tensor:
    """Return float32 logits [n, V]; an encoder–decoder model reads and predicts the same text."""
    ids = ids.to(model.device)
    given: dict[str, object] = {"input_ids": ids}
    if model.is_encoder_decoder:
        given = {"decoder_input_ids": ids, "encoder_outputs": dummy_encoder_outputs(model.model, ids)}
    logits: torch.Tensor = model.model(**given).logits
    return logits[0].float().cpu()


def _summed_loss(logits: torch.Tensor, following: torch.Tensor) -> float:
    return float(torch.nn.functional.cross_entropy(logits, following, reduction="sum"))
