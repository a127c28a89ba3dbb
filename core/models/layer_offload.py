"""Layers offloaded to disk, and the buffer in memory into which each of them is read.

A safetensors file stores numbers as they are in memory, so a layer's weights are read straight into its tensors. The
file pages are then dropped from the system's page cache, so that they take no memory there.
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

from decodescope.core.errors import CorruptWeightsError, ModelTooLargeError, ParameterError, UnpackableError
from decodescope.core.explain.words import size
from decodescope.core.models.load_plan import ModelPlan
from decodescope.core.models.model_entry import free_memory
from decodescope.core.models.model_files import find_weights
from decodescope.core.models.quantized.packed_loading import LoadingReport, check_not_quantized, read_tensors
from decodescope.core.models.quantized.tensor_files import FileTensor, read_into, stored_tensors
from decodescope.core.system.system_errors import system_error_reason
from decodescope.resources.language import tr

if TYPE_CHECKING:
    from decodescope.core.models.text import Network

_LAYER_TENSOR = re.compile(r"^(?P<layer>(?:[^.]+\.)*?\d+)\.(?P<rest>.+)$")
_MAX_BUFFERS = 512
"""Maximum number of buffers per read call; systems have a limit."""
_ALIGNMENT = 64
"""Alignment of each tensor in bytes."""


class TensorSlice(NamedTuple):
    """One tensor of a layer: where it is stored, and its offset in the buffer."""

    name: str
    stored: FileTensor
    offset: int


@dataclass(frozen=True, slots=True)
class OffloadedLayer:
    """A layer that is read before it computes."""

    name: str
    """Name in the files: `model.layers.3`."""
    tensors: tuple[TensorSlice, ...]
    buffer_bytes: int
    """Bytes that it fills in the buffer."""

    @property
    def bytes(self) -> int:
        """Bytes read from disk."""
        return sum(piece.stored.nbytes for piece in self.tensors)


class DiskOffload:
    """The layers on disk and their shared buffer. Closed with the model."""

    def __init__(
        self, layers: Sequence[OffloadedLayer], other_bytes: int, dtype: torch.dtype, total_layers: int
    ) -> None:
        """Initialize the offload. `other_bytes`: bytes of all other weights; `total_layers`: number of layers,
        including those in memory.
        """
        self.layers, self.dtype, self.total_layers = tuple(layers), dtype, total_layers
        self._buffer = torch.zeros(max(layer.buffer_bytes for layer in layers), dtype=torch.uint8)
        self.kept_bytes = other_bytes + len(self._buffer)
        """Bytes in memory: all other weights and the buffer."""
        self._skipped: frozenset[str] = frozenset()
        self.read_seconds = 0.0
        """Seconds spent reading so far."""

    @property
    def bytes(self) -> int:
        """Bytes read from disk per pass."""
        return sum(layer.bytes for layer in self.layers)

    def views(self) -> dict[str, torch.Tensor]:
        """Return the view into the buffer for each offloaded parameter, by its name in the files."""
        return {name: view for layer in self.layers for name, view in self.layer_views(layer).items()}

    def layer_views(self, layer: OffloadedLayer) -> dict[str, torch.Tensor]:
        """Return the views of one layer's parameters."""
        return {piece.name: self._view(piece) for piece in layer.tensors}

    def is_in_buffer(self, tensor: torch.Tensor) -> bool:
        """Return whether a parameter is a view of the buffer."""
        begin = self._buffer.data_ptr()
        return begin <= tensor.data_ptr() < begin + len(self._buffer)

    @contextmanager
    def read_only_layers(self, layers: Sequence[OffloadedLayer]) -> Iterator[None]:
        """Read only these layers in passes inside the context, so that reading and computing can be timed separately.

        The others compute with arbitrary weights, which takes the same time.
        """
        self._skipped = frozenset(layer.name for layer in self.layers) - {layer.name for layer in layers}
        try:
            yield
        finally:
            self._skipped = frozenset()

    def ensure_read(self, layer: OffloadedLayer) -> None:
        """Read `layer` before it computes. Raises CorruptWeightsError if a file is missing or too short."""
        if layer.name not in self._skipped:
            self.read_layer(layer)

    def read_layer(self, layer: OffloadedLayer) -> None:
        """Read a layer's weights, contiguous parts at once. Raises CorruptWeightsError if a file is missing or too
        short.
        """
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
        """Read adjacent tensors in one system call if possible: after every call the thread waits for the GIL, which
        takes long while a window is being painted.
        """
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
    """Return the minimum bytes of weights in memory with all layers on disk: everything else and the largest layer."""
    rest, layers = 0, dict[str, int]()
    for name, one in network.named_parameters():
        match = _LAYER_TENSOR.match(name)
        if match:
            layers[match["layer"]] = layers.get(match["layer"], 0) + one.nbytes
        else:
            rest += one.nbytes
    return rest + max(layers.values(), default=0)


