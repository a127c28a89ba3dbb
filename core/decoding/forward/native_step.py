"""The quick step: a pass over a few tokens in machine code that was built for this machine.

It reads the module's own weights and does its operations in their order, as the lean pass does; what is gained is the
time between them. It serves what a lean pass serves, for few tokens on caches whose keys and values lie one behind the
other, and is held against the module before it is used. Of the rows and tokens of one pass each gets, to the last bit,
what it would get alone.
"""

from __future__ import annotations

import ctypes
import logging
import time
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn import functional as F
from transformers.cache_utils import Cache, DynamicCache, DynamicLayer, StaticCache

from core.caches.tensors.preallocated import KeyValueStorage, PreallocatedLayer, grows_plainly
from core.caches.tensors.static_layers import FixedSizeLayer
from core.decoding.forward.fused_llama import LARGEST, agrees, size_of
from core.decoding.forward.fused_selection import FusedForward, forget_lean, lean_pass
from core.decoding.forward.module_map import DecoderModules, UnsupportedArchitecture, anatomy_of
from core.decoding.forward.native_weights import NativeWeights
from core.models.loaded_model import LoadedModel, check_model
from core.models.quantized.int4_rows import Int4Rows, in_four_rows
from core.models.quantized.int8_rows import Int8Rows, in_rows
from core.models.quantized.packed_layers import PackedLinear
from core.native import structs
from core.native.native_library import NativeLibrary, library

log = logging.getLogger(__name__)

MOST = 16
"""Tokens of all texts that it takes at once; torch's products are quicker for more."""
_MOST_IN_PANELS = 32
"""The same where matrices lie in panels, which are quicker than torch for any number; attention is not."""
_KEY, _MOVED = "quick_step", "packed_in_rows"
_TRIES = 8
"""Tokens that two ways are timed with."""


_Place = tuple[int, int, int]
"""Addresses of keys and of values, and tokens that a head has room for."""


class _LayerStorage:
    """Where keys and values of every layer lie, before a pass and after it."""

    def __init__(self, layers: int) -> None:
        pointers, numbers = ctypes.c_void_p * layers, ctypes.c_int64 * layers
        self.old_keys, self.old_values, self.new_keys, self.new_values = (pointers() for _ in range(4))
        self.old_places, self.new_places = numbers(), numbers()
        self.held: list[torch.Tensor] = []
        """Storages that nobody else holds any more while they are read."""

    def grow(self, index: int, layer: DynamicLayer, count: int, spare: int) -> None:
        """Storages of a growing layer: those it has, where they have room, else new ones; in them `spare` places stay
        for the next passes, where the layer is one that can have room."""
        if isinstance(layer, PreallocatedLayer) and layer.take(count) and layer.stores:
            place = layer.stores[2:]
            self._note(index, place, place)
            return
        keys, values = layer.keys, layer.values
        assert keys is not None
        assert values is not None
        if not _is_in_rows(keys) or values.stride() != keys.stride():
            keys, values = keys.contiguous(), values.contiguous()
        self.held += (keys, values)
        length = keys.shape[2] + count
        made = KeyValueStorage.like(keys, length + spare if isinstance(layer, PreallocatedLayer) else length)
        if isinstance(layer, PreallocatedLayer):
            layer.hold(made, length)
        else:
            layer.keys, layer.values = made.keys, made.values
        self._note(index, (keys.data_ptr(), values.data_ptr(), _places(keys)), made[2:])

    def fill(self, index: int, layer: FixedSizeLayer, count: int) -> None:
        """The storages of a layer of fixed size, as they are."""
        place = layer.keys.data_ptr(), layer.values.data_ptr(), _places(layer.keys)
        self._note(index, place, place)
        layer.cumulative_length.add_(count)

    def _note(self, index: int, old: _Place, new: _Place) -> None:
        self.old_keys[index], self.old_values[index], self.old_places[index] = old
        self.new_keys[index], self.new_values[index], self.new_places[index] = new


def _places(states: torch.Tensor) -> int:
    """Tokens that a head of [B, H, T, D] has room for."""
    return states.stride(1) // states.shape[3]


def _is_in_rows(states: torch.Tensor) -> bool:
    """Whether [B, H, T, D] lies token behind token, head behind head, with or without room between the heads."""
    texts, heads, _, width = states.shape
    by_text, by_head, by_token, by_number = states.stride()
    return by_number == 1 and by_token == width and by_head % width == 0 and (texts == 1 or by_text == heads * by_head)


