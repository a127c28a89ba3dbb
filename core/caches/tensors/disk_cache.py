"""Cache layers on disk, prefetched into memory one layer ahead of the computation."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, TypeVar

import platformdirs
import torch
from transformers.cache_utils import Cache, CacheLayerMixin, DynamicCache, EncoderDecoderCache

from decodescope.core.caches.tensors.adapted_layer import AdaptedLayer, RowMove, StoredTensor, stored_tensor
from decodescope.core.caches.tensors.continuation_probe import full_cache
from decodescope.core.caches.tensors.dynamic_layers import with_cross_attention
from decodescope.core.caches.tensors.host_offload import HostOffloadedCache, HostOffloadedStaticCache
from decodescope.core.caches.tensors.static_layers import convert_static_layers
from decodescope.core.errors import CacheError
from decodescope.core.models.loaded_model import LoadedModel
from decodescope.core.system.system_errors import system_error_reason
from decodescope.resources.language import tr


def disk_cache_folder(requested: str) -> Path:
    """Return the requested folder, or the user's cache folder (the system's temporary folder is often kept in memory).

    Raises CacheError if it cannot be used.
    """
    folder = Path(requested).expanduser() if requested else platformdirs.user_cache_path("decodescope") / "offloaded"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError as error:
        raise CacheError(
            tr("The folder {folder} cannot be written to ({reason}).").format(
                folder=folder, reason=system_error_reason(error)
            ),
            tr("Choose another folder for the file."),
        ) from error


class MappedTensor:
    """A tensor of `shape` in its own file, which is deleted when the tensor is no longer referenced.

    Raises CacheError if the disk is full. The space is reserved at once, because a full disk would otherwise kill the
    process at a later write.
    """

    def __init__(self, shape: Sequence[int], dtype: torch.dtype, folder: Path) -> None:
        numbers = 1
        for side in shape:
            numbers *= side
        size = numbers * torch.empty((), dtype=dtype).element_size()
        handle, name = tempfile.mkstemp(prefix="decodescope-", suffix=".cache", dir=folder)
        self._path = Path(name)
        try:
            _reserve(handle, size, folder)
            self.tensor = torch.from_file(name, shared=True, size=numbers, dtype=dtype).view(*shape)
        except BaseException:
            self.remove()
            raise
        finally:
            os.close(handle)
        # Unlink at once where the system allows it: the space is then freed however the program ends.
        if os.name == "posix":
            self.remove()

    def remove(self) -> None:
        """Delete the file's directory entry."""
        with contextlib.suppress(OSError):
            self._path.unlink(missing_ok=True)

    def __del__(self) -> None:
        if hasattr(self, "tensor"):
            del self.tensor
        self.remove()


def _reserve(handle: int, size: int, folder: Path) -> None:
    free = shutil.disk_usage(folder).free
    try:
        if size > free:
            raise OSError(tr("no space left on the disk"))
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(handle, 0, max(size, 1))
        else:
            os.truncate(handle, size)
    except OSError as error:
        raise CacheError(
            tr("The cache needs {size:,.1f} MB more on the disk of {folder}, where {free:,.1f} MB are free.").format(
                size=size / 1e6, folder=folder, free=free / 1e6
            ),
            tr("Free some space, choose another folder, or generate fewer tokens."),
        ) from error


T = TypeVar("T")


class Submitter(Protocol):
    """Something that accepts work: a `Prefetcher` or an executor."""

    def submit(self, work: Callable[..., T], /, *arguments: Any) -> Future[T]:
        """Run `work` on another thread."""


