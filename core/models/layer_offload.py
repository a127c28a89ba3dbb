"""Which layers stay on the disk, and the one place in memory that each of them is read to in turn.

A safetensors file holds numbers as they lie in memory, so a layer's are read straight to where its products look for
them. What was read is dropped from the system's cache of the disk: memory that is not to be taken is not taken there.
"""

from __future__ import annotations

import math
import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from io import FileIO
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import torch
from torch import nn

from core.errors import CorruptWeightsError, ModelTooLargeError, ParameterError, UnpackableError
from core.explain.words import size
from core.models.load_plan import ModelPlan
from core.models.model_entry import free_memory
from core.models.model_files import find_weights
from core.models.quantized.packed_loading import LoadingReport, check_not_quantized, read_tensors
from core.models.quantized.tensor_files import FileTensor, read_into, stored_tensors
from resources.language import tr

if TYPE_CHECKING:
    from core.models.text import Network

_LAYER_TENSOR = re.compile(r"^(?P<layer>(?:[^.]+\.)*?\d+)\.(?P<rest>.+)$")
_MAX_BUFFERS = 512
"""Places that one call may read to; systems have a limit."""
_ALIGNMENT = 64
"""Bytes that each tensor begins at a multiple of."""


class TensorSlice(NamedTuple):
    """One tensor of a layer: where it is stored, and where in the place it goes."""

    name: str
    stored: FileTensor
    offset: int


@dataclass(frozen=True, slots=True)
class OffloadedLayer:
    """What is read before a layer computes."""

    name: str
    """As its files call it: `model.layers.3`."""
    tensors: tuple[TensorSlice, ...]
    buffer_bytes: int
    """Bytes of the place that it fills."""

    @property
    def bytes(self) -> int:
        """That are read."""
        return sum(piece.stored.nbytes for piece in self.tensors)


class DiskOffload:
    """The layers on the disk, and the place that they share. Closed with the model."""

    def __init__(self, layers: Sequence[OffloadedLayer], kept: int, dtype: torch.dtype, total_layers: int) -> None:
        """`kept`: bytes of all other weights; `total_layers`: how many layers there are, those in memory too."""
        self.layers, self.dtype, self.total_layers = tuple(layers), dtype, total_layers
        self._buffer = torch.zeros(max(layer.buffer_bytes for layer in layers), dtype=torch.uint8)
        self.kept_bytes = kept + len(self._buffer)
        """In memory: all other weights, and the place."""
        self._skipped: frozenset[str] = frozenset()
        self.read_seconds = 0.0
        """That reading has taken so far."""

    @property
    def bytes(self) -> int:
        """Read from the disk for each pass."""
        return sum(layer.bytes for layer in self.layers)

    def views(self) -> dict[str, torch.Tensor]:
        """What each parameter on the disk looks at, by its name in the files."""
        return {name: view for layer in self.layers for name, view in self.layer_views(layer).items()}

    def layer_views(self, layer: OffloadedLayer) -> dict[str, torch.Tensor]:
        """The same of one layer."""
        return {piece.name: self._view(piece) for piece in layer.tensors}

    def is_in_buffer(self, tensor: torch.Tensor) -> bool:
        """Whether a parameter looks at the place."""
        begin = self._buffer.data_ptr()
        return begin <= tensor.data_ptr() < begin + len(self._buffer)

    @contextmanager
    def read_only_layers(self, only: Sequence[OffloadedLayer]) -> Iterator[None]:
        """Passes inside read these layers alone; others compute with whatever weights lie there, which takes as
        long: so reading and computing are timed apart."""
        self._skipped = frozenset(layer.name for layer in self.layers) - {layer.name for layer in only}
        try:
            yield
        finally:
            self._skipped = frozenset()

    def ensure_read(self, layer: OffloadedLayer) -> None:
        """It is about to compute: read it. Raises CorruptWeightsError where a file has gone or ended."""
        if layer.name not in self._skipped:
            self.read_layer(layer)

    def read_layer(self, layer: OffloadedLayer) -> None:
        """Read a layer's weights, those of one file on end. Raises CorruptWeightsError where a file has gone or
        ended."""
        began = time.perf_counter()
        by_file: dict[Path, list[TensorSlice]] = {}
        for piece in sorted(layer.tensors, key=lambda piece: piece.stored.start):
            by_file.setdefault(piece.stored.file, []).append(piece)
        for file, pieces in by_file.items():
            try:
                with file.open("rb", buffering=0) as stream:
                    for run in _adjacent_runs(pieces):
                        self._read(stream, run)
                    _drop_page_cache(stream.fileno(), pieces)
            except OSError as error:
                raise _missing_file_error(file, error) from error
        self.read_seconds += time.perf_counter() - began

    def _read(self, stream: FileIO, run: Sequence[TensorSlice]) -> None:
        """Pieces that lie one behind another, in one call where the system has one for it: after every call a thread
        waits for its turn again, for long where a window is being drawn."""
        others = [piece for piece in run if piece.stored.dtype != self.dtype]
        read = {piece.name: torch.empty(piece.stored.shape, dtype=piece.stored.dtype) for piece in others}
        tensors = [read.get(piece.name, self._view(piece)) for piece in run]
        buffers = [memoryview(one.view(-1).view(torch.uint8).numpy().data) for one in tensors]
        read_into(stream, run[0].stored.start, buffers)
        for piece in others:
            self._view(piece).copy_(read[piece.name])

    def _view(self, piece: TensorSlice) -> torch.Tensor:
        room = math.prod(piece.stored.shape) * self.dtype.itemsize
        return self._buffer[piece.offset : piece.offset + room].view(self.dtype).view(piece.stored.shape)


