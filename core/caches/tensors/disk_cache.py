"""Layers that wait on disk and come into memory one ahead of the computation."""

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
from transformers.cache_utils import Cache, CacheLayerMixin, DynamicCache, EncoderDecoderCache, StaticCache

from core.caches.tensors.adapted_layer import AdaptedLayer, RowMove, StoredTensor, stored_tensor
from core.caches.tensors.continuation_probe import full_cache
from core.caches.tensors.dynamic_layers import with_cross_attention
from core.caches.tensors.static_layers import convert_static_layers
from core.errors import CacheError
from core.models.loaded_model import LoadedModel
from resources.language import tr


def temporary_folder(requested: str) -> Path:
    """The folder asked for, or the user's cache folder (the system's temporary one is often kept in memory).

    Raises CacheError when it cannot be used.
    """
    folder = Path(requested).expanduser() if requested else platformdirs.user_cache_path("decodescope") / "offloaded"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError as error:
        raise CacheError(
            tr("The folder {folder} cannot be written to ({reason}).").format(folder=folder, reason=error.strerror),
            tr("Choose another folder for the file."),
        ) from error


class MappedTensor:
    """A tensor of `shape` in a file of its own, which is gone when nothing refers to the tensor any more.

    Raises CacheError when the disk has no room: the space is taken at once, for a full disk would otherwise end the
    whole program at some later write.
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
        # Where the system allows it the name goes at once: the space is then freed however the program ends.
        if os.name == "posix":
            self.remove()

    def remove(self) -> None:
        """Delete the file's name."""
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
            raise OSError(tr("no space left"))
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(handle, 0, max(size, 1))
        else:
            os.truncate(handle, size)
    except OSError as error:
        raise CacheError(
            tr("The cache needs {size:,.1f} MB more on the disk of {folder}, where {free:,.1f} MB are free.").format(
                size=size / 1e6, folder=folder, free=free / 1e6
            ),
            tr("Free some space, choose another folder, or write fewer tokens."),
        ) from error


T = TypeVar("T")


class Submitter(Protocol):
    """What work can be given to: a `Prefetcher`, or an executor."""

    def submit(self, work: Callable[..., T], /, *arguments: Any) -> Future[T]:
        """Have `work` done on another thread."""


