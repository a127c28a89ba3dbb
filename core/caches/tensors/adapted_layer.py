"""What can be asked of one layer of a filled cache, whatever class it is of: cut, keep, reorder, copy, measure."""

from __future__ import annotations

import copy as copying
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import torch
from transformers.cache_utils import CacheLayerMixin, DummyLayer, LinearAttentionCacheLayerMixin

from core.errors import CacheError
from resources.language import mark, tr

NEVER = 1 << 62
"""A length no text has."""
REMEDY = mark("Choose the dynamic cache for this.")
T = TypeVar("T")
CacheLayer = CacheLayerMixin | LinearAttentionCacheLayerMixin | DummyLayer
"""What transformers lets a cache be made of."""
Spans = tuple[tuple[int, int], ...]
"""Places in the text, [start, stop) each."""


class StoredTensor(NamedTuple):
    """Something a layer keeps: where (device, host, disk), as what, the tensor, its bytes that are in use."""

    device_kind: str
    part: str
    tensor: torch.Tensor
    bytes: int


@dataclass(frozen=True, slots=True)
class RowMove:
    """Row i becomes what row `rows[i]` was, of `before` rows."""

    rows: tuple[int, ...]
    before: int

    @property
    def index(self) -> torch.LongTensor:
        """`rows` as a LongTensor on the CPU."""
        return torch.LongTensor(self.rows)

    @property
    def changes(self) -> tuple[torch.Tensor, torch.Tensor]:
        """(places that change, what comes there)."""
        moved = [place for place, row in enumerate(self.rows) if row != place]
        return torch.tensor(moved), torch.tensor([self.rows[place] for place in moved])


class AdaptedLayer(ABC):
    """One layer. The program's own layers are of this class; transformers' get it by `faces.face`.

    Where something is impossible for a kind of layer, CacheError says so.
    """

    allows_fused_pass = False
    """`update` gives back the keys and values of everything held and nothing else, so that a lean pass may use it."""
    keeps_original_keys = True
    """What `keys` shows is what the model wrote: no codes, no places taken off."""

    @abstractmethod
    def tokens_read(self) -> int | None:
        """Tokens of the text read so far, forgotten ones included; None for what does not count (a state)."""

    @abstractmethod
    def min_length(self) -> int:
        """How short the text can be cut: 0 where everything is held, `NEVER` where nothing can be taken back."""

    @abstractmethod
    def truncate(self, length: int, total: int) -> None:
        """Forget all but the first `length` of the `total` tokens read. Storages may stay until `compact`."""

    @abstractmethod
    def keep_rows(self, base: int, rows: Sequence[int]) -> None:
        """Of what stands behind the first `base` tokens keep `rows` (counted from there), in this order."""

    @abstractmethod
    def reorder(self, move: RowMove) -> None:
        """Rows change places, repeat or go."""

    @abstractmethod
    def states(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Keys and values [B, H, T, D] as they stand; for layers of keys and values that were written to."""

    @abstractmethod
    def clone(self) -> CacheLayer:
        """An independent layer of the same class with the same content."""

    @abstractmethod
    def stored_tensors(self) -> Iterator[StoredTensor]:
        """Everything it keeps."""

    def compact(self) -> None:  # noqa: B027  # most have nothing to give back
        """Give back memory that only tokens taken back still occupy."""

    def held_spans(self) -> Spans:
        """Places in the text of the tokens held; () where none is ever forgotten."""
        return ()

    def error_sums(self) -> tuple[float, float] | None:
        """Sums of squares: of what rounding took from the keys, of the keys; None where nothing is rounded."""
        return None

    def record_past(self, on: bool) -> None:  # noqa: B027
        """Hold what a cut may need again, until it comes; a no-op where everything is held anyway."""

    def show_text_only(self, on: bool) -> None:  # noqa: B027
        """Let a layer of fixed size show the tokens it holds, as growing ones do, or all its places again."""


def device_kind(tensor: torch.Tensor) -> str:
    """`host` for a tensor in main memory, `device` elsewhere."""
    return "host" if tensor.device.type == "cpu" else "device"


def stored_tensor(part: str, tensor: torch.Tensor) -> StoredTensor:
    """A tensor with its whole storage."""
    return StoredTensor(device_kind(tensor), part, tensor, tensor.untyped_storage().nbytes())


def compact_tensor(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor itself, or a copy when its storage holds more than it shows."""
    whole = tensor.untyped_storage().nbytes() == tensor.numel() * tensor.element_size()
    return tensor if whole else tensor.clone(memory_format=torch.contiguous_format)


def clone_layer(layer: T) -> T:
    """A layer whose own tensors, those in dictionaries too, are copies."""
    twin = copying.copy(layer)
    for name, value in vars(layer).items():
        setattr(twin, name, _cloned_value(value))
    return twin


def _cloned_value(value: object) -> object:
    if isinstance(value, torch.Tensor):
        return value.clone()
    return {key: _cloned_value(item) for key, item in value.items()} if isinstance(value, dict) else value


def window_moved_error(length: int) -> CacheError:
    """The error of a window that does not hold what a shorter text would need."""
    return CacheError(
        tr("The window has moved past what a text of {length:,} tokens needs to see.").format(length=length), tr(REMEDY)
    )