def min_resident_bytes(network: nn.Module) -> int:
    """What of its weights is needed at a time, with all layers on the disk: everything else, and the largest layer."""
    rest, layers = 0, dict[str, int]()
    for name, one in network.named_parameters():
        match = _LAYER_TENSOR.match(name)
        if match:
            layers[match["layer"]] = layers.get(match["layer"], 0) + one.nbytes
        else:
            rest += one.nbytes
    return rest + max(layers.values(), default=0)


def choose_offloaded_layers(
    stored: Mapping[str, FileTensor], outline: nn.Module, dtype: torch.dtype, limit: int
) -> DiskOffload | None:
    """What stays on the disk so that no more than `limit` bytes of weights are in memory; None where all fit.

    As many layers as fit are kept, the first ones; with a limit of 0 none. Raises ModelTooLargeError where one layer
    beside what is no layer is more than that.
    """
    layers = _stored_layers(stored, outline, dtype)
    of = len(layers)
    shelved = {piece.name for layer in layers for piece in layer.tensors}
    rest = sum(math.prod(one.shape) * dtype.itemsize for name, one in stored.items() if name not in shelved)
    if rest + sum(layer.buffer_bytes for layer in layers) <= limit:
        return None
    place = max((layer.buffer_bytes for layer in layers), default=0)
    if layers and not limit:
        return DiskOffload(layers, rest, dtype, of)
    if not layers or rest + place > limit:
        raise ModelTooLargeError(
            tr("{limit} are allowed to its weights; what is needed all the time takes {least}.").format(
                limit=size(limit), least=size(rest + place)
            ),
            tr("Allow it {least} or more: the other layers are then read from the disk.").format(
                least=size(rest + place)
            ),
        )
    while rest + place + layers[0].buffer_bytes <= limit:
        rest += layers.pop(0).buffer_bytes
    return DiskOffload(layers, rest, dtype, of)


def _stored_layers(stored: Mapping[str, FileTensor], outline: nn.Module, dtype: torch.dtype) -> list[OffloadedLayer]:
    """Those that a module of the model stands for, with the parameters that it has under the same names."""
    found: dict[str, list[tuple[str, FileTensor]]] = {}
    modules = dict(outline.named_modules())
    for name, one in stored.items():
        match = _LAYER_TENSOR.match(name)
        module = find_module(modules, match["layer"]) if match else None
        if match and module is not None and match["rest"] in dict(module.named_parameters()):
            found.setdefault(match["layer"], []).append((name, one))
    by_place = sorted(found.items(), key=lambda item: (item[0].rpartition(".")[0], int(item[0].rpartition(".")[2])))
    return [_lay_out_tensors(layer, pieces, dtype) for layer, pieces in by_place]


def find_module(modules: Mapping[str, nn.Module], layer: str) -> nn.Module | None:
    """The module that the files call `layer`: they may leave out what it stands in."""
    return next((module for name, module in modules.items() if name == layer or name.endswith("." + layer)), None)


