"""Passes of one model over the text and over drafted nodes after it, which can be rolled back."""

from __future__ import annotations

import math
import sys
import time
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
import numpy.typing as npt
import torch

from decodescope.core.caches.tensors import cache_operations
from decodescope.core.decoding.forward.forward_pass import Forward, ForwardOutput, TokenPositions
from decodescope.core.decoding.speculation.tree_support import TreePositions, causal_visibility, supports_trees
from decodescope.core.models.loaded_model import LoadedModel
from decodescope.core.system.gpu import synchronize


class TargetHiddenStates:
    """Hidden states [D] of the settled tokens that the target has read; states are dropped once taken."""

    def __init__(self) -> None:
        self._states: torch.Tensor | None = None
        self._offset = 0
        self._nodes: torch.Tensor | None = None

    def add_text(self, states: torch.Tensor) -> None:
        """Append states [1, n, D] of text tokens."""
        self._states = states if self._states is None else torch.cat([self._states, states], 1)

    def add_nodes(self, states: torch.Tensor) -> None:
        """Append states [1, n, D] of drafted nodes, some of which `commit` will keep."""
        self._nodes = states if self._nodes is None else torch.cat([self._nodes, states], 1)

    def commit(self, rows: Sequence[int]) -> None:
        """Move the states of these nodes, in this order, to the text."""
        if self._nodes is not None and rows:
            self.add_text(self._nodes[:, list(rows)])
        self._nodes = None

    def take(self, begin: int, end: int) -> torch.Tensor:
        """Return states [1, end − begin, D] of text tokens and drop the earlier ones."""
        assert self._states is not None
        found = self._states[:, begin - self._offset : end - self._offset]
        self._states, self._offset = self._states[:, end - self._offset :], end
        return found


class TreePasses:
    """One model's cache: `length` settled text tokens, followed by `extra` rows of nodes.

    Several tokens at once get a 4-D additive float mask [1, 1, n, length + extra + n] built from visibility, and
    positions length + depth; windowed layers get the window in their mask too. Models that derive positions from token
    order support chains only.
    """

    def __init__(self, forward: Forward, length: int = 0) -> None:
        self.forward = forward
        self.length = length
        self.extra = 0
        self.hidden_states: TargetHiddenStates | None = None
        """Receives the hidden states of all tokens read, for drafters that use them."""
        self._is_sequential = not supports_trees(forward.model)
        self._positions = TreePositions(forward.model)

    def read_text(self, ids: torch.Tensor) -> torch.Tensor:
        """Read text tokens [1, n] permanently; return logits [1, V] after the last one."""
        count = ids.shape[1]
        more: TokenPositions = {}
        if self.length and count > 1 and not self._is_sequential:
            more = self._positions.build(self.length, range(count), causal_visibility(count), self.forward.offset)
        output = self._read(ids, 1, more)
        self.length += count
        if self.hidden_states is not None:
            self.hidden_states.add_text(last_hidden_states(output))
        return output.last

    def read_nodes(self, ids: torch.Tensor, depths: Sequence[int], visibility: npt.NDArray[np.bool_]) -> torch.Tensor:
        """Read nodes [1, n] after the settled text; return logits [n, V] after each.

        `depths`: 0 for the token directly after the text; `visibility` [n, extra + n]: rows each node may attend to.
        """
        count = ids.shape[1]
        if self._is_sequential:
            more: TokenPositions = {}
        elif count == 1 and self._positions.window is None and visibility.all():
            more = {}
        else:
            more = self._positions.build(self.length, depths, visibility, self.forward.offset)
        output = self._read(ids, 0 if count > 1 else 1, more)
        self.extra += count
        if self.hidden_states is not None:
            self.hidden_states.add_nodes(last_hidden_states(output))
        return output.logits[0]

    @property
    def reads_argmax(self) -> bool:
        """Whether a chain of best tokens can be read by `read_next`: its tokens follow each other like a text."""
        return self.hidden_states is None and (self._is_sequential or self._positions.window is None)

    def read_next(self, token: int) -> torch.Tensor:
        """Read one node after everything so far; return logits [1, V]."""
        logits = self.forward(torch.tensor([[token]])).last
        self.extra += 1
        return logits

    def argmax(self, logits: torch.Tensor) -> tuple[int, float]:
        """Return the argmax of logits [1, V] on the CPU and its probability."""
        scores = logits[0].numpy()
        token = int(scores.argmax())
        return token, 1 / float(np.exp(scores - scores[token]).sum())

    def _read(self, ids: torch.Tensor, keep: int, more: TokenPositions) -> ForwardOutput:
        """Run a pass, with the head's input if hidden states are collected."""
        return (
            self.forward(ids, keep=keep, **more)
            if self.hidden_states is None
            else self.forward.forward_with_states(ids, keep, **more)
        )

    def commit(self, rows: Sequence[int]) -> None:
        """Move these node rows, in this order, to the text and drop the others."""
        if self.extra:
            cache_operations.keep_rows(self.forward.cache, self.forward.offset + self.length, rows)
        self.length += len(rows)
        self.extra = 0
        if self.hidden_states is not None:
            self.hidden_states.commit(rows)

    def crop(self, length: int) -> None:
        """Drop all nodes and every text token after the first `length`, and free their memory."""
        cache_operations.crop(self.forward.cache, self.forward.offset + length)
        cache_operations.compact(self.forward.cache)
        self.length, self.extra = min(self.length, length), 0