class Prefetcher:
    """One thread that starts with the first work and stops with `stop`; further work starts a new thread.

    Caches stored for later runs stop their threads, because hundreds of them may be stored.
    """

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None
        self._lock = threading.Lock()

    def submit(self, work: Callable[..., T], /, *arguments: Any) -> Future[T]:
        """Run `work` on the thread."""
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(1, thread_name_prefix="cache-prefetch")
            return self._pool.submit(work, *arguments)

    def stop(self) -> None:
        """Stop the thread after its pending work."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown()

    def stop_without_waiting(self) -> None:
        """Stop the thread without waiting for it, because its cache is garbage.

        Garbage collection can run in any thread, also in one that is just starting: waiting there for the pool's thread
        could wait for a lock that this thread holds. For the same reason, take no lock.
        """
        self._pool = self._pool or ThreadPoolExecutor(1)  # a placeholder that accepts no further work
        self._pool.shutdown(wait=False, cancel_futures=True)


KeyValuePair = tuple[torch.Tensor, torch.Tensor]
"""Keys and values [B, H, T, D]."""

_INITIAL_CAPACITY = 256
"""Initial capacity of a growing file in tokens; it doubles when full."""


class DiskFiles:
    """Keys and values [B, H, T, D] in two memory-mapped files, of which the first `length` tokens are written.

    `capacity`: number of tokens to allocate at once; None for files that grow. Allocation raises CacheError if the disk
    is full.
    """

    def __init__(self, folder: Path, pool: Submitter, capacity: int | None) -> None:
        self.folder, self.pool, self.capacity = folder, pool, capacity
        self.length = 0
        self._mapped: tuple[MappedTensor, MappedTensor] | None = None
        self._device = torch.device("cpu")
        self._prefetched: Future[list[torch.Tensor]] | None = None

    def open(self, keys: torch.Tensor, values: torch.Tensor) -> None:
        """Create the files for the rows, heads, widths and dtypes of the given states; copies go to their device."""
        self._device = keys.device
        self._allocate(self.capacity or _INITIAL_CAPACITY, keys, values)

    @property
    def tensors(self) -> KeyValuePair:
        """Keys and values on disk with their full capacity."""
        assert self._mapped is not None
        return self._mapped[0].tensor, self._mapped[1].tensor

    def read(self, index: int) -> torch.Tensor:
        """Return the written keys (0) or values (1), read on demand."""
        return self.tensors[index][:, :, : self.length].to(self._device)

    def append(self, new: KeyValuePair) -> KeyValuePair:
        """Append new tokens [B, H, n, D] and return all tokens, in memory."""
        count = new[0].shape[-2]
        self._ensure_capacity(self.length + count)
        seen = new
        if self.length:
            keys, values = self._loaded_copies()
            seen = self._join(keys, new[0]), self._join(values, new[1])
        for tensor, states in zip(self.tensors, new, strict=True):
            tensor[:, :, self.length : self.length + count] = states
        self.length += count
        return seen

    def reorder(self, rows: torch.Tensor) -> None:
        """Make new row i the old row `rows[i]`; in place if the number of rows stays the same."""
        with self._paused_prefetch():
            old = self.tensors
            chosen = old[0].index_select(0, rows), old[1].index_select(0, rows)
            if chosen[0].shape != old[0].shape:
                self._rewrite(chosen, old[0].shape[2])
                return
            for tensor, states in zip(old, chosen, strict=True):
                tensor.copy_(states)

    def truncate(self, length: int) -> None:
        """Drop all but the first `length` tokens."""
        with self._paused_prefetch():
            self.length = length

    def keep_positions(self, base: int, positions: Sequence[int]) -> None:
        """Keep the tokens at these positions after the first `base` tokens."""
        stop = base + len(positions)
        with self._paused_prefetch():
            for tensor in self.tensors:
                tensor[:, :, base:stop] = tensor[:, :, list(positions)]
            self.length = stop

    def clone(self, pool: Submitter) -> DiskFiles:
        """Return separate files with the same content, prefetched by `pool`."""
        twin = DiskFiles(self.folder, pool, self.capacity)
        if self._mapped is not None:
            twin.length, twin._device = self.length, self._device
            twin._rewrite(self.tensors, self.tensors[0].shape[2])
        return twin

    # Copies in memory

    def prefetch(self) -> None:
        """Start loading the written tokens into memory on the prefetch thread."""
        if self.length and self._prefetched is None:
            self._prefetched = self.pool.submit(self._load)

    def release_copies(self) -> None:
        """Release the copies in memory."""
        if self._prefetched is not None:
            self._prefetched.result()
        self._prefetched = None

    def prefetched(self) -> Sequence[torch.Tensor]:
        """Return the prefetched copies of keys and values; empty if nothing was prefetched."""
        return self._prefetched.result() if self._prefetched is not None else ()

    @contextmanager
    def _paused_prefetch(self) -> Iterator[None]:
        """Drop prefetched copies while the files change, and prefetch again afterwards."""
        was_ahead = self._prefetched is not None
        self.release_copies()
        yield
        if was_ahead:
            self.prefetch()

    def _loaded_copies(self) -> Sequence[torch.Tensor]:
        """Return copies of keys and values in memory with capacity for one more token."""
        loaded = self.prefetched() or self._load()
        self._prefetched = None
        return loaded

    @torch.no_grad()
    def _load(self) -> list[torch.Tensor]:
        copies = []
        for tensor in self.tensors:
            rows, heads, _, width = tensor.shape
            copy = torch.empty(rows, heads, self.length + 1, width, dtype=tensor.dtype, device=self._device)
            copy[:, :, : self.length] = tensor[:, :, : self.length]
            copies.append(copy)
        return copies

    def _join(self, loaded: torch.Tensor, states: torch.Tensor) -> torch.Tensor:
        if states.shape[-2] > 1:
            return torch.cat([loaded[:, :, : self.length], states], dim=-2)
        loaded[:, :, self.length :] = states
        return loaded

    # Files on disk

    def _allocate(self, capacity: int, keys: torch.Tensor, values: torch.Tensor) -> None:
        """Create files with `capacity` tokens for the rows, heads and widths of keys and values."""
        sides = [(t.shape[0], t.shape[1], capacity, t.shape[3]) for t in (keys, values)]
        self._mapped = (
            MappedTensor(sides[0], keys.dtype, self.folder), MappedTensor(sides[1], values.dtype, self.folder),
        )  # fmt: skip

    def _ensure_capacity(self, tokens: int) -> None:
        old = self.tensors
        if tokens > old[0].shape[2]:
            self._rewrite(old, max(tokens, 2 * old[0].shape[2]))

    def _rewrite(self, states: KeyValuePair, capacity: int) -> None:
        """Write the first `length` tokens of `states` into new files."""
        self.release_copies()
        self._allocate(capacity, *states)
        for new, old in zip(self.tensors, states, strict=True):
            new[:, :, : self.length] = old[:, :, : self.length]


class DiskLayer(CacheLayerMixin, AdaptedLayer):
    """Keys and values [B, H, T, D] in two memory-mapped files; a pass receives copies in memory.

    `capacity`: number of tokens to allocate and to count from the start; None for files that grow.
    """

    is_sliding = False
    is_croppable = True
    allows_fused_pass = True

    def __init__(self, folder: Path, pool: Submitter, capacity: int | None) -> None:
        self.files = DiskFiles(folder, pool, capacity)
        self.is_initialized = False

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        """Create files for the rows, heads and widths of the given states."""
        self.files.open(key_states, value_states)
        self.is_initialized = True

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: object, **kwargs: object
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Append new tokens [B, H, n, D] and return all tokens, in memory."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        return self.files.append((key_states, value_states))

    def prefetch(self) -> None:
        """Start loading this layer into memory on the prefetch thread."""
        self.files.prefetch()

    def offload(self) -> None:
        """Release the copies in memory."""
        self.files.release_copies()

    @property
    def keys(self) -> torch.Tensor | None:  # type: ignore[override]  # an attribute there
        """All keys, read from the file on demand; None if empty."""
        return self.files.read(0) if self.is_initialized else None

    @property
    def values(self) -> torch.Tensor | None:  # type: ignore[override]  # as above
        """All values, like `keys`."""
        return self.files.read(1) if self.is_initialized else None

    def get_seq_length(self) -> int:
        """Return the number of tokens held."""
        return self.files.length

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """Return (number of tokens a pass attends to, position of the first)."""
        return self.files.length + query_length, 0

    def get_max_length(self) -> int:
        """Return −1: the layer grows."""
        return -1

    def reorder_cache(self, beam_idx: torch.Tensor) -> None:
        """Make new row i the old row `beam_idx[i]`."""
        if self.files.length:
            self.files.reorder(beam_idx.to("cpu"))

    def tokens_read(self) -> int:
        """Return the number of tokens held."""
        return self.files.length

    def min_length(self) -> int:
        """Return 0: everything is held."""
        return 0

    def truncate(self, length: int, total: int) -> None:
        """Drop all but the first `length` tokens."""
        if length < self.files.length:
            self.files.truncate(length)

    def keep_rows(self, base: int, rows: Sequence[int]) -> None:
        """Keep these rows after the first `base` tokens."""
        if self.is_initialized:
            self.files.keep_positions(base, [base + row for row in rows])

    def reorder(self, move: RowMove) -> None:
        """Reorder in place in the files if the number of rows stays the same."""
        self.reorder_cache(move.index(torch.device("cpu")))

    def states(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return keys and values as stored."""
        return self.files.read(0), self.files.read(1)

    def clone(self, pool: Submitter | None = None) -> DiskLayer:
        """Return an independent layer with the same content in its own files."""
        files = self.files
        twin = DiskLayer(files.folder, pool or files.pool, files.capacity)
        twin.files, twin.is_initialized = files.clone(pool or files.pool), self.is_initialized
        return twin

    def stored_tensors(self) -> Iterator[StoredTensor]:
        """Yield the written part of the files and the copies in memory."""
        if not self.is_initialized:
            return
        files = self.files
        for part, tensor in zip(("keys", "values"), files.tensors, strict=True):
            share = files.length if files.capacity is None else tensor.shape[2]
            yield StoredTensor("disk", part, tensor, tensor[:, :, :share].numel() * tensor.element_size())
        for part, tensor in zip(("keys", "values"), files.prefetched(), strict=False):
            yield stored_tensor(part, tensor)


