"""Layers that wait on disk and come into memory one ahead of the computation."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from transformers.cache_utils import CacheLayerMixin, DynamicCache

from core.caches.tensors.adapted_layer import AdaptedLayer, RowMove, StoredTensor, stored_tensor
from core.caches.tensors.disk_files import DiskFiles
from core.caches.tensors.layouts import full_cache
from core.caches.tensors.prefetching import Prefetcher, Submitter
from core.models.loaded_model import LoadedModel


class DiskLayer(CacheLayerMixin, AdaptedLayer):
    """Keys and values [B, H, T, D] in two mapped files; a pass gets copies in memory.

    `capacity`: tokens to allocate for at once, and to count from the start; None for files that grow.
    """

    is_sliding = False
    is_croppable = True
    allows_fused_pass = True

    def __init__(self, folder: Path, pool: Submitter, capacity: int | None) -> None:
        self.files = DiskFiles(folder, pool, capacity)
        self.is_initialized = False

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        """Files for the rows, heads and widths of the given states."""
        self.files.open(key_states, value_states)
        self.is_initialized = True

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: object, **kwargs: object
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Write new tokens [B, H, n, D] behind the others; all of them come back, in memory."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        return self.files.append((key_states, value_states))

    def prefetch(self) -> None:
        """Begin to bring this layer into memory, on the thread of the pool."""
        self.files.prefetch()

    def offload(self) -> None:
        """Let go of what was brought into memory."""
        self.files.release_copies()

    @property
    def keys(self) -> torch.Tensor | None:  # type: ignore[override]  # an attribute there
        """All keys, read from the file as they are needed; None when empty."""
        return self.files.read(0) if self.is_initialized else None

    @property
    def values(self) -> torch.Tensor | None:  # type: ignore[override]  # as above
        """All values, as `keys`."""
        return self.files.read(1) if self.is_initialized else None

    def get_seq_length(self) -> int:
        """Tokens held."""
        return self.files.length

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """(tokens a pass looks at, place of the first)."""
        return self.files.length + query_length, 0

    def get_max_length(self) -> int:
        """−1: it grows."""
        return -1

    def reorder_cache(self, beam_idx: torch.Tensor) -> None:
        """Row i becomes what row `beam_idx[i]` was."""
        if self.files.length:
            self.files.reorder(beam_idx.to("cpu"))

    def tokens_read(self) -> int:
        """Tokens held."""
        return self.files.length

    def min_length(self) -> int:
        """Everything is held."""
        return 0

    def truncate(self, length: int, total: int) -> None:
        """Forget all but the first `length` tokens."""
        if length < self.files.length:
            self.files.truncate(length)

    def keep_rows(self, base: int, rows: Sequence[int]) -> None:
        """Keep these rows behind the first `base` tokens."""
        if self.is_initialized:
            self.files.keep_positions(base, [base + row for row in rows])

    def reorder(self, move: RowMove) -> None:
        """Inside the files where the number of rows stays."""
        self.reorder_cache(move.index)

    def states(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Keys and values as they stand."""
        return self.files.read(0), self.files.read(1)

    def clone(self, pool: Submitter | None = None) -> DiskLayer:
        """An independent layer with the same content, in files of its own."""
        files = self.files
        twin = DiskLayer(files.folder, pool or files.pool, files.capacity)
        twin.files, twin.is_initialized = files.clone(pool or files.pool), self.is_initialized
        return twin

    def stored_tensors(self) -> Iterator[StoredTensor]:
        """What is written in the files, and the copies waiting in memory."""
        if not self.is_initialized:
            return
        files = self.files
        for part, tensor in zip(("keys", "values"), files.tensors, strict=True):
            share = files.length if files.capacity is None else tensor.shape[2]
            yield StoredTensor("disk", part, tensor, tensor[:, :, :share].numel() * tensor.element_size())
        for part, tensor in zip(("keys", "values"), files.prefetched(), strict=False):
            yield stored_tensor(part, tensor)


class DiskCache(DynamicCache):
    """A cache of disk layers; while one is computed with, the next is brought in by a thread of its own.

    Without `prefetches` nothing is: cross-attention reads its files directly.
    """

    layers: list[Any]

    def __init__(self, layers: list[DiskLayer], prefetcher: Prefetcher, prefetches: bool = True) -> None:
        super().__init__()
        self.layer_class_to_replicate = None
        self.layers, self.prefetches = layers, prefetches
        self._prefetcher = prefetcher
        weakref.finalize(self, prefetcher.stop_without_waiting)

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, layer_idx: int, *args: object, **kwargs: object
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """As the layer's, with the next layer on its way meanwhile (after the last one, the first)."""
        following = (layer_idx + 1) % len(self.layers)
        if following and self.prefetches:
            self.layers[following].prefetch()
        seen = self.layers[layer_idx].update(key_states, value_states, *args, **kwargs)
        if not following and self.prefetches:
            self.layers[0].prefetch()
        return seen[0], seen[1]

    def release_resources(self) -> None:
        """Hold nothing but the files: no thread, no copies in memory. Computing with it brings them back."""
        for layer in self.layers:
            layer.offload()
        self._prefetcher.stop()

    def clone(self) -> DiskCache:
        """An independent cache with the same content."""
        prefetcher = Prefetcher()
        twin = DiskCache([layer.clone(prefetcher) for layer in self.layers], prefetcher, self.prefetches)
        if self.prefetches:
            twin.layers[0].prefetch()
        return twin


def build_disk_cache(model: LoadedModel, folder: Path, capacity: int | None, prefetches: bool = True) -> DiskCache:
    """An empty cache on disk; windowed layers keep everything too."""
    prefetcher = Prefetcher()
    layers = [DiskLayer(folder, prefetcher, capacity) for _ in full_cache(model).layers]
    return DiskCache(layers, prefetcher, prefetches)