class Prefetcher:
    """One thread, which begins with the first work and ends with `stop`; the next work begins another.

    A cache that is kept for later runs rests: hundreds of them may be kept, and each would hold a thread.
    """

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None
        self._lock = threading.Lock()

    def submit(self, work: Callable[..., T], /, *arguments: Any) -> Future[T]:
        """Have `work` done on the thread."""
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(1, thread_name_prefix="cache-prefetch")
            return self._pool.submit(work, *arguments)

    def stop(self) -> None:
        """End the thread once it has done what it was given."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown()

    def stop_without_waiting(self) -> None:
        """End the thread without waiting for it: its cache is gone.

        Garbage is looked for anywhere, also inside a thread that is just beginning: who waited there for the pool's
        thread to end would wait for a lock that it holds itself. For the same reason this takes no lock.
        """
        self._pool = self._pool or ThreadPoolExecutor(1)  # it stands for one that takes no work any more
        self._pool.shutdown(wait=False, cancel_futures=True)


KeyValuePair = tuple[torch.Tensor, torch.Tensor]
"""Keys and values [B, H, T, D]."""

_INITIAL_CAPACITY = 256
"""Tokens a growing file has room for at first; then it doubles."""


class DiskFiles:
    """Keys and values [B, H, T, D] in two mapped files, the first `length` tokens of which are written.

    `capacity`: tokens to allocate for at once; None for files that grow. What allocates raises CacheError when the disk
    has no room.
    """

    def __init__(self, folder: Path, pool: Submitter, capacity: int | None) -> None:
        self.folder, self.pool, self.capacity = folder, pool, capacity
        self.length = 0
        self._mapped: tuple[MappedTensor, MappedTensor] | None = None
        self._device = torch.device("cpu")
        self._prefetched: Future[list[torch.Tensor]] | None = None

    def open(self, keys: torch.Tensor, values: torch.Tensor) -> None:
        """Make the files for the rows, heads, widths and precisions of the given states; copies go to their device."""
        self._device = keys.device
        self._allocate(self.capacity or _INITIAL_CAPACITY, keys, values)

    @property
    def tensors(self) -> KeyValuePair:
        """Keys and values with all the room there is, on disk."""
        assert self._mapped is not None
        return self._mapped[0].tensor, self._mapped[1].tensor

    def read(self, which: int) -> torch.Tensor:
        """What is written of the keys (0) or the values (1), read as it is needed."""
        return self.tensors[which][:, :, : self.length].to(self._device)

    def append(self, new: KeyValuePair) -> KeyValuePair:
        """Write new tokens [B, H, n, D] behind the others; all of them come back, in memory."""
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
        """Row i becomes what row `rows[i]` was; in place where the number of rows stays."""
        with self._paused_prefetch():
            old = self.tensors
            chosen = old[0].index_select(0, rows), old[1].index_select(0, rows)
            if chosen[0].shape != old[0].shape:
                self._rewrite(chosen, old[0].shape[2])
                return
            for tensor, states in zip(old, chosen, strict=True):
                tensor.copy_(states)

    def truncate(self, length: int) -> None:
        """Forget all but the first `length` tokens."""
        with self._paused_prefetch():
            self.length = length

    def keep_positions(self, base: int, positions: Sequence[int]) -> None:
        """Keep these places of the text behind the first `base` tokens."""
        stop = base + len(positions)
        with self._paused_prefetch():
            for tensor in self.tensors:
                tensor[:, :, base:stop] = tensor[:, :, list(positions)]
            self.length = stop

    def clone(self, pool: Submitter) -> DiskFiles:
        """Other files with the same content, brought in by `pool`."""
        twin = DiskFiles(self.folder, pool, self.capacity)
        if self._mapped is not None:
            twin.length, twin._device = self.length, self._device
            twin._rewrite(self.tensors, self.tensors[0].shape[2])
        return twin

    # Copies in memory

    def prefetch(self) -> None:
        """Begin to bring what is written into memory, on the thread of the pool."""
        if self.length and self._prefetched is None:
            self._prefetched = self.pool.submit(self._load)

    def release_copies(self) -> None:
        """Forget what was brought into memory."""
        if self._prefetched is not None:
            self._prefetched.result()
        self._prefetched = None

    def prefetched(self) -> Sequence[torch.Tensor]:
        """The copies of keys and values that wait in memory; none where nothing was brought in."""
        return self._prefetched.result() if self._prefetched is not None else ()

    @contextmanager
    def _paused_prefetch(self) -> Iterator[None]:
        """The files change: what was brought in from them is brought in again afterwards."""
        was_ahead = self._prefetched is not None
        self.release_copies()
        yield
        if was_ahead:
            self.prefetch()

    def _loaded_copies(self) -> Sequence[torch.Tensor]:
        """Copies of keys and values in memory, with room for one token more."""
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

    # Room on disk

    def _allocate(self, capacity: int, keys: torch.Tensor, values: torch.Tensor) -> None:
        """New files with `capacity` tokens for the rows, heads and widths of keys and values."""
        sides = [(t.shape[0], t.shape[1], capacity, t.shape[3]) for t in (keys, values)]
        self._mapped = (
            MappedTensor(sides[0], keys.dtype, self.folder), MappedTensor(sides[1], values.dtype, self.folder),
        )  # fmt: skip

    def _ensure_capacity(self, tokens: int) -> None:
        old = self.tensors
        if tokens > old[0].shape[2]:
            self._rewrite(old, max(tokens, 2 * old[0].shape[2]))

    def _rewrite(self, states: KeyValuePair, capacity: int) -> None:
        """Put the first `length` tokens of `states` into new files."""
        self.release_copies()
        self._allocate(capacity, *states)
        for new, old in zip(self.tensors, states, strict=True):
            new[:, :, : self.length] = old[:, :, : self.length]


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


def is_on_disk(model: LoadedModel, requested: str | None) -> bool:
    """Layers wait in host memory for a model on a graphics card, unless disk is asked for; everywhere else on disk."""
    return model.device.type != "cuda" or requested == "disk"


def _check_disk(model: LoadedModel, requested: str) -> bool:
    """The same. Raises CacheError for host where layers are in host memory already."""
    if requested == "host" and is_on_disk(model, requested):
        raise CacheError(
            tr("{model} computes on {device}, so its cache has no other memory to wait in.").format(
                model=model.name, device=model.device
            ),
            tr("Let layers wait on disk."),
        )
    return is_on_disk(model, requested)


def build_offloaded(model: LoadedModel, target: str, folder: str) -> Cache:
    """An empty growing cache."""
    if _check_disk(model, target):
        return _with_disk_cross(model, build_disk_cache(model, temporary_folder(folder), None), folder)
    cache = DynamicCache(config=model.config, offloading=True)
    cache.layers = full_cache(model).layers
    return with_cross_attention(model, cache)


def build_offloaded_static(model: LoadedModel, length: int, target: str, folder: str) -> Cache:
    """An empty cache of fixed size."""
    if _check_disk(model, target):
        return _with_disk_cross(model, build_disk_cache(model, temporary_folder(folder), length), folder)
    cache = StaticCache(config=model.config, max_cache_len=length, offloading=True, offload_only_non_sliding=False)
    cache.layers = convert_static_layers(model, cache.layers)
    return with_cross_attention(model, cache)


def _with_disk_cross(model: LoadedModel, own: Cache, folder: str) -> Cache:
    """Both halves on disk."""
    if not model.is_encoder_decoder:
        return own
    return EncoderDecoderCache(own, build_disk_cache(model, temporary_folder(folder), None, prefetches=False))