def choose_offloaded_layers(
    file_tensors: Mapping[str, FileTensor], outline: nn.Module, dtype: torch.dtype, limit: int
) -> DiskOffload | None:
    """Choose the layers to offload so that at most `limit` bytes of weights are in memory; None if all fit.

    The first layers are kept in memory as far as they fit; with a limit of 0, none. Raises ModelTooLargeError if one
    layer and the non-layer weights exceed the limit.
    """
    layers = _stored_layers(file_tensors, outline, dtype)
    of = len(layers)
    shelved = {piece.name for layer in layers for piece in layer.tensors}
    rest = sum(math.prod(one.shape) * dtype.itemsize for name, one in file_tensors.items() if name not in shelved)
    if rest + sum(layer.buffer_bytes for layer in layers) <= limit:
        return None
    place = max((layer.buffer_bytes for layer in layers), default=0)
    if layers and not limit:
        return DiskOffload(layers, rest, dtype, of)
    if not layers or rest + place > limit:
        raise ModelTooLargeError(
            tr("The limit for its weights is {limit}, but the part that must stay in memory takes {least}.").format(
                limit=size(limit), least=size(rest + place)
            ),
            tr("Allow {least} or more: the other layers are then read from disk.").format(least=size(rest + place)),
        )
    while rest + place + layers[0].buffer_bytes <= limit:
        rest += layers.pop(0).buffer_bytes
    return DiskOffload(layers, rest, dtype, of)


def _stored_layers(
    file_tensors: Mapping[str, FileTensor], outline: nn.Module, dtype: torch.dtype
) -> list[OffloadedLayer]:
    """Return the stored layers that correspond to a module of the model with parameters of the same names."""
    found: dict[str, list[tuple[str, FileTensor]]] = {}
    modules = dict(outline.named_modules())
    for name, one in file_tensors.items():
        match = _LAYER_TENSOR.match(name)
        module = find_module(modules, match["layer"]) if match else None
        if match and module is not None and match["rest"] in dict(module.named_parameters()):
            found.setdefault(match["layer"], []).append((name, one))
    by_place = sorted(found.items(), key=lambda item: (item[0].rpartition(".")[0], int(item[0].rpartition(".")[2])))
    return [_lay_out_tensors(layer, pieces, dtype) for layer, pieces in by_place]


def find_module(modules: Mapping[str, nn.Module], layer: str) -> nn.Module | None:
    """Return the module that the files call `layer`: they may omit the names of enclosing modules."""
    return next((module for name, module in modules.items() if name == layer or name.endswith("." + layer)), None)