class DiskCache(DynamicCache):
    """A cache of disk layers; a thread prefetches the next layer while one is in use.

    Without `prefetches` nothing is prefetched: cross-attention reads its files directly.
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
        """Update a layer while the next layer is prefetched (after the last layer, the first)."""
        following = (layer_idx + 1) % len(self.layers)
        if following and self.prefetches:
            self.layers[following].prefetch()
        seen = self.layers[layer_idx].update(key_states, value_states, *args, **kwargs)
        if not following and self.prefetches:
            self.layers[0].prefetch()
        return seen[0], seen[1]

    def release_resources(self) -> None:
        """Release the thread and the copies in memory; the next computation restores them."""
        for layer in self.layers:
            layer.offload()
        self._prefetcher.stop()

    def clone(self) -> DiskCache:
        """Return an independent cache with the same content."""
        prefetcher = Prefetcher()
        twin = DiskCache([layer.clone(prefetcher) for layer in self.layers], prefetcher, self.prefetches)
        if self.prefetches:
            twin.layers[0].prefetch()
        return twin


def build_disk_cache(model: LoadedModel, folder: Path, capacity: int | None, prefetches: bool = True) -> DiskCache:
    """Build an empty cache on disk in which windowed layers keep all tokens too."""
    prefetcher = Prefetcher()
    layers = [DiskLayer(folder, prefetcher, capacity) for _ in full_cache(model).layers]
    return DiskCache(layers, prefetcher, prefetches)


def is_on_disk(model: LoadedModel, requested: str | None) -> bool:
    """Return whether layers are offloaded to disk: always, unless the model is on a GPU and disk is not requested."""
    return model.device.type != "cuda" or requested == "disk"


def _check_disk(model: LoadedModel, requested: str) -> bool:
    """Return `is_on_disk`. Raises CacheError if host memory is requested but the model already runs there."""
    if requested == "host" and is_on_disk(model, requested):
        raise CacheError(
            tr("{model} runs on {device}, so its cache has no other memory to move to.").format(
                model=model.name, device=model.device
            ),
            tr("Offload to disk instead."),
        )
    return is_on_disk(model, requested)


def build_offloaded(model: LoadedModel, target: str, folder: str) -> Cache:
    """Build an empty growing cache."""
    if _check_disk(model, target):
        return _with_disk_cross(model, build_disk_cache(model, disk_cache_folder(folder), None), folder)
    return with_cross_attention(model, HostOffloadedCache(model, full_cache(model).layers))


def build_offloaded_static(model: LoadedModel, length: int, target: str, folder: str) -> Cache:
    """Build an empty cache of fixed size."""
    if _check_disk(model, target):
        return _with_disk_cross(model, build_disk_cache(model, disk_cache_folder(folder), length), folder)
    cache = HostOffloadedStaticCache(model, length)
    cache.set_layers(model, convert_static_layers(model, cache.layers))
    return with_cross_attention(model, cache)


def _with_disk_cross(model: LoadedModel, own: Cache, folder: str) -> Cache:
    """Add a cross-attention half on disk if the model is an encoder–decoder."""
    if not model.is_encoder_decoder:
        return own
    return EncoderDecoderCache(own, build_disk_cache(model, disk_cache_folder(folder), None, prefetches=False))
