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
from core.decoding.speculation.tree_positions import causal
from core.models.loaded_model import LoadedModel

SIZES = (1, 2, 4, 8, 16, 32)
_SWEEPS = 5
_BUDGET = 0.25
"""Seconds a measurement may take; larger sizes are then extrapolated."""


def clock_of(device: torch.device) -> Callable[[], float]:
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
    def one(self) -> float:
        """Seconds of a pass over one token."""
        return self.seconds[0]

    def ratio(self, count: float) -> float:
        """Time of a pass over `count` tokens ÷ over one; linear between what was measured and beyond it."""
        if count <= 1 or len(self.sizes) == 1:
            return 1.0
        high = min(bisect_left(self.sizes, count), len(self.sizes) - 1)
        low = high - 1
        share = (count - self.sizes[low]) / (self.sizes[high] - self.sizes[low])
        return (self.seconds[low] + share * (self.seconds[high] - self.seconds[low])) / self.one

    @property
    def rounded(self) -> VerifyCost:
        """The curve in eighths of its first pass, which another measurement on the same machine hardly changes; no
        further token is free."""
        eighths = [max(round(8 * value / self.one), 8 + place) for place, value in enumerate(self.seconds)]
        return VerifyCost(self.sizes, tuple(count / 8 for count in eighths))

    @property
    def curve(self) -> tuple[tuple[int, float], ...]:
        """(tokens, time ÷ that of one) for every size."""
        return tuple((size, value / self.one) for size, value in zip(self.sizes, self.seconds, strict=True))


USUAL_COST = VerifyCost(SIZES, (1.0, 1.125, 1.25, 1.5, 2.0, 3.0))
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
        known = model.remembered[cost_key()] = _measure(passes, token)
    return known


def _measure(passes: TreePasses, token: int) -> VerifyCost:
    """Sweeps over the sizes, the best time of each counts; the memory is left as it was. Of a model whose layers are
    on the disk reading is timed once, for it takes as long whatever the size, and the sweeps do without it."""
    counted, shelf = passes.forward.passes, passes.forward.model.shelf
    spent = shelf.seconds if shelf is not None else 0.0
    _time_pass(passes, token, 1)  # the first pass pays for setting up
    if shelf is None:
        best, reading = _sweeps(passes, token), 0.0
    else:
        reading = shelf.seconds - spent
        with shelf.reading(()):
            best = _sweeps(passes, token)
    passes.forward.passes = counted
    return VerifyCost(tuple(best), tuple(reading + one for one in accumulate(best.values(), max)))


def _sweeps(passes: TreePasses, token: int) -> dict[int, float]:
    """Seconds of computing, by size."""
    begun = time.perf_counter()
    best: dict[int, float] = {}
    for _ in range(_SWEEPS):
        for size in _fitting(passes):
            if len(best) > 1 and time.perf_counter() - begun > _BUDGET:
                break
            best[size] = min(best.get(size, math.inf), _time_pass(passes, token, size))
    return best


def _fitting(passes: TreePasses) -> list[int]:
    """Sizes that the model's positions have room for."""
    context = passes.forward.model.context
    room = max(SIZES) if context is None else context - passes.length
    return [size for size in SIZES if size <= max(room, 1)]


def _time_pass(passes: TreePasses, token: int, size: int) -> float:
    device = passes.forward.model.device
    ids = torch.full((1, size), token, device=device)
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    clock = clock_of(device)
    begun = clock()
    logits = passes.nodes(ids, range(size), causal(size))
    logits[0, 0].item()  # wait for the device
    taken = clock() - begun
    passes.settle(())
    return taken
