"""The shape of a cache back end: build it, measure it, predict it, edit it, or say why it cannot serve."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from core.caches.needs import Need, explain
from core.parameter import Parameter

if TYPE_CHECKING:
    from core.models.model import LoadedModel


@dataclass(frozen=True, slots=True)
class Measurement:
    """Bytes a cache holds; `parts` sums up to `bytes`, `layers` too."""

    bytes: int
    tokens: int
    parts: tuple[tuple[str, str, int], ...] = ()
    """(place, part, bytes): place device/host/disk; part keys, values, scales, residual, self, cross, state."""
    layers: tuple[int, ...] = ()
    held: tuple[tuple[int, int], ...] = ()
    """Places in the text, [start, stop), that the most forgetful layer still holds; () when none forgets."""
    error: float | None = None
    """Quantized: ‖keys − kept keys‖ / ‖keys‖ over all that was quantized."""


EDITS: frozenset[Need] = frozenset({"reorder", "truncate", "select", "copy"})
"""What can be done to most caches after they were filled."""


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
    """(model, length in tokens, batch, options) → bytes. Encoder–decoders read the length of their source from
    `options["source_length"]` (as long as the text itself where it is missing)."""
    parameters: tuple[Parameter, ...] = ()
    exact: bool = True
    paper: str = ""
    aliases: tuple[str, ...] = ()
    order: int = 100
    refuse: Callable[[LoadedModel, frozenset[Need], Mapping[str, Any]], str | None] | None = None
    """(model, what is needed of it, options) → why it cannot serve."""
    offers: frozenset[Need] = EDITS
    """What can be done to it after it was filled, and with it."""
    unbounded: bool = False
    """It forgets, and counts positions inside itself: the text may outgrow the model's context."""

    def why_not(
        self, model: LoadedModel, needs: frozenset[Need] = frozenset(), options: Mapping[str, Any] | None = None
    ) -> str | None:
        """Sentence on why it cannot serve `model` and do what a strategy `needs`; None when it can. Cheap; raises
        nothing."""
        if self.refuse and (reason := self.refuse(model, needs, options or {})):
            return reason
        return explain(self.title, needs - self.offers)

    def truncate(self, cache: Any, length: int) -> None:
        """Forget all but the first `length` tokens. Raises CacheError where that is impossible."""
        from core.caches.tensors.editing import truncate  # needs torch

        truncate(cache, length)

    def select(self, cache: Any, positions: Any) -> None:
        """Keep only the tokens at `positions` (1-D tensor or list, ascending), in their order. Raises CacheError."""
        from core.caches.tensors.editing import select  # needs torch

        select(cache, positions)

    def copy(self, cache: Any) -> Any:
        """An independent cache with the same content. Raises CacheError where that is impossible."""
        from core.caches.tensors.editing import copy  # needs torch

        return copy(cache)
