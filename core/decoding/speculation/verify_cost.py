"""What a target pass over q tokens costs on this machine, measured once per model and remembered."""

from __future__ import annotations

import math
import sys
import time
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate

import torch

from core.decoding.speculation.tree_passes import TreePasses
from core.decoding.speculation.tree_positions import causal_visibility
from core.models.loaded_model import LoadedModel

SIZES = (1, 2, 4, 8, 16, 32)
_SWEEP_COUNT = 5
_MAX_SECONDS = 0.25
"""Seconds a measurement may take; larger sizes are then extrapolated."""


def pricing_clock(device: torch.device) -> Callable[[], float]:
    """The clock that prices passes: on a processor this thread's own time where the system keeps it finely, so that
    other programs do not count; else the wall's."""
    own = device.type == "cpu" and sys.platform in ("linux", "darwin")
    return time.thread_time if own else time.perf_counter


@dataclass(frozen=True, slots=True)
class VerifyCost:
    """Seconds of one pass over so many tokens."""

    sizes: tuple[int, ...]
    seconds: tuple[float, ...]

    @property
    def single_pass_seconds(self) -> float:
        """Seconds of a pass over one token."""
        return self.seconds[0]

    def ratio(self, count: float) -> float:
        """Time of a pass over `count` tokens ÷ over one; linear between what was measured and beyond it."""
        if count <= 1 or len(self.sizes) == 1:
            return 1.0
        high = min(bisect_left(self.sizes, count), len(self.sizes) - 1)
        low = high - 1
        share = (count - self.sizes[low]) / (self.sizes[high] - self.sizes[low])
        return (self.seconds[low] + share * (self.seconds[high] - self.seconds[low])) / self.single_pass_seconds

    @property
    def rounded(self) -> VerifyCost:
        """The curve in eighths of its first pass, which another measurement on the same machine hardly changes; no
        further token is free."""
        eighths = [
            max(round(8 * value / self.single_pass_seconds), 8 + place) for place, value in enumerate(self.seconds)
        ]
        return VerifyCost(self.sizes, tuple(count / 8 for count in eighths))

    @property
    def curve(self) -> tuple[tuple[int, float], ...]:
        """(tokens, time ÷ that of one) for every size."""
        return tuple(
            (size, value / self.single_pass_seconds) for size, value in zip(self.sizes, self.seconds, strict=True)
        )


TYPICAL_COST = VerifyCost(SIZES, (1.0, 1.125, 1.25, 1.5, 2.0, 3.0))
"""About what a small model's passes cost on a processor; stands in where nothing may be measured."""


def cost_key() -> str:
    """Where `LoadedModel.remembered` keeps the curve; another number of threads is another machine."""
    return f"verify_cost/{torch.get_num_threads()}"


def remembered_cost(model: LoadedModel) -> VerifyCost | None:
    """The curve, if it has been measured."""
    found: VerifyCost | None = model.remembered.get(cost_key())
    return found


def verify_cost(passes: TreePasses, token: int) -> VerifyCost:
    """The curve of the model behind `passes`: remembered, or measured now behind the text it has read."""
    model = passes.forward.model
    known = remembered_cost(model)
    if known is None:
        known = model.remembered[cost_key()] = _measure_cost(passes, token)
    return known


def _measure_cost(passes: TreePasses, token: int) -> VerifyCost:
    """Sweeps over the sizes, the best time of each counts; the memory is left as it was. Of a model whose layers are
    on the disk reading is timed once, for it takes as long whatever the size, and the sweeps do without it."""
    counted, shelf = passes.forward.passes, passes.forward.model.disk_offload
    spent = shelf.read_seconds if shelf is not None else 0.0
    _time_pass(passes, token, 1)  # the first pass pays for setting up
    if shelf is None:
        best, reading = _measure_sizes(passes, token), 0.0
    else:
        reading = shelf.read_seconds - spent
        with shelf.read_only_layers(()):
            best = _measure_sizes(passes, token)
    passes.forward.passes = counted
    return VerifyCost(tuple(best), tuple(reading + one for one in accumulate(best.values(), max)))


def _measure_sizes(passes: TreePasses, token: int) -> dict[int, float]:
    """Seconds of computing, by size."""
    begun = time.perf_counter()
    best: dict[int, float] = {}
    for _ in range(_SWEEP_COUNT):
        for size in _sizes_in_context(passes):
            if len(best) > 1 and time.perf_counter() - begun > _MAX_SECONDS:
                break
            best[size] = min(best.get(size, math.inf), _time_pass(passes, token, size))
    return best


def _sizes_in_context(passes: TreePasses) -> list[int]:
    """Sizes that the model's positions have room for."""
    context = passes.forward.model.context
    room = max(SIZES) if context is None else context - passes.length
    return [size for size in SIZES if size <= max(room, 1)]


def _time_pass(passes: TreePasses, token: int, size: int) -> float:
    device = passes.forward.model.device
    ids = torch.full((1, size), token, device=device)
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    clock = pricing_clock(device)
    begun = clock()
    logits = passes.read_nodes(ids, range(size), causal_visibility(size))
    logits[0, 0].item()  # wait for the device
    taken = clock() - begun
    passes.commit(())
    return taken