class NativeDecodeStep:
    """`__call__(ids [B, n], cache)` gives float32 logits [B, keep, V] as the module would, and extends the cache."""

    def __init__(self, found: NativeLibrary, lean: FusedForward, parts: DecoderModules, quick: NativeWeights) -> None:
        self._library, self._lean, self._parts, self._quick = found, lean, parts, quick
        self._stores = _LayerStorage(len(parts.layers))
        self._pass = structs.PassStruct(**{
            name: ctypes.addressof(getattr(self._stores, name))
            for name in ("old_keys", "old_values", "new_keys", "new_values", "old_places", "new_places")
        })  # fmt: skip
        self._most = _MOST_IN_PANELS if quick.in_panels else MOST
        self._has_windows = any(layer.window for layer in parts.layers)

    @property
    def is_shorter(self) -> bool:
        """Whether weights are read in fewer bits than the module has them."""
        return self._quick.is_shorter

    @property
    def vocabulary(self) -> int:
        """Logits of a token."""
        return self._quick.vocabulary

    def take(self, one: structs.PassStruct, reach: int) -> None:
        """Take a pass that others have described; its positions lie below `reach`."""
        self._quick.reach(reach)
        self._library.step(self._quick.model, one)

    def choose(self, logits: int, rows: int, chosen: int, found: int) -> None:
        """First choices of float32 logits [rows, V], as `NativeLibrary.choices` writes them."""
        self._library.choices(logits, (rows, self._quick.vocabulary), chosen, found)

    def is_of(self, lean: FusedForward) -> bool:
        """Whether it was made from the same weights."""
        return self._lean is lean

    def serves(self, ids: torch.Tensor, cache: Cache, is_placed: bool = False) -> bool:
        """Whether it can read `ids` [B, n]: a few tokens behind a prompt that was read, with room for them.

        `is_placed`: with a mask or positions of their own; then of one text, where no layer has a window.
        """
        layers = cache.layers
        if ids.numel() > self._most or len(layers) != len(self._parts.layers):
            return False
        if is_placed and (len(ids) > 1 or self._has_windows):
            return False
        if isinstance(cache, StaticCache):
            return not self._has_windows and all(_has_room(layer, ids) for layer in layers)
        return all(grows_plainly(layer) and layer.is_initialized for layer in layers) and _is_filled(layers[0], ids)

    def __call__(
        self, ids: torch.Tensor, cache: Cache, keep: int = 1, mask: torch.Tensor | None = None,
        positions: torch.Tensor | None = None, spare: int = 0,
    ) -> torch.Tensor:  # fmt: skip
        """Logits of the last `keep` tokens of each row, of all with 0.

        `mask`: additive [.., n, P + n], default causal; `positions` [1, n], default following the cache; `spare`: room
        that growing layers get for the tokens of later passes.
        """
        return self._read(ids, cache, keep, mask, positions, spare)[0]

    def with_states(
        self, ids: torch.Tensor, cache: Cache, keep: int, mask: torch.Tensor | None, positions: torch.Tensor | None,
        spare: int = 0,
    ) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
        """The same, and what the head reads of every token, [B, n, D]."""
        logits, hidden = self._read(ids, cache, keep, mask, positions, spare)
        return logits, self._parts.norm(hidden)

    def _read(
        self, ids: torch.Tensor, cache: Cache, keep: int, mask: torch.Tensor | None, positions: torch.Tensor | None,
        spare: int,
    ) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
        """Logits, and what the last layer wrote."""
        (texts, count), past, keep = ids.shape, int(cache.get_seq_length()), keep or ids.shape[1]
        places = None if positions is None else positions.reshape(-1).to(torch.int64).contiguous()
        sees = None if mask is None else mask.reshape(count, past + count).float().contiguous()
        hidden, logits = self._embed(ids, past, places), torch.empty(texts, keep, self._quick.vocabulary)
        self._quick.reach(past + count)
        self._place(cache, count, spare)
        one = self._pass
        one.texts, one.count, one.past, one.keep, one.threads = texts, count, past, keep, torch.get_num_threads()
        one.hidden, one.logits = hidden.data_ptr(), logits.data_ptr()
        one.mask = None if sees is None else sees.data_ptr()
        one.positions = None if places is None else places.data_ptr()
        self._library.step(self._quick.model, one)
        self._stores.held.clear()
        return logits, hidden

    def _place(self, cache: Cache, count: int, spare: int) -> None:
        """Make room for the keys and values of `count` tokens, and note where it is."""
        for index, layer in enumerate(cache.layers):
            if isinstance(layer, FixedSizeLayer):
                self._stores.fill(index, layer, count)
            elif isinstance(layer, DynamicLayer):
                self._stores.grow(index, layer, count, spare)

    def _embed(self, ids: torch.Tensor, past: int, places: torch.Tensor | None) -> torch.Tensor:
        """float32 [B, n, D], not shared with anything."""
        hidden = self._parts.embed(ids)
        if self._parts.positions is not None:
            table, start = self._parts.positions
            places = torch.arange(past, past + ids.shape[1]) if places is None else places
            hidden = hidden + F.embedding(places + start, table)
        return hidden.float().contiguous()


def _has_room(layer: object, ids: torch.Tensor) -> bool:
    return (
        type(layer) is FixedSizeLayer and layer.is_initialized and layer.keys.shape[0] == len(ids)
        and 0 < layer.length <= layer.max_cache_len - ids.shape[1]
    )  # fmt: skip


