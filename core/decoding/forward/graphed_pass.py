"""Passes over a few tokens that a GPU repeats as CUDA graphs: one launch instead of hundreds.

A graph repeats its kernels with the same addresses and shapes. The pass therefore reads and writes keys and values in
storages of a fixed capacity, takes the number of tokens read from a tensor, and hides positions after the text with a
mask. A growing cache moves to storages of twice the capacity when it is full, which needs further graphs; these and
their storages are kept with the model for later runs. Fixed-size caches are used in place.

Graphs are captured here and not by `torch.compile(mode="reduce-overhead")`: that one compiles for a minute, once more
for every capacity and number of tokens, needs Triton, copies inputs without a guarded address at every launch, and
rounds differently from the pass without a graph. The price is that kernels are not merged.

Source: "Accelerating PyTorch with CUDA Graphs" (pytorch.org, 2021) and the notes on CUDA semantics in torch's manual.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias, cast

import torch
from transformers.cache_utils import Cache

from decodescope.core.caches.tensors.adapted_layer import RowMove
from decodescope.core.caches.tensors.dynamic_layers import KeyValueStorage, PreallocatedLayer
from decodescope.core.caches.tensors.static_layers import FixedSizeLayer, is_compiled
from decodescope.core.decoding.forward.fused_decoder import FusedDecoder
from decodescope.core.decoding.forward.fused_layers import MixtureMlp
from decodescope.core.models.adapters.adapter_set import AdapterSet
from decodescope.core.models.loaded_model import LoadedModel
from decodescope.core.system.device_memory import is_out_of_memory
from decodescope.core.system.gpu import GraphPool, free_device_bytes

log = logging.getLogger(__name__)

MAX_TOKENS = 16
"""Maximum number of tokens of each row in a pass."""
_SIZES = (1, 2, 4, 8, 16)
"""Numbers of tokens with graphs of their own; others are padded, which costs little while weights are read."""
_MAX_VECTORS = 64
"""Maximum number of tokens of all rows: more are computed as long as they are launched."""
MIN_CAPACITY = 256
"""Tokens of the smallest storages; the others have this many times a power of two."""
_RESERVED_SHARE = 16
"""A sixteenth of the memory is left free: graphs save time only."""
_FREE_MOVES, _PASSES_PER_MOVE = 4, 8
"""Moves into storages without further condition, and passes that each further one must have been worth."""
_KEY = "graphs"
Epilogue: TypeAlias = Callable[[torch.Tensor], tuple[torch.Tensor, torch.Tensor]]
"""Computes the next tokens int64 [B] and further values from logits [B, 1, V]; hashable, and equal if it computes the
same.
"""


class GraphedOutput(NamedTuple):
    """Result of one pass."""

    logits: torch.Tensor
    """float32 [B, keep, V]; a copy, because the next launch overwrites the graph's own."""
    hidden: tuple[torch.Tensor, ...] | None
    """Of `FusedDecoder.with_states`, if requested; copies as well."""
    choice: tuple[torch.Tensor, torch.Tensor] | None
    """What the epilogue returns. The next launch overwrites it; operations launched before that read it unharmed."""


