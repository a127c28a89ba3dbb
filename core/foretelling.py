"""How quick a model is whose layers are read from the disk, said before it writes: timed reading, timed products."""

from __future__ import annotations

import time
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

import torch

from core.models.offload.shelf import Shelf

if TYPE_CHECKING:
    from core.models.model import LoadedModel

_SAMPLE = 2**28
"""Bytes that are read to see how quickly the disk gives them; of a larger model a part."""
_PASSES = 3


@dataclass(frozen=True, slots=True)
class Foretold:
    """What a pass takes: bytes from the disk at the disk's speed, then everything else."""

    read_bytes: int
    """From the disk, for each pass."""
    kept_bytes: int
    """Of weights in memory."""
    read_speed: float
    """Bytes a second."""
    computing: float
    """Seconds of a pass without the disk."""

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


def foretell(model: LoadedModel) -> Foretold | None:
    """Of a model that was loaded with a `memory_limit`; None where all of it is in memory. Reads some of its layers as
    a run would, and times a pass without reading."""
    shelf = model.shelf
    if shelf is None:
        return None
    return Foretold(shelf.bytes, shelf.kept_bytes, _read_speed(shelf), _computing(model, shelf))


def _read_speed(shelf: Shelf) -> float:
    read, began = 0, time.perf_counter()
    for layer in shelf.layers:
        shelf.fill(layer)
        read += layer.bytes
        if read > _SAMPLE:
            break
    return read / (time.perf_counter() - began)


def _computing(model: LoadedModel, shelf: Shelf) -> float:
    """A pass over one token with whatever weights lie there: products take as long whatever they multiply."""
    ids = torch.ones(1, 1, dtype=torch.long)
    inputs = {"input_ids": ids, **({"decoder_input_ids": ids} if model.is_encoder_decoder else {})}
    shelf.is_reading, times = False, []
    try:
        with torch.inference_mode():
            for _ in range(_PASSES + 1):
                began = time.perf_counter()
                model.model(**inputs)
                times.append(time.perf_counter() - began)
    finally:
        shelf.is_reading = True
    return median(times[1:])
