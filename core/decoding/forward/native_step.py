"""Native decode step: a pass over a few tokens by kernels built for this CPU.

It reads the module's own weights and does the same operations in the same order as the fused pass, without the time
between them. It supports what a fused pass supports, for few tokens on caches with contiguous keys and values, and is
checked against the module before use. Each row and token gets, to the last bit, the result that it would get alone.
"""

from __future__ import annotations

import ctypes
import logging
import threading
import time
from dataclasses import dataclass
from typing import Any

import torch
from transformers.cache_utils import Cache, DynamicCache, DynamicLayer, StaticCache

from decodescope.core.caches.tensors.dynamic_layers import KeyValueStorage, PreallocatedLayer, is_plain_dynamic_layer
from decodescope.core.caches.tensors.static_layers import FixedSizeLayer
from decodescope.core.decoding.forward.fused_decoder import (
    FusedDecoder,
    can_join_matrices,
    discard_fused_decoder,
    matches_module,
    select_fused_pass,
)
from decodescope.core.decoding.forward.module_map import DecoderModules, Positions, UnsupportedArchitecture, map_modules
from decodescope.core.decoding.forward.native_weights import NativeWeights
from decodescope.core.models.loaded_model import LoadedModel, check_model
from decodescope.core.models.quantized.packed_layers import PackedLinear
from decodescope.core.models.quantized.packed_matrices import Int4RowMatrix, Int8RowMatrix, to_int4_rows, to_int8_rows
from decodescope.core.native import native_library
from decodescope.core.native.native_library import NativeLibrary, library
from decodescope.core.native.tensor_address import optional_address, row_address, tensor_address
from decodescope.core.system.torch_state import isolated

log = logging.getLogger(__name__)

MAX_TOKENS = 16
"""Maximum number of tokens of all texts in one pass; torch's products are faster for more."""
_MAX_TOKENS_IN_PANELS = 32
"""The same where matrices are packed into panels: these products are faster than torch for any number, but attention is
not.
"""
_KEY, _CONVERTED = "quick_step", "packed_in_rows"
_TIMED_TOKENS = 8
"""Number of tokens used to time two variants."""


_BufferAddress = tuple[int, int, int]
"""Addresses of keys and values, and the capacity of a head in tokens."""


class _LayerStorage:
    """Addresses of every layer's keys and values before and after a pass."""

    def __init__(self, layers: int, dtype: torch.dtype) -> None:
        self._dtype = dtype
        pointers, numbers = ctypes.c_void_p * layers, ctypes.c_int64 * layers
        self.old_keys, self.old_values, self.new_keys, self.new_values = (pointers() for _ in range(4))
        self.old_capacities, self.new_capacities = numbers(), numbers()
        self.references: list[torch.Tensor] = []
        """References that keep old buffers alive while they are read."""

    def use_growing(self, index: int, layer: DynamicLayer, count: int, extra_capacity: int) -> None:
        """Record the buffers of a growing layer: its own if there is room, else new ones with `extra_capacity` extra
        capacity for the next passes, where the layer supports it.
        """
        if isinstance(layer, PreallocatedLayer) and layer.reserve(count) and layer.storage:
            place = layer.storage[2:]
            self._record(index, place, place)
            return
        keys, values = layer.keys, layer.values
        assert keys is not None
        assert values is not None
        if not _is_row_major(keys) or values.stride() != keys.stride():
            keys, values = keys.contiguous(), values.contiguous()
        self.references += (keys, values)
        length = keys.shape[2] + count
        made = KeyValueStorage.allocate_like(
            keys, length + _spare_tokens(length, extra_capacity) if isinstance(layer, PreallocatedLayer) else length
        )
        if isinstance(layer, PreallocatedLayer):
            layer.set_storage(made, length)
        else:
            layer.keys, layer.values = made.keys, made.values
        self._record(index, self._address(keys, values), made[2:])

    def use_fixed(self, index: int, layer: FixedSizeLayer, count: int) -> None:
        """Record the buffers of a fixed-size layer."""
        place = self._address(layer.keys, layer.values)
        self._record(index, place, place)
        layer.count_tokens(count)

    def _address(self, keys: torch.Tensor, values: torch.Tensor) -> _BufferAddress:
        """Return where keys and values [B, H, T, D] are. Raises NativeCodeError unless they have the model's dtype."""
        capacity = _token_capacity(keys)
        texts, heads, _, width = keys.shape
        begin, length = 0, texts * heads * capacity * width - (capacity - keys.shape[2]) * width
        return (
            row_address(keys, self._dtype, begin, length), row_address(values, self._dtype, begin, length), capacity
        )  # fmt: skip

    def _record(self, index: int, old: _BufferAddress, new_address: _BufferAddress) -> None:
        self.old_keys[index], self.old_values[index], self.old_capacities[index] = old
        self.new_keys[index], self.new_values[index], self.new_capacities[index] = new_address