class GraphStore:
    """Graphs and storages of one model on one GPU, kept between runs."""

    def __init__(self, decoder: FusedDecoder, device: torch.device) -> None:
        self.decoder, self.device = decoder, device
        self.pool = GraphPool(device)
        self.is_failed = False
        """Whether a capture has failed; then no further one is tried."""
        self._arenas: list[KeyValueArena] = []
        self._adapter_version = 0

    @property
    def bytes(self) -> int:
        """Bytes of graphs and of storages that no cache uses, which `clear` frees."""
        return self.pool.bytes + sum(arena.bytes for arena in self._arenas if arena.user is None)

    def clear(self) -> int:
        """Drop all graphs and unused storages; return their bytes."""
        freed = self.bytes
        self._arenas = [arena for arena in self._arenas if arena.user is not None]
        for arena in self._arenas:
            arena.passes.clear()
        self.pool = GraphPool(self.device)
        return freed

    def drop_stale_graphs(self, version: int) -> None:
        """Drop the graphs of former adapters, whose tensors are gone; those of the model alone stay."""
        if version in (0, self._adapter_version):
            return
        self._adapter_version = version
        for arena in self._arenas:
            for key in [key for key in arena.passes if key[0] not in (0, version)]:
                del arena.passes[key]

    def find_arena(self, rows: int, tokens: int) -> KeyValueArena | None:
        """Return unused storages for at least `tokens` tokens; None without memory for them."""
        capacity = MIN_CAPACITY
        while capacity < tokens:
            capacity *= 2
        for arena in self._arenas:
            if (arena.rows, arena.capacity) == (rows, capacity) and arena.user is None:
                return arena
        modules, dtype = self.decoder.modules, self.decoder.dtype
        shape = (2 * len(modules.layers), rows, modules.kv_heads, capacity, modules.width)
        if not self.has_room(torch.Size(shape).numel() * dtype.itemsize):
            return None
        try:
            # Zeros, because a weight of 0 times NaN would be NaN.
            states = torch.zeros(shape, dtype=dtype, device=self.device)
            arena = KeyValueArena(self, states[::2], states[1::2])
        except IndexError:  # more positions than the model has
            return None
        self._arenas.append(arena)
        return arena

    def has_room(self, size: int) -> bool:
        """Return whether `size` bytes leave enough memory free, after unused storages and graphs have been dropped if
        necessary.
        """
        wanted = size + torch.cuda.mem_get_info(self.device)[1] // _RESERVED_SHARE
        if (free_device_bytes(self.device) or 0) >= wanted:
            return True
        if self.clear():
            log.info("dropped CUDA graphs on %s to free memory", self.device)
        return (free_device_bytes(self.device) or 0) >= wanted


class KeyValueArena:
    """Keys and values of all layers at addresses that stay the same, and the graphs that use them.

    `keys`, `values`: of every layer, each [B, H, C, D], in one tensor or in a list.
    """

    def __init__(
        self, store: GraphStore, keys: torch.Tensor | list[torch.Tensor], values: torch.Tensor | list[torch.Tensor]
    ) -> None:  # fmt: skip
        """Raise IndexError if the model does not support that many positions."""
        self.store, self.keys, self.values = store, list(keys), list(values)
        self._joined = (keys, values) if isinstance(keys, torch.Tensor) and isinstance(values, torch.Tensor) else None
        self.rows, self.capacity = self.keys[0].shape[0], self.keys[0].shape[2]
        self.storages = [
            KeyValueStorage(*pair, pair[0].data_ptr(), pair[1].data_ptr(), self.capacity)
            for pair in zip(self.keys, self.values, strict=True)
        ]
        device = store.device
        self.past, self.past_value = torch.zeros(1, dtype=torch.long, device=device), 0
        """Number of tokens read, on the device and as known on the host."""
        self.index = torch.arange(self.capacity, device=device)
        self.tables = store.decoder.rotations(slice(0, self.capacity), self.capacity)
        """Rotary embeddings of all positions. Graphs read them, so they must stay in memory: the decoder replaces its
        own when it needs longer ones.
        """
        self.passes: dict[tuple[int, object], _GraphedShape] = {}
        """By the version of the adapters and by shape."""
        self._user: weakref.ref[Cache] | None = None

    @property
    def bytes(self) -> int:
        """Bytes of keys and values."""
        return sum(states.nbytes for states in (*self.keys, *self.values))

    @property
    def user(self) -> Cache | None:
        """The cache that uses the storages."""
        cache = self._user() if self._user is not None else None
        return cache if cache is not None and self.holds(cache) else None

    def holds(self, cache: Cache) -> bool:
        """Return whether the cache's layers use these storages."""
        layers = _layers_of(cache)
        return all(
            layer.storage is storage if isinstance(layer, PreallocatedLayer) else layer.keys is keys
            for layer, storage, keys in ((layers[place], self.storages[place], self.keys[place]) for place in (0, -1))
        )

    def take_over(self, cache: Cache) -> None:
        """Move a growing cache into these storages."""
        for layer, storage in zip(_layers_of(cache), self.storages, strict=True):
            assert isinstance(layer, PreallocatedLayer)
            assert layer.keys is not None
            assert layer.values is not None
            length = layer.get_seq_length()
            storage.keys[:, :, :length] = layer.keys
            storage.values[:, :, :length] = layer.values
            layer.set_storage(storage, length)
        self.use_for(cache)

    def use_for(self, cache: Cache) -> None:
        """Remember which cache uses the storages."""
        self._user = weakref.ref(cache)

    def release(self, cache: Cache) -> None:
        """Forget the cache that uses the storages, if it is this one."""
        if self.user is cache:
            self._user = None

    def keep_row(self, row: torch.Tensor, length: int) -> None:
        """Copy the last of `length` tokens of row `row` [1] to all rows."""
        for states in self._joined or (*self.keys, *self.values):
            last = states[..., length - 1 : length, :]
            last.copy_(last.index_select(-4, row))

    def reorder(self, move: RowMove, length: int) -> bool:
        """Reorder the rows of all layers at once; return False if they are not in one tensor."""
        if self._joined is None:
            return False
        if move.rows == tuple(range(move.before)):
            return True
        places, sources = move.changes(self.store.device)
        for states in self._joined:
            held = states[:, :, :, :length]
            held.index_copy_(1, places, held.index_select(1, sources))
        return True


