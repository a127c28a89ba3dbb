"""Store of prompt prefixes: a run whose prompt shares one starts from its cache."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from decodescope.core.checks.arguments import check_bytes
from decodescope.core.parameter import Settings
from decodescope.resources.language import tr

if TYPE_CHECKING:
    from pathlib import Path

    from transformers import PreTrainedModel
    from transformers.cache_utils import Cache

    from decodescope.core.caches.base import CacheBackend
    from decodescope.core.models.adapters.adapter_set import AdapterState
    from decodescope.core.models.loaded_model import LoadedModel

DEFAULT_BUDGET = 512 * 1024**2
"""Budget in bytes."""
MAX_PREFIXES = 256
"""Maximum number of caches, however small: each also holds Python objects and, on disk, memory-mapped files."""


@dataclass(eq=False, slots=True)
class Prefix:
    """A stored cache with the token ids it has read and its size in bytes."""

    ids: tuple[int, ...]
    cache: Cache
    bytes: int
    backend: str
    options: tuple[tuple[str, object], ...]
    network: weakref.ref[PreTrainedModel]
    adapters: AdapterState = ()
    """The adapters with which it was made."""

    def is_by(self, model: LoadedModel) -> bool:
        """Return whether it was made by the same model with the same adapters."""
        return self.network() is model.model and self.adapters == model.adapters.state

    def is_for(self, model: LoadedModel, backend: CacheBackend, options: Settings) -> bool:
        """Return whether it was made by the same model with the same cache backend and options."""
        return self.is_by(model) and (self.backend, self.options) == (backend.name, _key(options))


@dataclass(frozen=True, slots=True)
class PrefixMatch:
    """The starting point of a run: an independent cache that has read the first `length` tokens."""

    cache: Cache
    length: int


@dataclass(eq=False)
class PrefixStore:
    """Keep at most `MAX_PREFIXES` caches within `budget` bytes and drop the least recently used first. Not thread-safe.

    Pass the same store to several requests: each run takes the longest prefix that its prompt shares with an earlier
    text, reads only the rest, and stores its own cache.
    """

    budget: int = DEFAULT_BUDGET
    prefixes: list[Prefix] = field(default_factory=list)
    """Least recently used first."""

    def __post_init__(self) -> None:
        """Raise ParameterError if the budget is not a number of bytes."""
        check_bytes("budget", self.budget)

    @property
    def bytes(self) -> int:
        """Total bytes of the stored caches."""
        return sum(prefix.bytes for prefix in self.prefixes)

    def find(
        self,
        model: LoadedModel,
        backend: CacheBackend,
        options: Settings,
        ids: Sequence[int],
        make_empty: Callable[[], Cache | None],
    ) -> PrefixMatch | None:
        """Return the longest usable prefix of `ids`, or None if nothing is shared.

        It never covers all of `ids`: the last token has to be read for its logits. `make_empty` makes an empty cache
        for the run.
        """
        from decodescope.core.caches.tensors.cache_operations import (
            copy_prefix,
            min_length,  # torch is loaded only when something runs
        )

        self._drop_unloaded()
        best, length = None, 0
        for prefix in self.prefixes:
            shared = min(shared_length(prefix.ids, ids), len(ids) - 1)
            usable = shared == len(prefix.ids) or shared >= min_length(prefix.cache)
            if usable and shared > length and prefix.is_for(model, backend, options):
                best, length = prefix, shared
        if best is None:
            return None
        self._mark_used(best)
        return PrefixMatch(copy_prefix(best.cache, length, make_empty), length)

    def put(
        self, model: LoadedModel, backend: CacheBackend, options: Settings, ids: Sequence[int], cache: Cache
    ) -> bool:
        """Store a cache that has read exactly `ids` and that no other code changes; return False if it exceeds the
        budget.

        Shorter prefixes that it can replace are dropped.
        """
        from decodescope.core.caches.tensors.cache_operations import compact, min_length, release_resources

        release_resources(cache)
        compact(cache)
        size, token_ids = backend.measure(cache).bytes, tuple(ids)
        if size > self.budget or not token_ids:
            return False
        min_prefix_length = min_length(cache)
        new = Prefix(
            token_ids, cache, size, backend.name, _key(options), weakref.ref(model.model), model.adapters.state
        )  # fmt: skip
        self.prefixes = [
            old
            for old in self.prefixes
            if not (old.is_for(model, backend, options) and _can_replace(token_ids, min_prefix_length, old.ids))
        ]
        self._evict(size)
        self.prefixes.append(new)
        return True

    def set_budget(self, budget: int) -> None:
        """Set the budget to `budget` bytes and drop prefixes that exceed it."""
        self.budget = budget
        self._evict(0)

    def clear(self) -> None:
        """Drop all prefixes."""
        self.prefixes.clear()

    def save(self, path: str | Path, model: LoadedModel, prefix: Prefix | None = None) -> None:
        """Write a prefix (by default the latest one) to a safetensors file.

        Raises CacheError for caches that do not hold every token, or if there is no prefix.
        """
        from decodescope.core.caches.prefixes.prefix_files import save_prefix  # needs torch

        chosen = prefix or self._latest(model)
        save_prefix(path, model, chosen.ids, chosen.cache)

    def load(self, path: str | Path, model: LoadedModel) -> Prefix:
        """Read a prefix saved with the same model; it becomes the latest one, for the dynamic cache.

        Raises CacheError if the file is not a prefix or was made by another model.
        """
        from decodescope.core import caches
        from decodescope.core.caches.prefixes.prefix_files import load_prefix  # needs torch

        ids, cache = load_prefix(path, model)
        if not self.put(model, caches.registry["dynamic"], {}, ids, cache):
            raise _too_large_error(self.budget)
        return self.prefixes[-1]

    def longest_prefix(self, model: LoadedModel, ids: Sequence[int]) -> Prefix:
        """Return the longest prefix of this model that the text `ids` begins with. Raises CacheError if there is
        none.
        """
        from decodescope.core.errors import CacheError

        fitting = [p for p in self.prefixes if p.is_by(model) and tuple(ids[: len(p.ids)]) == p.ids]
        if fitting:
            return max(fitting, key=lambda prefix: len(prefix.ids))
        if model.is_encoder_decoder:
            raise CacheError(
                tr("{model} reads its source again for each run, so there is no prefix to keep.").format(
                    model=model.name
                ),
                tr("Choose a decoder-only model."),
            )
        raise CacheError(tr("The prefix of this run is no longer stored."), tr("Repeat the run, then save."))

    def _latest(self, model: LoadedModel) -> Prefix:
        from decodescope.core.errors import CacheError

        for prefix in reversed(self.prefixes):
            if prefix.is_by(model):
                return prefix
        raise CacheError(
            tr("There is no prefix to save yet."),
            tr("Turn on “Reuse cached prefixes of earlier runs” in the settings, then run a prompt."),
        )

    def _mark_used(self, prefix: Prefix) -> None:
        self.prefixes.remove(prefix)
        self.prefixes.append(prefix)

    def _evict(self, size: int) -> None:
        self._drop_unloaded()
        while self.prefixes and (self.bytes + size > self.budget or (size and len(self.prefixes) >= MAX_PREFIXES)):
            self.prefixes.pop(0)

    def _drop_unloaded(self) -> None:
        """Drop the prefixes of unloaded models."""
        self.prefixes = [prefix for prefix in self.prefixes if prefix.network() is not None]


def shared_length(first: Sequence[int], second: Sequence[int]) -> int:
    """Return the length of the common prefix of two id sequences."""
    for place, (one, other) in enumerate(zip(first, second, strict=False)):
        if one != other:
            return place
    return min(len(first), len(second))


def _can_replace(ids: tuple[int, ...], min_length: int, old: tuple[int, ...]) -> bool:
    """Return whether a cache of `ids`, which can be cut down to `min_length` tokens, can replace one of `old`."""
    return ids[: len(old)] == old and (len(ids) == len(old) or min_length == 0)


def _key(options: Settings) -> tuple[tuple[str, object], ...]:
    return tuple(sorted((name, value) for name, value in options.items() if value is not None))


def _too_large_error(budget: int) -> Exception:
    from decodescope.core.errors import CacheError

    return CacheError(
        tr("The prefix exceeds the {megabytes:,.1f} MB reserved for prefixes.").format(megabytes=budget / 1e6),
        tr("Raise the budget."),
    )