def _is_filled(layer: Any, ids: torch.Tensor) -> bool:
    if isinstance(layer, PreallocatedLayer):
        return layer.texts == len(ids)
    keys: torch.Tensor = layer.keys
    return keys.dim() == 4 and keys.shape[0] == len(ids) and keys.shape[2] > 0


@dataclass(frozen=True, slots=True)
class _NativeStepTrial:
    """What came of it, with the lean pass that there was."""

    lean: FusedForward
    step: NativeDecodeStep | None


def quick_step(model: LoadedModel, cache: object, lean: FusedForward | None = None) -> NativeDecodeStep | None:
    """The quick step of a model for a cache, where it is built, and both have one. Made once and kept with the model,
    made anew when its weights were changed, put aside when it was touched. `lean`: its lean pass for that cache, where
    somebody has just asked for it, which looks at every weight."""
    found = library()
    if found is None or model.device.type != "cpu" or not isinstance(cache, (DynamicCache, StaticCache)):
        return None
    lean = lean or lean_pass(model, cache) or _lean_once_moved(model, cache, found)
    if lean is None:
        return None
    tried: _NativeStepTrial | None = model.remembered.get(_KEY)
    if tried is None or tried.lean is not lean:
        model.remembered[_KEY] = tried = _try(model, cache, lean, found)
    return tried.step


def _lean_once_moved(model: LoadedModel, cache: object, found: NativeLibrary) -> FusedForward | None:
    """Of weights in four bits, which torch multiplies with vectors in bfloat16: a lean pass comes to the same only once
    they lie in rows. Tried once."""
    if _MOVED in model.remembered:
        return None
    model.remembered[_MOVED] = True
    if not _put_in_rows(model, found):
        return None
    forget_lean(model)
    return lean_pass(model, cache)


@torch.inference_mode()
def has_quick_step(model: LoadedModel) -> bool:
    """Whether its steps are taken in machine code; tries it where nobody has, which takes a few passes."""
    check_model(model)
    return quick_step(model, DynamicCache()) is not None


@torch.inference_mode()
def _try(model: LoadedModel, cache: object, lean: FusedForward, found: NativeLibrary) -> _NativeStepTrial:
    """A step that comes to the same as the module, if there is one."""
    if _put_in_rows(model, found):
        forget_lean(model)
        lean = lean_pass(model, cache) or lean
    network: Any = model.model
    try:
        parts = anatomy_of(network, False)
        copies = size_of(network) <= LARGEST
        width = network.config.hidden_size
        panel = found.panel if copies and model.dtype == torch.float32 else 0
        step = NativeDecodeStep(found, lean, parts, NativeWeights(parts, model.dtype, width, copies, (), panel))
        if panel:
            shorter = (torch.bfloat16, torch.float16) if found.has_halves else (torch.bfloat16,)
            kept = NativeWeights(parts, model.dtype, width, True, shorter, panel)
            step = _quicker(step, NativeDecodeStep(found, lean, parts, kept), lean)
    except UnsupportedArchitecture as error:
        log.debug("no quick step for %s: %s", type(network).__name__, error)
        return _NativeStepTrial(lean, None)

    def either(ids: torch.Tensor, cache: Cache, keep: int = 1) -> torch.Tensor:
        return step(ids, cache, keep) if step.serves(ids, cache) else lean(ids, cache, keep)

    return _NativeStepTrial(lean, step if agrees(either, model) else None)


def _quicker(step: NativeDecodeStep, other: NativeDecodeStep, lean: FusedForward) -> NativeDecodeStep:
    """`other` reads the same numbers in fewer bits: whether that is quicker depends on what the caches hold."""
    if not other.is_shorter:
        return step
    caches: list[tuple[NativeDecodeStep, DynamicCache]] = [(step, DynamicCache()), (other, DynamicCache())]
    for _, cache in caches:
        lean(torch.zeros(1, 4, dtype=torch.long), cache)
    times = [[_time(one, cache) for one, cache in caches] for _ in range(_TRIES)]
    plain, shorter = (min(column) for column in zip(*times, strict=True))
    return other if shorter < plain else step


def _time(step: NativeDecodeStep, cache: DynamicCache) -> float:
    """Seconds of one token."""
    begun = time.perf_counter()
    step(torch.zeros(1, 1, dtype=torch.long), cache)
    return time.perf_counter() - begun


def _put_in_rows(model: LoadedModel, found: NativeLibrary) -> bool:
    """Have packed weights lie as the quick step reads them; whether any were moved."""
    moved = False
    for module in model.model.modules():
        if not isinstance(module, PackedLinear):
            continue
        if module.eight is not None and not isinstance(module.eight, Int8Rows):
            module.eight, moved = in_rows(module.eight, module.in_features, found), True
        if module.four is not None and not isinstance(module.four, Int4Rows):
            module.four, moved = in_four_rows(module.four, found), True
    return moved