class _ShapeOutput(NamedTuple):
    """Output of a pass of one shape."""

    logits: torch.Tensor
    """float32 [B, count, V]."""
    states: torch.Tensor | None
    """Hidden states [L + 1, B, count, D] of all layers."""
    choice: tuple[torch.Tensor, torch.Tensor] | None
    """What the epilogue returns."""


@dataclass(frozen=True, slots=True)
class _CapturedGraph:
    """A captured graph and the tensors that a launch overwrites."""

    graph: torch.cuda.CUDAGraph
    output: _ShapeOutput


class _GraphedShape:
    """A pass over `count` tokens of every row: its inputs at fixed addresses, and its graph after the first use."""

    def __init__(
        self, arena: KeyValueArena, count: int, has_mask: bool, has_states: bool, epilogue: Epilogue | None
    ) -> None:  # fmt: skip
        self._arena, self._count, self._has_states, self._epilogue = arena, count, has_states, epilogue
        device, dtype = arena.store.device, arena.store.decoder.dtype
        self._ids = torch.zeros(arena.rows, count, dtype=torch.long, device=device)
        self._offsets = torch.arange(count, device=device)
        self._mask = torch.zeros(count, arena.capacity, dtype=dtype, device=device) if has_mask else None
        self._positions = torch.zeros(count, dtype=torch.long, device=device) if has_mask else None
        self._captured: _CapturedGraph | None = None
        self._is_warm = False
        """Whether it has run: the first run creates handles and workspaces of libraries, which a capture cannot."""

    def __call__(
        self, ids: torch.Tensor, length: int, mask: torch.Tensor | None, positions: torch.Tensor | None
    ) -> tuple[_ShapeOutput, bool]:
        """Return the output, and whether the next launch overwrites it."""
        self._load(ids, length, mask, positions)
        self._arena.past_value = length + self._count
        if self._captured is None and self._is_warm:
            self._captured = self._capture()
        self._is_warm = True
        if self._captured is None:
            return self._run(), False
        self._captured.graph.replay()
        return self._captured.output, True

    def _load(
        self, ids: torch.Tensor, length: int, mask: torch.Tensor | None, positions: torch.Tensor | None
    ) -> None:  # fmt: skip
        arena, count = self._arena, ids.shape[1]
        if arena.past_value != length:
            arena.past.fill_(length)
        known = self._captured.output.choice if self._captured is not None else None
        if known is None or known[0].data_ptr() != ids.data_ptr():  # a graph feeds the tokens that it chooses itself
            (self._ids if count == self._count else self._ids[:, :count]).copy_(ids)
        if self._mask is not None and self._positions is not None:
            assert mask is not None
            assert positions is not None
            self._mask.fill_(torch.finfo(self._mask.dtype).min)
            self._mask[:count, : length + count] = mask.reshape(count, length + count)
            self._positions[:count] = positions.reshape(-1)

    def _run(self) -> _ShapeOutput:
        """Launch the pass; while a graph is captured, this records it."""
        arena, decoder = self._arena, self._arena.store.decoder
        modules = decoder.modules
        slots = arena.past + self._offsets
        positions = slots if self._positions is None else self._positions
        if modules.positions is not None:
            positions = positions.clamp(max=len(modules.positions) - 1)  # padding may be longer than the context
        hidden = modules.embed_tokens(self._ids, positions)
        states = [hidden]
        turns = {
            kind: ((cos[positions], sin[positions]), is_adjacent)
            for kind, ((cos, sin), is_adjacent) in arena.tables.items()
        }
        masks: dict[int | None, torch.Tensor] = {}
        for place, layer in enumerate(modules.layers):
            if layer.window not in masks:
                masks[layer.window] = self._visible(slots, layer.window, hidden.dtype)

            def attend(
                queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, place: int = place,
                mask: torch.Tensor = masks[layer.window],
            ) -> torch.Tensor:  # fmt: skip
                arena.keys[place].index_copy_(2, slots, keys)
                arena.values[place].index_copy_(2, slots, values)
                return decoder.attention(queries, arena.keys[place], arena.values[place], mask)

            hidden = decoder.run_layer(layer, hidden, turns, attend)
            states.append(hidden)
        logits, states[-1] = decoder.head_output(hidden)
        choice = None if self._epilogue is None else self._epilogue(logits)
        arena.past.add_(self._count)
        if choice is not None:
            self._ids.copy_(choice[0][:, None])
        return _ShapeOutput(logits, torch.stack(states) if self._has_states else None, choice)

    def _visible(self, slots: torch.Tensor, window: int | None, dtype: torch.dtype) -> torch.Tensor:
        """Return the additive mask [count, C]."""
        if self._mask is not None:
            return self._mask
        index = self._arena.index
        hidden = index[None] > slots[:, None]
        if window is not None:
            hidden = hidden | (index[None] <= slots[:, None] - window)
        return torch.zeros_like(hidden, dtype=dtype).masked_fill_(hidden, torch.finfo(dtype).min)

    def _capture(self) -> _CapturedGraph | None:
        """Capture the graph; None if there is no memory for it or if an operation cannot be captured."""
        store = self._arena.store
        if store.is_failed or not store.has_room(store.pool.bytes):
            return None
        graph = torch.cuda.CUDAGraph()
        try:
            with store.pool.capturing(graph):
                made = self._run()
        except Exception as error:  # any error of an operation that a graph cannot contain
            log.info("no CUDA graphs on %s: %s", store.device, error)
            if is_out_of_memory(error):
                store.clear()
            else:
                store.is_failed = True
            return None
        return _CapturedGraph(graph, made)


