"""How quick a model is whose layers are read from the disk, said before it writes.

A few steps of a real run are timed, with the disk and without it: reading between products is slower than reading
alone, and choosing a token takes its time too.
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

from core.checks.arguments import check_cancel
from core.decoding.prompt import encode
from core.errors import DecodescopeError, PromptError
from core.generation.running import run
from core.models.layer_offload import DiskOffload, OffloadedLayer
from core.models.loaded_model import Blueprint, LoadedModel, check_model
from core.models.text_decoder import dummy_encoder_outputs
from core.request import Request
from resources.language import tr

if TYPE_CHECKING:
    from core.models.loaded_model import LoadedModel

_SAMPLE_BYTES = 2**28
"""Bytes that a timed step reads; of a larger model a part."""
_TIMED_STEPS = 3
"""Timed, of each short run; the first pass of a run is none of them."""
_MIN_ROUNDS, _MIN_SECONDS = 2, 1.5
"""Short runs with the disk and without, at least, and as long as there is time: other programs come and go."""
_SLOW_PASS_SECONDS = 0.5
"""Seconds of a pass from which on one of each sort tells enough."""
_LAYER_OVERHEAD_SECONDS = 4e-4
"""Seconds that a layer takes besides its products, where no run can be timed: near enough."""


@dataclass(frozen=True, slots=True)
class Foretold:
    """What a pass takes: bytes from the disk at the disk's speed, then everything else."""

    read_bytes: int
    """From the disk, for each pass."""
    kept_bytes: int
    """Of weights in memory."""
    read_speed: float
    """Bytes a second, while the model computes."""
    computing: float
    """Seconds of a step without the disk."""
    kept_layers: int = 0
    """In memory."""
    layers: int = 0
    """All there are."""

    @property
    def seconds(self) -> float:
        """Of one pass."""
        return self.read_bytes / self.read_speed + self.computing

    @property
    def tokens_per_second(self) -> float:
        """One by one; drafts settle several in a pass."""
        return 1 / self.seconds

    @property
    def limit(self) -> float:
        """Tokens a second if reading were all the work."""
        return self.read_speed / self.read_bytes

    @property
    def sentence(self) -> str:
        """`3 of 12 layers stay in memory, the others are read for every token: about 1.4 tokens/s.`"""
        told = (
            tr("{kept} of {layers} layers stay in memory, the others are read for every token: about {speed} tokens/s.")
            if self.kept_layers
            else tr("All {layers} layers are read from the disk for every token: about {speed} tokens/s.")
        )
        return told.format(kept=self.kept_layers, layers=self.layers, speed=_format_speed(self.tokens_per_second))


def _format_speed(speed: float) -> str:
    return f"{speed:,.0f}" if speed >= 10 else f"{speed:.2g}"


def foretell(model: LoadedModel) -> Foretold | None:
    """Of a model that was loaded with a `memory_limit`, or of the `Blueprint` of one; None where all is in memory.

    Some of its layers are read as a run would read them, in steps of a real run; a blueprint has its products timed on
    one layer instead, which is less sure. Raises CorruptWeightsError where a file has gone.
    """
    check_model(model)
    shelf = model.disk_offload
    if shelf is None:
        return None
    sample = _sample_layers(shelf)
    try:
        reading, computing = (
            _estimate_from_layer(shelf, model) if _cannot_run(model) else _time_runs(model, shelf, sample)
        )
    except DecodescopeError:  # it writes nothing of a text alone
        reading, computing = _estimate_from_layer(shelf, model)
    kept = shelf.total_layers - len(shelf.layers)
    return Foretold(shelf.bytes, shelf.kept_bytes, 1 / reading, computing, kept, shelf.total_layers)


def _cannot_run(model: LoadedModel) -> bool:
    return isinstance(model, Blueprint) or model.takes.media


def _sample_layers(shelf: DiskOffload) -> list[OffloadedLayer]:
    """The first layers that together are large enough to tell."""
    found, read = [], 0
    for layer in shelf.layers:
        found.append(layer)
        read += layer.bytes
        if read > _SAMPLE_BYTES:
            break
    return found


def _time_runs(model: LoadedModel, shelf: DiskOffload, sample: Sequence[OffloadedLayer]) -> tuple[float, float]:
    """Seconds of reading a byte, seconds of a step without reading. Raises DecodescopeError."""
    for layer in sample:  # what is between us and the disk keeps some of it, and a run reads it again and again
        shelf.read_layer(layer)
    size, slow = sum(layer.bytes for layer in sample), _time_single_passes(model, shelf, sample)
    if slow is not None:
        return slow[0] / size, slow[1]
    began, spent = time.perf_counter(), shelf.read_seconds
    with_disk, without = list[float](), list[float]()
    while len(without) < _MIN_ROUNDS or time.perf_counter() - began < _MIN_SECONDS:
        with shelf.read_only_layers(sample):
            with_disk.append(_step_seconds(model))
        with shelf.read_only_layers(()):
            without.append(_step_seconds(model))
    least = (shelf.read_seconds - spent) / (len(with_disk) * (_TIMED_STEPS + 1))
    return max(median(with_disk) - median(without), least) / size, median(without)


