"""CUDA graphs of the pretend card: `torch.cuda.graph`, and `torch.compile`.

A captured graph is a list of operations on memory of the host. A replay computes them again with the same tensors, so
what depended on Python during the capture stays as it was. A capture computes nothing that can be seen: results are
NaN until the first replay, and memory that it writes to is restored.

A compiled function is called as it is, under the rules of CUDA graphs. These are those of
`torch._inductor.cudagraph_trees`: nothing inside may wait for the card; inputs without a static address are copied into
the graph; a graph that writes to such an input is skipped; a further launch overwrites the outputs of the last one.
"""

from __future__ import annotations

import math
import types
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils._pytree import tree_flatten
from transformers.cache_utils import Cache, EncoderDecoderCache

from tests.card.card_tensor import Active, CardTensor, MemoryBlock

if TYPE_CHECKING:
    from tests.card.pretend_card import PretendCard

_OVERWRITTEN = (
    "Error: accessing tensor output of CUDAGraphs that has been overwritten by a subsequent run. To prevent "
    "overwriting, clone the tensor outside of torch.compile() or call torch.compiler.cudagraph_mark_step_begin() "
    "before each model invocation."
)


class GraphRecording:
    """Launches and written memory of one call."""

    def __init__(self) -> None:
        self.launches = 0
        self.written: set[int] = set()
        """Identities of the memory blocks that are written to in place."""

    def add(self, func: Any, args: Any) -> None:
        """Add one operation."""
        self.launches += not func.is_view
        for parameter, value in zip(func._schema.arguments, args, strict=False):
            alias = parameter.alias_info
            if alias is not None and alias.is_write and isinstance(value, CardTensor):
                self.written.add(id(value.block))


def _input_tensors(items: Iterable[Any]) -> Iterator[CardTensor]:
    """Yield the tensors among the arguments and in the layers of caches, which dynamo makes inputs of the graph."""
    for item in items:
        if isinstance(item, CardTensor):
            yield item
        elif isinstance(item, EncoderDecoderCache):
            yield from _input_tensors([item.self_attention_cache, item.cross_attention_cache])
        elif isinstance(item, Cache):
            for layer in item.layers:
                yield from (value for value in vars(layer).values() if isinstance(value, CardTensor))


class CardGraph:
    """`torch.cuda.CUDAGraph`."""

    def __init__(self, keep_graph: bool = False) -> None:
        self.card: PretendCard = Active.card  # type: ignore[assignment]
        self._calls: list[Callable[[], None]] = []
        self._known: set[int] = set()
        """Addresses of the memory that was allocated during the capture."""
        self._restore: list[tuple[torch.Tensor, torch.Tensor]] = []
        self._results: list[torch.Tensor] = []
        self._written: dict[int, tuple[weakref.ref[MemoryBlock], int]] = {}
        self.pool: GraphMemory | None = None

    def record(self, func: Any, args: Any, kwargs: Any, compute: Callable[..., Any], index: int) -> Any:
        """Compute an operation on host tensors, and record it for replays."""
        arguments = [one for one in tree_flatten((args, kwargs))[0] if isinstance(one, torch.Tensor)]
        known = {one.untyped_storage().data_ptr() for one in arguments}
        for parameter, value in zip(getattr(func, "_schema", _NO_SCHEMA).arguments, args, strict=False):
            alias = parameter.alias_info
            if alias is not None and alias.is_write and isinstance(value, torch.Tensor):
                if value.untyped_storage().data_ptr() not in self._known:
                    self._restore.append((value, value.clone()))
        made = compute(*args, **kwargs)
        results = [one for one in tree_flatten(made)[0] if isinstance(one, torch.Tensor)]
        own = [place for place, one in enumerate(results) if one.untyped_storage().data_ptr() not in known]
        self._known |= {results[place].untyped_storage().data_ptr() for place in own}
        self._results += [results[place] for place in own]

        def replay() -> None:
            again = [one for one in tree_flatten(compute(*args, **kwargs))[0] if isinstance(one, torch.Tensor)]
            for place in own:
                results[place].copy_(again[place])

        if arguments or own:
            self._calls.append(replay)
        return made

    def note_written(self, block: MemoryBlock) -> None:
        """Record memory that every replay writes to."""
        self._written[id(block)] = weakref.ref(block), block.index

    def finish(self) -> None:
        """End the capture: nothing has been computed so far."""
        for value, before in reversed(self._restore):
            value.copy_(before)
        for one in self._results:
            if one.is_floating_point():
                one.fill_(math.nan)
        self._restore, self._results = [], []

    def replay(self) -> None:
        """Launch the graph."""
        if self.card.capturing is not None:
            raise RuntimeError("CUDA error: operation not permitted when stream is capturing (replay)")
        with torch.inference_mode(), _disable_current_modes():
            for call in self._calls:
                call()
        for counts in self.card.counts:
            counts.graphs["launch"] += 1
            counts.launches["graph", "launch"] += 1
        for reference, index in self._written.values():
            if (block := reference()) is not None:
                block.written = self.card.next_operation(index)


