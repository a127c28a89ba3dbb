"""What a run must know of its strategy; the strategies, which stand above, say it in their files."""

from __future__ import annotations

from typing import Protocol

from transformers import GenerationConfig

from core.caches.requirements import CacheOperation


class DecodingStrategy(Protocol):
    """A way to decode, as `core.strategies.base.Strategy` declares it."""

    @property
    def name(self) -> str:
        """As in the registry."""

    @property
    def needs(self) -> frozenset[CacheOperation]:
        """What it asks of a cache."""

    @property
    def speculates(self) -> bool:
        """Whether it drafts."""

    def rows(self, config: GenerationConfig, vocabulary: int, /) -> int:
        """Rows of the cache."""