def last_hidden_states(output: ForwardOutput) -> torch.Tensor:
    """Return the input of the output head, [1, n, D]."""
    assert output.hidden is not None
    return output.hidden[-1]


SIZES = (1, 2, 4, 8, 16, 32)
_SWEEP_COUNT = 5
_MAX_SECONDS = 0.25
"""Maximum seconds of a measurement; larger sizes are then extrapolated."""


def pricing_clock(device: torch.device) -> Callable[[], float]:
    """Return the clock for pass costs: on the CPU the thread's own time where the system measures it finely, so that
    other programs do not count; else wall-clock time.
    """
    own = device.type == "cpu" and sys.platform in ("linux", "darwin")
    return time.thread_time if own else time.perf_counter


@dataclass(frozen=True, slots=True)
class VerifyCost:
    """Seconds of one pass by number of tokens."""

    sizes: tuple[int, ...]
    seconds: tuple[float, ...]

    @property
    def single_pass_seconds(self) -> float:
        """Seconds of a pass over one token."""
        return self.seconds[0]

    def ratio(self, count: float) -> float:
        """Return the time of a pass over `count` tokens ÷ over one; linear interpolation and extrapolation."""
        if count <= 1 or len(self.sizes) == 1:
            return 1.0
        high = min(bisect_left(self.sizes, count), len(self.sizes) - 1)
        low = high - 1
        share = (count - self.sizes[low]) / (self.sizes[high] - self.sizes[low])
        return (self.seconds[low] + share * (self.seconds[high] - self.seconds[low])) / self.single_pass_seconds

    @property
    def rounded(self) -> VerifyCost:
        """The curve in eighths of its first value, so that a repeated measurement hardly changes it; every further
        token costs something.
        """
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
"""Typical costs of a small model on a CPU; used where nothing may be measured."""


def cost_key() -> str:
    """Return the key in `LoadedModel.strategy_data`; it includes the number of threads."""
    return f"verify_cost/{torch.get_num_threads()}"


def remembered_cost(model: LoadedModel) -> VerifyCost | None:
    """Return the curve if it has been measured."""
    found: VerifyCost | None = model.strategy_data.get(cost_key())
    return found


def verify_cost(passes: TreePasses, token: int) -> VerifyCost:
    """Return the curve of the model of `passes`: remembered, or measured after the text it has read."""
    model = passes.forward.model
    known = remembered_cost(model)
    if known is None:
        known = model.strategy_data[cost_key()] = _measure_cost(passes, token)
    return known


def _measure_cost(passes: TreePasses, token: int) -> VerifyCost:
    """Measure the sizes in several sweeps and keep the best times; the cache is left unchanged.

    For disk-offloaded layers, loading is timed once, because it takes the same time for any size, and the sweeps skip
    it.
    """
    counted, shelf = passes.forward.passes, passes.forward.model.disk_offload
    spent = shelf.read_seconds if shelf is not None else 0.0
    _time_pass(passes, token, 1)  # warm up
    if shelf is None:
        best, reading = _measure_sizes(passes, token), 0.0
    else:
        reading = shelf.read_seconds - spent
        with shelf.read_only_layers(()):
            best = _measure_sizes(passes, token)
    passes.forward.passes = counted
    return VerifyCost(tuple(best), tuple(reading + one for one in accumulate(best.values(), max)))


def _measure_sizes(passes: TreePasses, token: int) -> dict[int, float]:
    """Return the compute seconds by size."""
    begun = time.perf_counter()
    best: dict[int, float] = {}
    for _ in range(_SWEEP_COUNT):
        for size in _sizes_in_context(passes):
            if len(best) > 1 and time.perf_counter() - begun > _MAX_SECONDS:
                break
            best[size] = min(best.get(size, math.inf), _time_pass(passes, token, size))
    return best


def _sizes_in_context(passes: TreePasses) -> list[int]:
    """Return the sizes that fit the model's context."""
    context = passes.forward.model.context
    room = max(SIZES) if context is None else context - passes.length
    return [size for size in SIZES if size <= max(room, 1)]


def _time_pass(passes: TreePasses, token: int, size: int) -> float:
    device = passes.forward.model.device
    ids = torch.full((1, size), token, device=device)
    synchronize(device)
    clock = pricing_clock(device)
    begun = clock()
    logits = passes.read_nodes(ids, range(size), causal_visibility(size))
    logits[0, 0].item()  # wait for the device
    taken = clock() - begun
    passes.commit(())
    return taken
