"""Static caches: layers of a fixed size, allocated once."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence

import torch
from transformers.cache_utils import (
    Cache,
    EncoderDecoderCache,
    StaticCache,
    StaticLayer,
    StaticSlidingWindowLayer,
    get_layer_types_and_kwargs,
)

from decodescope.core.caches.tensors.adapted_layer import (
    AdaptedLayer,
    CacheLayer,
    RowMove,
    StoredTensor,
    clone_layer,
    stored_tensor,
)
from decodescope.core.caches.tensors.dynamic_layers import with_cross_attention
from decodescope.core.errors import CacheError
from decodescope.core.models.loaded_model import LoadedModel
from decodescope.core.system.gpu import upload
from decodescope.resources.language import tr

_SIZE_STEP = 128
"""Compiled code is specific to one size, so sizes are rounded up to a multiple of this and runs of similar length share
it.
"""


def _as_static(storage: torch.Tensor) -> torch.Tensor:
    """Mark a storage whose address stays the same: only then may a CUDA graph write to it."""
    torch._dynamo.mark_static_address(storage)
    return storage


class _InPlaceReorder:
    """Mixin that reorders rows within the storage, because compiled code relies on its address."""

    is_initialized: bool
    keys: torch.Tensor | None
    values: torch.Tensor | None

    def reorder_cache(self, beam_idx: torch.Tensor) -> None:
        """Make new row i the old row `beam_idx[i]`; a different number of rows needs new storages."""
        if not self.is_initialized:
            return
        for name in ("keys", "values"):
            old = getattr(self, name)
            rows = old.index_select(0, beam_idx.to(old.device))
            if rows.shape == old.shape:
                old.copy_(rows)
            else:
                setattr(self, name, _as_static(rows))


class FixedSizeLayer(_InPlaceReorder, StaticLayer, AdaptedLayer):
    """Static layer that keeps all tokens up to its size.

    While it is `trimmed`, it returns only the tokens it holds, as a growing layer does, because drafts are read through
    a mask as long as the text. It grows if drafts do not fit.
    """

    keys: torch.Tensor
    values: torch.Tensor
    allows_fused_pass = True
    trimmed = False
    _host_length = 0
    """Copy of `cumulative_length` in host memory: reading that one waits for a GPU."""
    _is_counter_behind = False
    """Whether tokens were counted on the host alone."""

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: object, **kwargs: object
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Append new tokens [B, H, n, D]; return all positions, or only the filled ones while `trimmed`."""
        if self._is_counter_behind:
            self._set_length(self._host_length)
        if not self.trimmed:
            seen: tuple[torch.Tensor, torch.Tensor] = super().update(key_states, value_states, *args, **kwargs)
            if not torch.compiler.is_compiling():  # a graph repeats no Python: see `note_compiled_step`
                self._host_length += key_states.shape[-2]
            return seen
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        start = self.length
        stop = start + key_states.shape[-2]
        self._ensure_capacity(stop)
        self.keys[:, :, start:stop] = key_states
        self.values[:, :, start:stop] = value_states
        self._set_length(stop)
        return self.keys[:, :, :stop], self.values[:, :, :stop]

    def _set_length(self, length: int) -> None:
        self.cumulative_length.fill_(length)
        self._host_length, self._is_counter_behind = length, False

    def count_tokens(self, count: int) -> None:
        """Count tokens whose keys and values the caller writes into the storages."""
        self.cumulative_length.add_(count)
        self._host_length += count

    def count_on_host(self, count: int) -> None:
        """Count the same tokens without a launch; `update` corrects the counter on the device."""
        self._host_length += count
        self._is_counter_behind = True

    def note_compiled_step(self) -> None:
        """Count the token that a compiled step has read."""
        self._host_length += 1

    @property
    def length(self) -> int:
        """Number of tokens held."""
        return self._host_length

    def get_seq_length(self) -> int:
        """Return the number of tokens held; within compiled code the tensor that counts them."""
        if torch.compiler.is_compiling():
            return super().get_seq_length()
        return self._host_length

    def crop(self, tokens_to_remove: int) -> None:
        """Drop the last tokens; transformers passes a negative number."""
        if self._is_counter_behind:
            self._set_length(self._host_length)
        super().crop(tokens_to_remove)
        self._host_length -= abs(tokens_to_remove)

    def reset(self) -> None:
        """Drop all tokens."""
        super().reset()
        self._host_length, self._is_counter_behind = 0, False

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """Return (number of positions a pass attends to, position of the first)."""
        return (self.length + query_length if self.trimmed else self.max_cache_len), 0

    def tokens_read(self) -> int:
        """Return the number of tokens held."""
        return self.length

    def min_length(self) -> int:
        """Return 0: everything is held."""
        return 0

    def truncate(self, length: int, total: int) -> None:
        """Drop all but the first `length` tokens: their positions are zeroed, the storage stays in place."""
        held = self.length
        if length < held:
            self.keys[:, :, length:held].zero_()
            self.values[:, :, length:held].zero_()
            self._set_length(length)

    def keep_rows(self, base: int, rows: Sequence[int]) -> None:
        """Keep these rows after the first `base` tokens."""
        if not self.is_initialized:
            return
        stop = base + len(rows)
        index = upload([base + row for row in rows], self.keys.device, torch.long)
        for tensor in (self.keys, self.values):
            tensor[:, :, base:stop] = tensor.index_select(2, index)
        self.truncate(stop, self.length)

    def reorder(self, move: RowMove) -> None:
        """Reorder in place if the number of rows stays the same."""
        self.reorder_cache(move.index(self.keys.device if self.is_initialized else torch.device("cpu")))

    def states(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return keys and values as stored."""
        return self.keys, self.values

    def clone(self) -> FixedSizeLayer:
        """Return an independent layer with the same content."""
        return clone_layer(self)

    def stored_tensors(self) -> Iterator[StoredTensor]:
        """Yield keys, values and the counter."""
        if self.is_initialized:
            parts = (("keys", self.keys), ("values", self.values), ("state", self.cumulative_length))
            yield from (stored_tensor(part, tensor) for part, tensor in parts)

    def show_text_only(self, on: bool) -> None:
        """Return only the tokens held, as a growing layer does, or all positions again."""
        self.trimmed = on

    def _ensure_capacity(self, tokens: int) -> None:
        if tokens <= self.max_cache_len:
            return
        for name in ("keys", "values"):
            old = getattr(self, name)
            larger = old.new_zeros(*old.shape[:2], tokens, old.shape[-1])
            larger[:, :, : old.shape[2]] = old
            setattr(self, name, _as_static(larger))
        self.max_cache_len = tokens


class FixedSizeWindowLayer(_InPlaceReorder, StaticSlidingWindowLayer):
    """Static layer that keeps its window."""


class PreallocatedStaticCache(StaticCache):
    """A cache of fixed size, for compiled or plain steps."""

    def __init__(self, model: LoadedModel, length: int, compiled: bool) -> None:
        super().__init__(config=model.config, max_cache_len=length)
        self.layers = convert_static_layers(model, self.layers)
        self.compiled = compiled


def build_static(model: LoadedModel, length: int, compiled: bool = False) -> Cache:
    """Build an empty static cache for `length` tokens. Raises CacheError if compilation is requested but impossible."""
    if compiled:
        check_compiler(model)
    return with_cross_attention(model, PreallocatedStaticCache(model, allocated_length(length, compiled), compiled))


def is_compiled(cache: Cache | None) -> bool:
    """Return whether the cache was made for compiled steps."""
    own = cache.self_attention_cache if isinstance(cache, EncoderDecoderCache) else cache
    return isinstance(own, PreallocatedStaticCache) and own.compiled


def note_compiled_step(cache: Cache) -> None:
    """Count the token that a compiled step has read in every layer."""
    own = cache.self_attention_cache if isinstance(cache, EncoderDecoderCache) else cache
    for layer in own.layers:
        if isinstance(layer, FixedSizeLayer):
            layer.note_compiled_step()


def convert_static_layers(model: LoadedModel, layers: Sequence[CacheLayer]) -> list[CacheLayer]:
    """Convert transformers' static layers into the program's own."""
    _, details = get_layer_types_and_kwargs(model.config)
    return [_convert(layer, detail) for layer, detail in zip(layers, details, strict=False)]


def _convert(layer: CacheLayer, detail: Mapping[str, int]) -> CacheLayer:
    if type(layer) is StaticLayer:
        return FixedSizeLayer(layer.max_cache_len)
    if type(layer) is StaticSlidingWindowLayer:
        return FixedSizeWindowLayer(layer.max_cache_len, sliding_window=detail["sliding_window"])
    return layer


def allocated_length(length: int, compiled: bool) -> int:
    """Return the number of tokens that are actually allocated."""
    return -(-length // _SIZE_STEP) * _SIZE_STEP if compiled else length


def check_compiler(model: LoadedModel) -> None:
    """Raise CacheError if torch.compile cannot compile this model on this machine."""
    if any("sliding_window" in detail for detail in get_layer_types_and_kwargs(model.config)[1]):
        raise CacheError(
            tr("The windowed layers of {model} would have to be compiled again for every token.").format(
                model=model.name
            ),
            tr("Turn compilation off."),
        )
    if model.device.type not in ("cpu", "cuda"):
        raise CacheError(
            tr("torch does not compile reliably for {device}.").format(device=model.device.type),
            tr("Turn compilation off."),
        )
    if model.device.type == "cpu" and not any(map(shutil.which, ("c++", "g++", "clang++", "cl"))):
        raise CacheError(
            tr("Compiling for the CPU needs a C++ compiler, but this computer has none."),
            tr("Install one (g++, clang or the Visual Studio build tools), or turn compilation off."),
        )
