"""Beginnings of texts that were read before: a run whose prompt shares one starts from its cache."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from core.checks.arguments import check_bytes
from core.parameter import Settings
from resources.language import tr

if TYPE_CHECKING:
    from pathlib import Path

    from transformers import PreTrainedModel
    from transformers.cache_utils import Cache

    from core.caches.base import CacheBackend
    from core.models.loaded_model import LoadedModel

DEFAULT_BUDGET = 512 * 1024**2
"""Bytes."""
MAX_PREFIXES = 256
"""Caches that are kept at once, however small: each also holds objects, and files mapped into memory if on disk."""


@dataclass(eq=False, slots=True)
class Prefix:
    """A kept cache: the token ids it has read, and its bytes."""

    ids: tuple[int, ...]
    cache: Cache
    bytes: int
    backend: str
    options: tuple[tuple[str, object], ...]
    network: weakref.ref[PreTrainedModel]

    def is_for(self, model: LoadedModel, backend: CacheBackend, options: Settings) -> bool:
        """Whether it was made by the same model with the same kind of cache."""
        return self.network() is model.model and (self.backend, self.options) == (backend.name, _key(options))


@dataclass(frozen=True, slots=True)
class PrefixMatch:
    """What a run can start from: an independent cache that has read the first `length` tokens."""

    cache: Cache
    length: int


@dataclass(eq=False)
class PrefixStore:
    """Keeps at most `MAX_PREFIXES` caches within `budget` bytes; those not used for longest go first. One thread at a
    time may use it.

    Give the same store to several requests: each run takes the longest beginning its prompt shares with an earlier
    text, reads only the rest, and leaves its own cache behind.
    """

    budget: int = DEFAULT_BUDGET
    prefixes: list[Prefix] = field(default_factory=list)
    """Least recently used first."""

    def __post_init__(self) -> None:
        """Raises ParameterError for a budget that is no count of bytes."""
        check_bytes("budget", self.budget)

    @property
    def bytes(self) -> int:
        """Bytes held."""
        return sum(prefix.bytes for prefix in self.prefixes)

    def find(
        self,
        model: LoadedModel,
        backend: CacheBackend,
        options: Settings,
        ids: Sequence[int],
        make_empty: Callable[[], Cache | None],
    ) -> PrefixMatch | None:
        """The longest usable beginning of `ids` (never all of it: the last token has to be read for its scores).

        `make_empty` makes an empty cache for the run. None when nothing is shared.
        """
        from core.caches.tensors.cache_operations import (
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
        """Keep a cache that has read exactly `ids` and that nobody else will change; False when it exceeds the budget.

        Shorter ones it can stand in for are dropped.
        """
        from core.caches.tensors.cache_operations import min_length, release_resources

        release_resources(cache)
        size, kept = backend.measure(cache).bytes, tuple(ids)
        if size > self.budget or not kept:
            return False
        least = min_length(cache)
        new = Prefix(kept, cache, size, backend.name, _key(options), weakref.ref(model.model))
        self.prefixes = [
            old
            for old in self.prefixes
            if not (old.is_for(model, backend, options) and _can_replace(kept, least, old.ids))
        ]
        self._evict(size)
        self.prefixes.append(new)
        return True

    def set_budget(self, budget: int) -> None:
        """Hold at most `budget` bytes from now on."""
        self.budget = budget
        self._evict(0)

    def clear(self) -> None:
        """Forget everything."""
        self.prefixes.clear()

    def save(self, path: str | Path, model: LoadedModel, prefix: Prefix | None = None) -> None:
        """Write a prefix (the latest one when none is named) to a safetensors file.

        Raises CacheError for caches that do not hold every token, or when there is none.
        """
        from core.caches.prefixes.prefix_files import save_prefix  # needs torch

        chosen = prefix or self._latest(model)
        save_prefix(path, model, chosen.ids, chosen.cache)

    def load(self, path: str | Path, model: LoadedModel) -> Prefix:
        """Read a prefix saved with the same model; it counts as the latest one, for the dynamic cache.

        Raises CacheError when the file is not such a prefix, or was made by another model.
        """
        from core import caches
        from core.caches.prefixes.prefix_files import load_prefix  # needs torch

        ids, cache = load_prefix(path, model)
        if not self.put(model, caches.registry["dynamic"], {}, ids, cache):
            raise _too_large_error(self.budget)
        return self.prefixes[-1]

    def longest_prefix(self, model: LoadedModel, ids: Sequence[int]) -> Prefix:
        """The longest prefix of this model that the text `ids` begins with. Raises CacheError when none is kept."""
        from core.errors import CacheError

        fitting = [p for p in self.prefixes if p.network() is model.model and tuple(ids[: len(p.ids)]) == p.ids]
        if fitting:
            return max(fitting, key=lambda prefix: len(prefix.ids))
        if model.is_encoder_decoder:
            raise CacheError(
                tr("{model} reads its source anew for each run, so there is no beginning to keep.").format(
                    model=model.name
                ),
                tr("Choose a decoder-only model."),
            )
        raise CacheError(tr("What this run has read is not kept any more."), tr("Run it again, then save."))

    def _latest(self, model: LoadedModel) -> Prefix:
        from core.errors import CacheError

        for prefix in reversed(self.prefixes):
            if prefix.network() is model.model:
                return prefix
        raise CacheError(
            tr("There is no prefix to save yet."), tr("Run something first, with keeping prefixes switched on.")
        )

    def _mark_used(self, prefix: Prefix) -> None:
        self.prefixes.remove(prefix)
        self.prefixes.append(prefix)

    def _evict(self, size: int) -> None:
        self._drop_unloaded()
        while self.prefixes and (self.bytes + size > self.budget or (size and len(self.prefixes) >= MAX_PREFIXES)):
            self.prefixes.pop(0)

    def _drop_unloaded(self) -> None:
        """Models that were unloaded take their prefixes with them."""
        self.prefixes = [prefix for prefix in self.prefixes if prefix.network() is not None]


def shared_length(first: Sequence[int], second: Sequence[int]) -> int:
    """How many ids two texts begin with alike."""
    for place, (one, other) in enumerate(zip(first, second, strict=False)):
        if one != other:
            return place
    return min(len(first), len(second))


def _can_replace(ids: tuple[int, ...], min_length: int, old: tuple[int, ...]) -> bool:
    """A cache of `ids` that can be cut to `min_length` serves wherever one of `old` would."""
    return ids[: len(old)] == old and (len(ids) == len(old) or min_length == 0)


def _key(options: Settings) -> tuple[tuple[str, object], ...]:
    return tuple(sorted((name, value) for name, value in options.items() if value is not None))


def _too_large_error(budget: int) -> Exception:
    from core.errors import CacheError

    return CacheError(
        tr("The prefix takes more than the {megabytes:,.1f} MB kept for prefixes.").format(megabytes=budget / 1e6),
        tr("Raise the budget."),
    )
