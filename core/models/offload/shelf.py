"""Which layers stay on the disk, and the one place in memory that each of them is read to in turn.

A safetensors file holds numbers as they lie in memory, so a layer's are read straight to where its products look for
them. What was read is dropped from the system's cache of the disk: memory that is not to be taken is not taken there.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import torch
from torch import nn

from core.errors import OutOfMemoryError
from core.explain.words import size
from core.models.packed.reading import Stored
from resources.language import tr

_OF_A_LAYER = re.compile(r"^(?P<layer>(?:[^.]+\.)*?\d+)\.(?P<rest>.+)$")
_ALIGNED = 64
"""Bytes that each tensor begins at a multiple of."""


class Piece(NamedTuple):
    """One tensor of a layer: where it is stored, and where in the place it goes."""

    name: str
    stored: Stored
    begin: int


@dataclass(frozen=True, slots=True)
class LayerOnDisk:
    """What is read before a layer computes."""

    name: str
    """As its files call it: `model.layers.3`."""
    pieces: tuple[Piece, ...]
    room: int
    """Bytes of the place that it fills."""

    @property
    def bytes(self) -> int:
        """That are read."""
        return sum(piece.stored.nbytes for piece in self.pieces)


class Shelf:
    """The layers on the disk, and the place that they share. Closed with the model."""

    def __init__(self, layers: Sequence[LayerOnDisk], kept: int, dtype: torch.dtype) -> None:
        self.layers, self.dtype = tuple(layers), dtype
        self._place = torch.empty(max(layer.room for layer in layers), dtype=torch.uint8)
        self.kept_bytes = kept + len(self._place)
        """In memory: all other weights, and the place."""
        self.is_reading = True
        """Off, a pass computes with whatever lies there: to time it without the disk."""

    @property
    def bytes(self) -> int:
        """Read from the disk for each pass."""
        return sum(layer.bytes for layer in self.layers)

    def views(self) -> dict[str, torch.Tensor]:
        """What each parameter on the disk looks at, by its name in the files."""
        return {piece.name: self._view(piece) for layer in self.layers for piece in layer.pieces}

    def holds(self, tensor: torch.Tensor) -> bool:
        """Whether a parameter looks at the place."""
        begin = self._place.data_ptr()
        return begin <= tensor.data_ptr() < begin + len(self._place)

    def fill(self, layer: LayerOnDisk) -> None:
        """Read a layer's weights. Raises OSError where a file has gone or ended."""
        for piece in layer.pieces:
            view = self._view(piece)
            if piece.stored.dtype == self.dtype:
                piece.stored.read_to(view)
            else:
                view.copy_(piece.stored[...])
        _forget(layer)

    def _view(self, piece: Piece) -> torch.Tensor:
        room = math.prod(piece.stored.shape) * self.dtype.itemsize
        return self._place[piece.begin : piece.begin + room].view(self.dtype).view(piece.stored.shape)


def shelve(stored: Mapping[str, Stored], outline: nn.Module, dtype: torch.dtype, limit: int) -> Shelf | None:
    """What stays on the disk so that no more than `limit` bytes of weights are in memory; None where all fit.

    As many layers as fit are kept, the first ones; with a limit of 0 none. Raises OutOfMemoryError where one layer
    beside what is no layer is more than that.
    """
    layers = _layers(stored, outline, dtype)
    shelved = {piece.name for layer in layers for piece in layer.pieces}
    rest = sum(math.prod(one.shape) * dtype.itemsize for name, one in stored.items() if name not in shelved)
    if rest + sum(layer.room for layer in layers) <= limit:
        return None
    place = max((layer.room for layer in layers), default=0)
    if layers and not limit:
        return Shelf(layers, rest, dtype)
    if not layers or rest + place > limit:
        raise OutOfMemoryError(
            tr("{limit} are allowed to its weights; what is needed all the time takes {least}.").format(
                limit=size(limit), least=size(rest + place)
            ),
            tr("Allow it {least} or more: the other layers are then read from the disk.").format(
                least=size(rest + place)
            ),
        )
    while rest + place + layers[0].room <= limit:
        rest += layers.pop(0).room
    return Shelf(layers, rest, dtype)


def _layers(stored: Mapping[str, Stored], outline: nn.Module, dtype: torch.dtype) -> list[LayerOnDisk]:
    """Those that a module of the model stands for, with the parameters that it has under the same names."""
    found: dict[str, list[tuple[str, Stored]]] = {}
    modules = dict(outline.named_modules())
    for name, one in stored.items():
        match = _OF_A_LAYER.match(name)
        module = module_of(modules, match["layer"]) if match else None
        if match and module is not None and match["rest"] in dict(module.named_parameters()):
            found.setdefault(match["layer"], []).append((name, one))
    by_place = sorted(found.items(), key=lambda item: (item[0].rpartition(".")[0], int(item[0].rpartition(".")[2])))
    return [_placed(layer, pieces, dtype) for layer, pieces in by_place]


def module_of(modules: Mapping[str, nn.Module], layer: str) -> nn.Module | None:
    """The module that the files call `layer`: they may leave out what it stands in."""
    return next((module for name, module in modules.items() if name == layer or name.endswith("." + layer)), None)


def _placed(layer: str, pieces: Sequence[tuple[str, Stored]], dtype: torch.dtype) -> LayerOnDisk:
    begin, placed = 0, []
    for name, one in pieces:
        placed.append(Piece(name, one, begin))
        begin += -(-math.prod(one.shape) * dtype.itemsize // _ALIGNED) * _ALIGNED
    return LayerOnDisk(layer, tuple(placed), begin)


def _forget(layer: LayerOnDisk) -> None:
    """Have the system keep nothing of what was read; where it cannot be asked to, it does as it likes."""
    if not hasattr(os, "posix_fadvise"):
        return
    spans: dict[Path, tuple[int, int]] = {}
    for piece in layer.pieces:
        first, last = spans.get(piece.stored.file, (piece.stored.start, 0))
        end = piece.stored.start + piece.stored.nbytes
        spans[piece.stored.file] = min(first, piece.stored.start), max(last, end)
    for file, (first, last) in spans.items():
        handle = os.open(file, os.O_RDONLY)
        try:
            os.posix_fadvise(handle, first, last - first, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(handle)
