"""`torch.compile` on the pretend card: the function is called as it is, under the rules of CUDA graphs.

The rules are those of `torch._inductor.cudagraph_trees`: nothing inside may wait for the card; inputs without a static
address are copied into the graph; a graph that writes to such an input is skipped; a further launch overwrites the
outputs of the last one.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch.utils._pytree import tree_flatten
from transformers.cache_utils import Cache, EncoderDecoderCache

from tests.card.card_tensor import CardTensor, MemoryBlock

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