class GraphedPass:
    """Passes of one text or batch over its cache, as graphs wherever they fit."""

    def __init__(self, store: GraphStore, cache: Cache, adapters: AdapterSet) -> None:
        self._store, self._cache, self._adapters = store, cache, adapters
        self._arena: KeyValueArena | None = None
        self._moves = self._passes = 0
        modules = store.decoder.modules
        self._max_padded = _max_padded_vectors(store.decoder)
        self._has_simple_masks = not store.decoder.has_windows and modules.slopes is None

    def __call__(
        self, ids: torch.Tensor, keep: int, mask: torch.Tensor | None, positions: torch.Tensor | None,
        epilogue: Epilogue | None = None, has_states: bool = False,
    ) -> GraphedOutput | None:  # fmt: skip
        """Read ids [B, n] and extend the cache; return logits of the last `keep` tokens (all with 0), and with
        `has_states` the hidden states of all. None, and an unchanged cache, for what needs an ordinary pass.

        `mask`: additive [.., n, P + n] with its `positions` [1, n], default causal; `epilogue`: for single tokens.
        """
        rows, count = ids.shape
        first = _layers_of(self._cache)[0]
        length = first.get_seq_length()
        if count > MAX_TOKENS or rows * count > _MAX_VECTORS or not length or rows != _row_count(first):
            return None
        padded = next(size for size in _SIZES if size >= count)
        if rows * padded > self._max_padded:
            return None
        if (mask is None) != (positions is None) or (mask is not None and not (rows == 1 and self._has_simple_masks)):
            return None
        arena = self._find_arena(rows, length + padded)
        if arena is None:
            return None
        used = epilogue if count == 1 and mask is None else None
        version = self._adapters.version
        self._store.drop_stale_graphs(version)
        shape = padded, mask is not None, has_states, used
        key = version, shape
        if key not in arena.passes:
            arena.passes[key] = _GraphedShape(arena, *shape)
        (logits, states, choice), is_overwritten = arena.passes[key](ids, length, mask, positions)
        self._passes += 1
        for layer in _layers_of(self._cache):
            if isinstance(layer, PreallocatedLayer):
                layer.reserve(count)
            else:
                layer.count_on_host(count)
        kept = logits[:, count - (keep or count) : count]
        if states is not None:
            states = states[:, :, :count]
        if is_overwritten:
            kept, states = kept.clone(), None if states is None else states.clone()
        return GraphedOutput(kept, None if states is None else states.unbind(), choice)

    def _find_arena(self, rows: int, tokens: int) -> KeyValueArena | None:
        """Return storages that hold the cache and have room for `tokens` tokens."""
        cache, arena = self._cache, self._arena
        if arena is not None and arena.capacity >= tokens and arena.rows == rows and arena.holds(cache):
            return arena
        fixed = [layer for layer in _layers_of(cache) if isinstance(layer, FixedSizeLayer)]
        if fixed:
            if fixed[0].max_cache_len < tokens:
                return None
            try:
                arena = KeyValueArena(self._store, [one.keys for one in fixed], [one.values for one in fixed])
            except IndexError:
                return None
            arena.use_for(cache)
        else:
            if self._moves > _FREE_MOVES + self._passes // _PASSES_PER_MOVE:
                return None  # other passes move the cache out again
            arena = self._store.find_arena(rows, tokens)
            if arena is None:
                return None
            arena.take_over(cache)
            self._moves += 1
        self._arena = arena
        return arena

    def release(self) -> None:
        """Let other caches use the storages; this one must not be read any more."""
        if self._arena is not None:
            self._arena.release(self._cache)
            self._arena = None

    @property
    def arena(self) -> KeyValueArena | None:
        """The storages, while they hold the cache."""
        return self._arena if self._arena is not None and self._arena.holds(self._cache) else None