def _lay_out_tensors(layer: str, pieces: Sequence[tuple[str, FileTensor]], dtype: torch.dtype) -> OffloadedLayer:
    begin, placed = 0, []
    for name, one in pieces:
        placed.append(TensorSlice(name, one, begin))
        begin += -(-math.prod(one.shape) * dtype.itemsize // _ALIGNMENT) * _ALIGNMENT
    return OffloadedLayer(layer, tuple(placed), begin)


def _adjacent_runs(pieces: Sequence[TensorSlice]) -> Iterator[list[TensorSlice]]:
    """Yield runs of adjacent tensors in one file."""
    run: list[TensorSlice] = []
    for piece in pieces:
        if run and (len(run) == _MAX_BUFFERS or run[-1].stored.start + run[-1].stored.nbytes != piece.stored.start):
            yield run
            run = []
        run.append(piece)
    yield run


def _missing_file_error(file: Path, error: OSError) -> CorruptWeightsError:
    return CorruptWeightsError(
        tr("Layers are read from {file} for every token, but it can no longer be read: {error}.").format(
            file=file.name, error=system_error_reason(error)
        ),
        tr("Make sure that {folder} exists and is complete, then choose the model again.").format(folder=file.parent),
    )


def _drop_page_cache(handle: int, pieces: Sequence[TensorSlice]) -> None:
    """Drop the read pages from the system's page cache, where it supports that."""
    if hasattr(os, "posix_fadvise"):
        first, last = pieces[0].stored.start, pieces[-1].stored.start + pieces[-1].stored.nbytes
        os.posix_fadvise(handle, first, last - first, os.POSIX_FADV_DONTNEED)


MemoryLimit = int | Literal["fit"]
"""Limit for weights in memory, in bytes; 0: the minimum; `fit`: as much as free memory allows."""
_WEIGHTS_FRACTION = 0.75
"""Fraction of the free memory for weights with `fit`; the rest is for caches and activations."""


class _OffloadedParameter:
    """Tensor-like parameter for transformers' loader: indexing returns the view into the shared buffer."""

    def __init__(self, view: torch.Tensor) -> None:
        self._view, self.shape, self.dtype = view, view.shape, view.dtype

    def __getitem__(self, everything: object) -> torch.Tensor:
        return self._view


def plan_disk_offload(
    plan: ModelPlan, dtype: torch.dtype, device: torch.device, packed: str | None, limit: MemoryLimit | None
) -> DiskOffload | None:
    """Choose the layers to offload; None if all fit or there is no limit. Raises ParameterError, UnpackableError,
    OutOfMemoryError.
    """
    if limit is None:
        return None
    _check_limit(limit)
    if device.type != "cpu" or packed is not None:
        raise ParameterError(
            tr("A memory limit is supported on the CPU only, with unpacked weights."),
            tr("Choose the device “cpu” and float32 or bfloat16 weights, or remove the limit."),
            "memory_limit",
        )
    weights = find_weights(plan.path)
    if weights.pickled:
        raise UnpackableError(
            tr("{model} has pickled weights, which cannot be read layer by layer.").format(model=plan.path.name),
            tr("Convert them to safetensors, or remove the limit."),
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
        tr("The memory limit of the weights is {limit!r}.").format(limit=limit),
        tr("Use an integer number of bytes (0: as little as possible) or “fit”."),
        "memory_limit",
    )


def load_offloaded(plan: ModelPlan, outline: Network, offload: DiskOffload) -> tuple[Network, LoadingReport]:
    """Load the module, which reads offloaded layers whenever they compute.

    Raises UnpackableError and transformers' own exceptions.
    """
    tensors: dict[str, object] = dict(stored_tensors(find_weights(plan.path)))
    tensors.update((name, _OffloadedParameter(view)) for name, view in offload.views().items())
    network, report = read_tensors(plan, outline, tensors, offload.dtype, None)
    modules = dict(network.named_modules())
    for layer in offload.layers:
        module = find_module(modules, layer.name)
        if module is None or not all(map(offload.is_in_buffer, module.parameters())):
            raise UnpackableError(
                tr(
                    "The layers of {model} are assembled from its files in a way that cannot be repeated for each pass."
                ).format(model=plan.path.name),
                tr("Remove the limit, or choose another model."),
            )
        module.register_forward_pre_hook(partial(_read_before_forward, offload, layer))
    return network, report


def _read_before_forward(offload: DiskOffload, layer: OffloadedLayer, _module: nn.Module, _inputs: object) -> None:
    """Read the layer before it computes."""
    with torch.inference_mode():
        offload.ensure_read(layer)