def _lay_out_tensors(layer: str, pieces: Sequence[tuple[str, FileTensor]], dtype: torch.dtype) -> OffloadedLayer:
    begin, placed = 0, []
    for name, one in pieces:
        placed.append(TensorSlice(name, one, begin))
        begin += -(-math.prod(one.shape) * dtype.itemsize // _ALIGNMENT) * _ALIGNMENT
    return OffloadedLayer(layer, tuple(placed), begin)


def _adjacent_runs(pieces: Sequence[TensorSlice]) -> Iterator[list[TensorSlice]]:
    """Pieces of one file, in order, parted where something else lies between them."""
    run: list[TensorSlice] = []
    for piece in pieces:
        if run and (len(run) == _MAX_BUFFERS or run[-1].stored.start + run[-1].stored.nbytes != piece.stored.start):
            yield run
            run = []
        run.append(piece)
    yield run


def _missing_file_error(file: Path, error: OSError) -> CorruptWeightsError:
    return CorruptWeightsError(
        tr("Layers are read from {file} for every token, and it cannot be read any more: {error}.").format(
            file=file.name, error=error.strerror or error
        ),
        tr("See that {folder} is there, whole, and choose the model again.").format(folder=file.parent),
    )


def _drop_page_cache(handle: int, pieces: Sequence[TensorSlice]) -> None:
    """Have the system keep nothing of what was read; where it cannot be asked to, it does as it likes."""
    if hasattr(os, "posix_fadvise"):
        first, last = pieces[0].stored.start, pieces[-1].stored.start + pieces[-1].stored.nbytes
        os.posix_fadvise(handle, first, last - first, os.POSIX_FADV_DONTNEED)


MemoryLimit = int | Literal["fit"]
"""Bytes of weights in memory, 0 for as few as it goes; `fit`: as many as the free memory takes."""
_WEIGHTS_FRACTION = 0.75
"""Of the free memory that weights get where they get as much as fits: caches and passes want some too."""


class _OffloadedParameter:
    """A parameter on the disk, as transformers' loader asks for tensors: it gets the place that is read to."""

    def __init__(self, view: torch.Tensor) -> None:
        self._view, self.shape, self.dtype = view, view.shape, view.dtype

    def __getitem__(self, everything: object) -> torch.Tensor:
        return self._view


def plan_disk_offload(
    plan: ModelPlan, dtype: torch.dtype, device: torch.device, packed: str | None, limit: MemoryLimit | None
) -> DiskOffload | None:
    """The layers that stay on the disk; None where all fit, or nothing is said of a limit. Raises ParameterError,
    UnpackableError, OutOfMemoryError."""
    if limit is None:
        return None
    _check_limit(limit)
    if device.type != "cpu" or packed is not None:
        raise ParameterError(
            tr("A limit to its memory is for a model on the processor, with weights as floats."),
            tr("Choose the device “cpu” and float32 or bfloat16 weights, or leave the limit out."),
            "memory_limit",
        )
    weights = find_weights(plan.path)
    if weights.pickled:
        raise UnpackableError(
            tr("{model} has pickled weights, which are not read layer by layer.").format(model=plan.path.name),
            tr("Convert them to safetensors, or leave the limit out."),
        )
    check_not_quantized(plan)
    tensors = {name: one for name, one in stored_tensors(weights).items() if isinstance(one, FileTensor)}
    return choose_offloaded_layers(
        tensors, plan.outline(dtype), dtype, int(free_memory() * _WEIGHTS_FRACTION) if limit == "fit" else limit
    )


def _check_limit(limit: object) -> None:
    if limit == "fit" or (isinstance(limit, int) and not isinstance(limit, bool) and limit >= 0):
        return
    raise ParameterError(
        tr("The limit to the memory of its weights is {limit!r}.").format(limit=limit),
        tr("Give a whole number of bytes, 0 for as few as it goes, or “fit”."),
        "memory_limit",
    )


def load_offloaded(plan: ModelPlan, outline: Network, offload: DiskOffload) -> tuple[Network, LoadingReport]:
    """The module, which reads the shelf's layers whenever they compute. Raises UnpackableError, and what transformers
    raises."""
    tensors: dict[str, object] = dict(stored_tensors(find_weights(plan.path)))
    tensors.update((name, _OffloadedParameter(view)) for name, view in offload.views().items())
    network, report = read_tensors(plan, outline, tensors, offload.dtype, None)
    modules = dict(network.named_modules())
    for layer in offload.layers:
        module = find_module(modules, layer.name)
        if module is None or not all(map(offload.is_in_buffer, module.parameters())):
            raise UnpackableError(
                tr(
                    "The layers of {model} are made of its files in a way that cannot be repeated for each pass."
                ).format(model=plan.path.name),
                tr("Leave the limit out, or choose another model."),
            )
        module.register_forward_pre_hook(partial(_read_before_forward, offload, layer))
    return network, report


def _read_before_forward(offload: DiskOffload, layer: OffloadedLayer, _module: nn.Module, _inputs: object) -> None:
    """Before the layer computes."""
    with torch.inference_mode():
        offload.ensure_read(layer)