def _time_single_passes(
    model: LoadedModel, shelf: DiskOffload, sample: Sequence[OffloadedLayer]
) -> tuple[float, float] | None:
    """Seconds of reading the sample and of computing, of one pass each; None where a pass is so quick that what is
    done between two of them counts."""
    ids = torch.ones(1, 1, dtype=torch.long)
    inputs = {"input_ids": ids, **({"decoder_input_ids": ids} if model.is_encoder_decoder else {})}
    with torch.inference_mode():
        with shelf.read_only_layers(()):
            computing = min(_pass_seconds(model, inputs) for _ in range(2))  # the first one sets up
        if computing < _SLOW_PASS_SECONDS:
            return None
        spent = shelf.read_seconds
        with shelf.read_only_layers(sample):
            both = _pass_seconds(model, inputs)
    return max(both - computing, shelf.read_seconds - spent), computing


def _pass_seconds(model: LoadedModel, inputs: Mapping[str, torch.Tensor]) -> float:
    began = time.perf_counter()
    model.model(**inputs)
    return time.perf_counter() - began


def _step_seconds(model: LoadedModel) -> float:
    """Seconds of a step, on the average of a short run. Raises DecodescopeError."""
    tokens = _TIMED_STEPS + 1
    config = {"max_new_tokens": tokens, "min_new_tokens": tokens, "do_sample": False}
    metrics = run(model, Request([1], config=config, top_n=0, memory_fallback=False)).metrics
    return 1 / (metrics.decode_tokens_per_second or 1.0)


def _estimate_from_layer(shelf: DiskOffload, model: LoadedModel) -> tuple[float, float]:
    """The same of a model that cannot be run: one layer read and multiplied again and again stands for all."""
    layer = max(shelf.layers, key=lambda one: one.bytes)
    matrices = [view for name, view in shelf.layer_views(layer).items() if view.dim() == 2]
    reads, products = [], []
    with torch.inference_mode():
        for _ in range(_TIMED_STEPS + 1):
            began = time.perf_counter()
            shelf.read_layer(layer)
            read = time.perf_counter()
            for matrix in matrices:
                F.linear(torch.ones(1, matrix.shape[1], dtype=matrix.dtype), matrix)
            reads.append(read - began)
            products.append(time.perf_counter() - read)
    multiplied = sum(matrix.nbytes for matrix in matrices) or 1
    whole = model.parameters * shelf.dtype.itemsize
    return median(reads) / layer.bytes, median(
        products
    ) * whole / multiplied + shelf.total_layers * _LAYER_OVERHEAD_SECONDS


_REPORT_INTERVAL = 64
"""Tokens between two reports."""


@dataclass(frozen=True, slots=True)
class WeightsCost:
    """As far as the text was read."""

    done: int
    """Tokens that were foretold and held against the text."""
    total: int
    error: float
    """‖logits − plain logits‖ ÷ ‖plain logits‖, over all positions and tokens."""
    perplexity: float
    plain_perplexity: float

    @property
    def change(self) -> float:
        """Perplexity ÷ that of the plain weights, less 1."""
        return self.perplexity / self.plain_perplexity - 1


def weights_cost(
    model: LoadedModel, plain: LoadedModel, text: str, cancel: threading.Event | None = None
) -> Iterator[WeightsCost]:
    """`model` and `plain`, the same model with its weights as they were, read `text`; a report every 64 tokens.

    The last one, with `done` = `total`, is of the whole text, which is cut at the model's context. Ends early when
    `cancel` is set. Raises PromptError for a text of fewer than two tokens.
    """
    check_model(plain)
    check_cancel(cancel)
    ids = torch.tensor([encode(model, text, unbounded=True)[: model.context]])
    total = ids.shape[1] - 1
    if total < 1:
        raise PromptError(tr("The text has fewer than two tokens."), tr("Give a longer one."))
    with torch.inference_mode():
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
    """float32 logits [n, V]; an encoder–decoder reads the text and foretells it."""
    ids = ids.to(model.device)
    given: dict[str, object] = {"input_ids": ids}
    if model.is_encoder_decoder:
        given = {"decoder_input_ids": ids, "encoder_outputs": dummy_encoder_outputs(model.model, ids)}
    logits: torch.Tensor = model.model(**given).logits
    return logits[0].float().cpu()


def _summed_loss(logits: torch.Tensor, following: torch.Tensor) -> float:
    return float(torch.nn.functional.cross_entropy(logits, following, reduction="sum"))
