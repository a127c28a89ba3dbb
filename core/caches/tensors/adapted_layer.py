"""Common interface of the layers of a filled cache, whatever their class: crop, keep, reorder, copy, measure."""

from __future__ import annotations

import copy as copying
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeVar, cast

import torch
from transformers.cache_utils import CacheLayerMixin, DummyLayer, LinearAttentionCacheLayerMixin

from decodescope.core.errors import CacheError
from decodescope.core.system.gpu import upload
from decodescope.resources.language import mark, tr

NEVER = 1 << 62
"""A length that no text reaches."""
REMEDY = mark("Choose the dynamic cache for this.")
T = TypeVar("T")
CacheLayer = CacheLayerMixin | LinearAttentionCacheLayerMixin | DummyLayer
"""Layer classes that a transformers cache may contain."""
Spans = tuple[tuple[int, int], ...]
"""Text positions as [start, stop) ranges."""


class StoredTensor(NamedTuple):
    """A tensor that a layer stores: its device (device, host, disk), its role, the tensor, and its bytes in use."""

    device_kind: str
    part: str
    tensor: torch.Tensor
    bytes: int


class RowMove:
    """A reordering of rows: new row i is old row `rows[i]`, of `before` old rows. Its index tensors are uploaded once
    for all layers.
    """

    def __init__(self, rows: Sequence[int], before: int) -> None:
        self.rows, self.before = tuple(rows), before
        self._indices: dict[torch.device, torch.LongTensor] = {}
        self._changes: dict[torch.device, tuple[torch.Tensor, torch.Tensor]] = {}

    def index(self, device: torch.device) -> torch.LongTensor:
        """Return `rows` as a tensor on the device."""
        if device not in self._indices:
            self._indices[device] = cast("torch.LongTensor", upload(self.rows, device, torch.long))
        return self._indices[device]

    def changes(self, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
        """Return (indices of changed rows, their source rows) on the device."""
        if device not in self._changes:
            moved = [place for place, row in enumerate(self.rows) if row != place]
            places, sources = upload([moved, [self.rows[place] for place in moved]], device, torch.long)
            self._changes[device] = places, sources
        return self._changes[device]


class AdaptedLayer(ABC):
    """One cache layer. The program's own layers derive from this class; transformers' layers are wrapped by
    `adapt_layer`.

    Operations that a layer cannot perform raise CacheError.
    """

    allows_fused_pass = False
    """Whether `update` returns exactly the keys and values of everything held, so that a fused pass may use it."""
    keeps_original_keys = True
    """Whether `keys` holds what the model wrote: not quantized, with positions still applied."""

    @abstractmethod
    def tokens_read(self) -> int | None:
        """Return the number of text tokens read so far, dropped ones included; None for layers that do not count
        (states).
        """

    @abstractmethod
    def min_length(self) -> int:
        """Return the shortest length the text can be cropped to: 0 if everything is held, `NEVER` if nothing can be
        removed.
        """

    @abstractmethod
    def truncate(self, length: int, total: int) -> None:
        """Drop all but the first `length` of the `total` tokens read. Storage may stay allocated until `compact`."""

    @abstractmethod
    def keep_rows(self, base: int, rows: Sequence[int]) -> None:
        """Keep `rows` (counted from `base`) of the tokens after the first `base`, in this order."""

    @abstractmethod
    def reorder(self, move: RowMove) -> None:
        """Permute, repeat or drop rows."""

    @abstractmethod
    def states(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return keys and values [B, H, T, D] as stored; only for layers of keys and values that were written to."""

    @abstractmethod
    def clone(self) -> CacheLayer:
        """Return an independent layer of the same class with the same content."""

    @abstractmethod
    def stored_tensors(self) -> Iterator[StoredTensor]:
        """Yield every stored tensor."""

    def compact(self) -> None:  # noqa: B027  # most have nothing to give back
        """Release memory that only removed tokens still occupy."""

    def spare_bytes(self) -> int:
        """Return the bytes allocated for later tokens, which `stored_tensors` does not count."""
        return 0

    def held_spans(self) -> Spans:
        """Return the text positions of the tokens held; () if none is ever dropped."""
        return ()

    def error_sums(self) -> tuple[float, float] | None:
        """Return the sums of squares of the keys' rounding error and of the keys; None if nothing is rounded."""
        return None

    def record_past(self, on: bool) -> None:  # noqa: B027
        """Keep, until the next crop, what it may need; a no-op for layers that hold everything."""

    def show_text_only(self, on: bool) -> None:  # noqa: B027
        """Make a fixed-size layer return only the tokens it holds, as growing layers do, or all its positions again."""


def device_kind(tensor: torch.Tensor) -> str:
    """Return `host` for a tensor in main memory, otherwise `device`."""
    return "host" if tensor.device.type == "cpu" else "device"


def stored_tensor(part: str, tensor: torch.Tensor) -> StoredTensor:
    """Describe a tensor with its full storage."""
    return StoredTensor(device_kind(tensor), part, tensor, tensor.untyped_storage().nbytes())


def compact_tensor(tensor: torch.Tensor) -> torch.Tensor:
    """Return the tensor itself, or a copy if its storage is larger than the tensor."""
    whole = tensor.untyped_storage().nbytes() == tensor.numel() * tensor.element_size()
    return tensor if whole else tensor.clone(memory_format=torch.contiguous_format)


def clone_layer(layer: T) -> T:
    """Return a copy of the layer in which all its tensors, also those in dictionaries, are cloned."""
    twin = copying.copy(layer)
    for name, value in vars(layer).items():
        setattr(twin, name, _cloned_value(value))
    return twin


def _cloned_value(value: object) -> object:
    if isinstance(value, torch.Tensor):
        return value.clone()
    return {key: _cloned_value(item) for key, item in value.items()} if isinstance(value, dict) else value


def window_moved_error(length: int) -> CacheError:
    """Return the error for a window that no longer holds what a shorter text would need."""
    return CacheError(
        tr("The window has moved past the tokens that a text of {length:,} tokens needs.").format(length=length),
        tr(REMEDY),
    )