class GraphMemory:
    """Memory of a pool: intermediate results of its graphs, reserved as long as a graph of it exists."""

    def __init__(self) -> None:
        self.size = 0


class GraphCapture:
    """`torch.cuda.graph`."""

    def __init__(self, graph: CardGraph, pool: Any = None, stream: Any = None, **_: object) -> None:
        self._graph, self._pool = graph, pool if pool is not None else GraphMemory()

    def __enter__(self) -> None:
        card = self._graph.card
        card.synchronize()
        card.empty_cache()
        card.capturing = self._graph
        self._before, self._peak = list(card.used), list(card.peak)
        card.peak = list(card.used)

    def __exit__(self, *error: object) -> None:
        card = self._graph.card
        card.capturing = None
        self._graph.finish()
        self._graph.pool = self._pool
        card.add_pool(self._pool, max(card.peak[0] - card.used[0], self._pool.size))
        card.peak = [max(pair) for pair in zip(card.peak, self._peak, strict=True)]
        for counts in card.counts:
            counts.graphs["capture"] += 1


_NO_SCHEMA = types.SimpleNamespace(arguments=())


class CompiledFunction:
    """A function or module that torch.compile was applied to.

    A tensor with a guarded static address (a parameter, or one that is marked) belongs to the compilation: another
    tensor in its place is another compilation.
    """

    def __init__(self, card: PretendCard, function: Any, mode: str | None) -> None:
        self._card, self._function = card, function
        self._uses_graphs = mode in ("reduce-overhead", "max-autotune")
        self._compiled: set[Any] = set()
        self._last_outputs: list[weakref.ref[MemoryBlock]] = []
        self._buffers: dict[Any, list[torch.Tensor]] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._function, name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        card = self._card
        inputs = list(_input_tensors(tree_flatten((args, kwargs))[0]))
        static = [getattr(item, "_dynamo_static_input_type", None) for item in inputs]
        key = tuple(
            (tuple(one.shape), one.dtype, one.stride(), id(one) if kind == "guarded" else None)
            for one, kind in zip(inputs, static, strict=True)
        )
        is_first = key not in self._compiled
        self._compiled.add(key)
        if self._uses_graphs and not card.overwrites:
            for block in filter(None, (reference() for reference in self._last_outputs)):
                block.stale = _OVERWRITTEN
        card.recording = recording = GraphRecording()
        try:
            made = self._function(*args, **kwargs)
        finally:
            card.recording = None
        copied = [one for one, kind in zip(inputs, static, strict=True) if kind is None]
        is_skipped = any(id(one.block) in recording.written for one in copied)
        self._count(recording, is_first, is_skipped, bool(copied))
        if self._uses_graphs and not is_skipped:
            self._keep_outputs(key, made, {id(one.block) for one in inputs})
        return made

    def _count(self, recording: GraphRecording, is_first: bool, is_skipped: bool, has_copies: bool) -> None:
        outcome = "compile" if is_first else "skipped: mutated inputs" if is_skipped else "launch"
        for counts in self._card.counts:
            counts.graphs[outcome] += 1
            if outcome == "launch":
                counts.launches["graph", "launch"] += 1
                counts.launches["copy of inputs", "graph"] += has_copies
            else:
                counts.launches["compiled kernels", outcome] += recording.launches

    def _keep_outputs(self, key: Any, made: Any, inputs: set[int]) -> None:
        outputs = [item for item in tree_flatten(made)[0] if isinstance(item, CardTensor)]
        self._last_outputs = [weakref.ref(item.block) for item in outputs if id(item.block) not in inputs]
        if not self._card.overwrites:
            return
        buffers = self._buffers.setdefault(key, [item.values for item in outputs])
        for item, buffer in zip(outputs, buffers, strict=True):
            buffer.copy_(item.values)  # the outputs of the last call contain these values from here on
            item.values, item.block = buffer, self._card.wrap(buffer, item.index).block
