"""The shape of a cache back end: build it, measure it, predict it, or say why it cannot serve."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from core.strategies.base import Parameter

if TYPE_CHECKING:
    from core.model import LoadedModel


@dataclass(frozen=True, slots=True)
class Measurement:
    """Bytes a cache holds; `parts` sums up to `bytes`, `layers` too."""

    bytes: int
    tokens: int
    parts: tuple[tuple[str, str, int], ...] = ()
    """(place, part, bytes): place device/host/disk; part keys, values, scales, residual, self, cross, state."""
    layers: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class CacheBackend:
    """A way to keep keys and values; one file of `core/caches/` each."""

    name: str
    title: str
    summary: str
    build: Callable[[LoadedModel, int, Mapping[str, Any]], Any]
    """(model, greatest length in tokens, options) → transformers cache, empty; None lets the model make its own."""
    measure: Callable[[Any], Measurement]
    predict: Callable[[LoadedModel, int, int, Mapping[str, Any]], int]
    """(model, length in tokens, batch, options) → bytes."""
    parameters: tuple[Parameter, ...] = ()
    exact: bool = True
    paper: str = ""
    aliases: tuple[str, ...] = ()
    order: int = 100
    refuse: Callable[[LoadedModel, str], str | None] | None = None

    def why_not(self, model: LoadedModel, strategy: str = "greedy") -> str | None:
        """Sentence on why it cannot serve `model` with `strategy`; None when it can."""
        return self.refuse(model, strategy) if self.refuse else None