def _spare_tokens(length: int, minimum: int) -> int:
    """Return for how many more tokens a layer of `length` tokens gets room: an eighth, so that copies stay rare."""
    return max(minimum, length // 8) if minimum else 0


def _token_capacity(states: torch.Tensor) -> int:
    """Return the token capacity of a head of [B, H, T, D]."""
    return states.stride(1) // states.shape[3]


def _is_row_major(states: torch.Tensor) -> bool:
    """Return whether [B, H, T, D] is ordered by head and token, with or without unused room between the heads."""
    texts, heads, _, width = states.shape
    by_text, by_head, by_token, by_number = states.stride()
    return by_number == 1 and by_token == width and by_head % width == 0 and (texts == 1 or by_text == heads * by_head)


class NativeDecodeStep:
    """Native step: `__call__(ids [B, n], cache)` returns float32 logits [B, keep, V] like the module, and extends the
    cache.
    """

    def __init__(self, native: NativeLibrary, modules: DecoderModules, weights: NativeWeights) -> None:
        self._library, self._modules, self._weights = native, modules, weights
        self._storage = _LayerStorage(len(modules.layers), weights.dtype)
        self._pass = native_library.PassStruct(**{
            name: ctypes.addressof(getattr(self._storage, name))
            for name in ("old_keys", "old_values", "new_keys", "new_values", "old_capacities", "new_capacities")
        })  # fmt: skip
        self._lock = threading.Lock()
        """Held during a pass: its description and the tables are shared by the threads that use the model."""
        self._max_tokens = _MAX_TOKENS_IN_PANELS if weights.is_in_panels else MAX_TOKENS
        self._has_windows = any(layer.window for layer in modules.layers)

    @property
    def has_shorter_weights(self) -> bool:
        """Whether weights are read in fewer bits than the module stores."""
        return self._weights.has_shorter_weights

    def refresh_paths(self) -> None:
        """Use the present factors of adapters, whose strengths may have changed."""
        with self._lock:
            self._weights.refresh_paths()

    def supports(self, ids: torch.Tensor, cache: Cache, has_positions: bool = False) -> bool:
        """Return whether it supports `ids` [B, n]: a few tokens after the prompt, with room for them.

        `has_positions` means explicit mask or positions, which are supported for one text without sliding windows and
        linear biases.
        """
        layers = cache.layers
        if ids.numel() > self._max_tokens or len(layers) != len(self._modules.layers):
            return False
        if has_positions and (len(ids) > 1 or self._has_windows or self._modules.slopes is not None):
            return False
        if isinstance(cache, StaticCache):
            return not self._has_windows and all(_has_capacity(layer, ids) for layer in layers)
        return all(is_plain_dynamic_layer(layer) and layer.is_initialized for layer in layers) and _has_keys(
            layers[0], ids, self._weights.dtype
        )

    def __call__(
        self, ids: torch.Tensor, cache: Cache, keep: int = 1, mask: torch.Tensor | None = None,
        positions: torch.Tensor | None = None, extra_capacity: int = 0,
    ) -> torch.Tensor:  # fmt: skip
        """Return logits of the last `keep` tokens of each row (all with 0).

        `mask`: additive [.., n, P + n], default causal; `positions` [1, n], default following the cache;
        `extra_capacity`: extra capacity of growing layers for later passes.
        """
        return self._run(ids, cache, keep, mask, positions, extra_capacity)[0]

    def with_states(
        self, ids: torch.Tensor, cache: Cache, keep: int, mask: torch.Tensor | None, positions: torch.Tensor | None,
        extra_capacity: int = 0,
    ) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
        """Return the same and the head's input for every token, [B, n, D]."""
        logits, hidden = self._run(ids, cache, keep, mask, positions, extra_capacity)
        return logits, self._modules.head_input(hidden)

    def _run(
        self, ids: torch.Tensor, cache: Cache, keep: int, mask: torch.Tensor | None, positions: torch.Tensor | None,
        extra_capacity: int,
    ) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
        """Return logits and the last layer's output."""
        (texts, count), past, keep = ids.shape, int(cache.get_seq_length()), keep or ids.shape[1]
        places = None if positions is None else positions.reshape(-1).to(torch.int64).contiguous()
        sees = None if mask is None else mask.reshape(count, past + count).float().contiguous()
        embedded = self._embed(ids, slice(past, past + count) if places is None else places)
        hidden, logits = (
            embedded.float().contiguous(),
            torch.empty(texts, keep, self._weights.vocabulary, dtype=torch.float32, device="cpu"),
        )
        with self._lock:
            self._weights.extend_tables(past, past + count, places)
            self._prepare_storage(cache, count, extra_capacity)
            one = self._pass
            one.texts, one.count, one.past, one.keep, one.threads = texts, count, past, keep, torch.get_num_threads()
            one.hidden = tensor_address(hidden, torch.float32, texts * count * self._weights.model.hidden)
            one.logits = tensor_address(logits, torch.float32)
            one.mask = optional_address(sees, torch.float32)
            one.positions = optional_address(places, torch.int64, count)
            self._library.step(self._weights.model, one)
            self._storage.references.clear()
        return logits, hidden

    def _embed(self, ids: torch.Tensor, places: Positions) -> torch.Tensor:
        """Return the embeddings [B, n, D]. If they go through a linear map, this is done token by token, because
        torch's product of one vector differs from that of several.
        """
        if self._modules.widen is None or ids.numel() == 1:
            return self._modules.embed_tokens(ids, places)
        index = range(places.start, places.stop) if isinstance(places, slice) else places.tolist()
        columns = [
            torch.cat([self._modules.embed_tokens(row[None, None], slice(place, place + 1)) for row in column])
            for column, place in zip(ids.t(), index, strict=True)
        ]
        return torch.cat(columns, 1)

    def _prepare_storage(self, cache: Cache, count: int, extra_capacity: int) -> None:
        """Reserve room for the keys and values of `count` tokens and record where it is."""
        for index, layer in enumerate(cache.layers):
            if isinstance(layer, FixedSizeLayer):
                self._storage.use_fixed(index, layer, count)
            elif isinstance(layer, DynamicLayer):
                self._storage.use_growing(index, layer, count, extra_capacity)


def _has_capacity(layer: object, ids: torch.Tensor) -> bool:
    return (
        type(layer) is FixedSizeLayer and layer.is_initialized and layer.keys.shape[0] == len(ids)
        and 0 < layer.length <= layer.max_cache_len - ids.shape[1]
    )  # fmt: skip


def _has_keys(layer: Any, ids: torch.Tensor, dtype: torch.dtype) -> bool:
    if isinstance(layer, PreallocatedLayer):
        return layer.row_count == len(ids) and layer.states_dtype is dtype
    keys: torch.Tensor = layer.keys
    return keys.dtype is dtype and keys.dim() == 4 and keys.shape[0] == len(ids) and keys.shape[2] > 0


@dataclass(frozen=True, slots=True)
class _NativeStepTrial:
    """Result of trying to build a native step for a fused pass."""

    fused: FusedDecoder
    step: NativeDecodeStep | None


def get_native_step(model: LoadedModel, cache: object, fused: FusedDecoder | None = None) -> NativeDecodeStep | None:
    """Return the model's native step for a cache, if it is built and both support it.

    It is kept with the model, rebuilt when weights change and ignored while the module is hooked or patched. Pass
    `fused`, the fused pass for that cache, if already known, because finding it inspects every weight.
    """
    found = library()
    if found is None or model.device.type != "cpu" or not isinstance(cache, (DynamicCache, StaticCache)):
        return None
    fused = fused or select_fused_pass(model, cache) or _fused_after_conversion(model, cache, found)
    if fused is None:
        return None
    tried: _NativeStepTrial | None = model.strategy_data.get(_KEY)
    if tried is None or tried.fused is not fused:
        model.strategy_data[_KEY] = tried = _build_native_step(model, cache, fused, found)
    if tried.step is not None:
        tried.step.refresh_paths()
    return tried.step


def _fused_after_conversion(model: LoadedModel, cache: object, native: NativeLibrary) -> FusedDecoder | None:
    """Convert int4 weights to row layout and return the fused pass.

    torch multiplies them with bfloat16 vectors, so that a fused pass matches only in that layout. Tried once.
    """
    if _CONVERTED in model.strategy_data:
        return None
    model.strategy_data[_CONVERTED] = True
    if not _convert_to_rows(model, native):
        return None
    discard_fused_decoder(model)
    return select_fused_pass(model, cache)


@isolated
def has_native_step(model: LoadedModel) -> bool:
    """Return whether the model decodes with the native step; tests it with a few passes if that is not known."""
    check_model(model)
    return get_native_step(model, DynamicCache()) is not None


@isolated
def _build_native_step(
    model: LoadedModel, cache: object, fused: FusedDecoder, library: NativeLibrary
) -> _NativeStepTrial:
    """Build a native step and keep it if it matches the module's output."""
    if _convert_to_rows(model, library):
        discard_fused_decoder(model)
        fused = select_fused_pass(model, cache) or fused
    network: Any = model.model
    try:
        parts = map_modules(network, False)
        copies = can_join_matrices(network)
        width = network.config.hidden_size
        panel = library.panel_rows if copies and model.dtype == torch.float32 else 0
        step = NativeDecodeStep(library, parts, NativeWeights(parts, model.dtype, width, copies, (), panel))
        if panel:
            shorter = (torch.bfloat16, torch.float16) if library.supports_float16 else (torch.bfloat16,)
            copied_weights = NativeWeights(parts, model.dtype, width, True, shorter, panel)
            step = _faster_step(step, NativeDecodeStep(library, parts, copied_weights), fused)
    except UnsupportedArchitecture as error:
        log.debug("no quick step for %s: %s", type(network).__name__, error)
        return _NativeStepTrial(fused, None)

    def either(ids: torch.Tensor, cache: Cache, keep: int = 1) -> torch.Tensor:
        return step(ids, cache, keep) if step.supports(ids, cache) else fused(ids, cache, keep)

    return _NativeStepTrial(fused, step if matches_module(either, model) else None)


def _faster_step(step: NativeDecodeStep, other: NativeDecodeStep, fused: FusedDecoder) -> NativeDecodeStep:
    """Return the faster of two steps. `other` reads the same numbers in fewer bits; whether that is faster depends on
    the CPU caches.
    """
    if not other.has_shorter_weights:
        return step
    caches: list[tuple[NativeDecodeStep, DynamicCache]] = [(step, DynamicCache()), (other, DynamicCache())]
    for _, cache in caches:
        fused(torch.zeros(1, 4, dtype=torch.long), cache)
    times = [[_time_step(one, cache) for one, cache in caches] for _ in range(_TIMED_TOKENS)]
    plain, shorter = (min(column) for column in zip(*times, strict=True))
    return other if shorter < plain else step


def _time_step(step: NativeDecodeStep, cache: DynamicCache) -> float:
    """Return the seconds that one token takes."""
    begun = time.perf_counter()
    step(torch.zeros(1, 1, dtype=torch.long), cache)
    return time.perf_counter() - begun


def _convert_to_rows(model: LoadedModel, native: NativeLibrary) -> bool:
    """Convert quantized weights to the layout of the native step; return whether any were converted."""
    moved = False
    for module in model.model.modules():
        if not isinstance(module, PackedLinear):
            continue
        if module.int8_matrix is not None and not isinstance(module.int8_matrix, Int8RowMatrix):
            module.int8_matrix, moved = to_int8_rows(module.int8_matrix, module.in_features, native), True
        if module.int4_matrix is not None and not isinstance(module.int4_matrix, Int4RowMatrix):
            module.int4_matrix, moved = to_int4_rows(module.int4_matrix, native), True
    return moved