def _layers_of(cache: Cache) -> list[PreallocatedLayer | FixedSizeLayer]:
    """Return the layers of a cache that `select_graphed_pass` accepts."""
    return cast("list[PreallocatedLayer | FixedSizeLayer]", cache.layers)


def _max_padded_vectors(decoder: FusedDecoder) -> int:
    """Return the maximum number of tokens of all rows in a graph, padding included."""
    mixtures = [layer.mlp for layer in decoder.modules.layers if isinstance(layer.mlp, MixtureMlp)]
    return min((mixture.max_copied_tokens for mixture in mixtures), default=_MAX_VECTORS * MAX_TOKENS)


def _row_count(layer: PreallocatedLayer | FixedSizeLayer) -> int:
    return layer.row_count if isinstance(layer, PreallocatedLayer) else len(layer.keys)


def select_graphed_pass(model: LoadedModel, cache: Cache | None, decoder: FusedDecoder | None) -> GraphedPass | None:
    """Return graphed passes for a cache, if its model and layers support them on this device."""
    if cache is None or decoder is None or model.device.type != "cuda" or is_compiled(cache):
        return None
    layers = cache.layers
    kinds = {type(layer) for layer in layers}
    if kinds not in ({PreallocatedLayer}, {FixedSizeLayer}) or len(layers) != len(decoder.modules.layers):
        return None
    if not decoder.has_fixed_rotation or not _max_padded_vectors(decoder):
        return None
    store: GraphStore | None = model.strategy_data.get(_KEY)
    if store is None or store.decoder is not decoder:
        store = model.strategy_data[_KEY] = GraphStore(decoder, model.device)
    return None if store.is_failed else GraphedPass(store, cache, model.adapters)


def graph_bytes(model: LoadedModel) -> int:
    """Return the bytes that `drop_graphs` would free."""
    store: GraphStore | None = model.strategy_data.get(_KEY)
    return 0 if store is None else store.bytes


def drop_graphs(model: LoadedModel) -> int:
    """Drop the model's graphs and unused storages; return their bytes."""
    store: GraphStore | None = model.strategy_data.pop(_KEY, None)
    return 0 if store is None else store.clear()
