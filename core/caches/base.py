"""The shape of a cache back end: build it, measure it, predict it, edit it, or say why it cannot serve."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from core.caches.cache_estimate import CacheEstimate, RunShape
from core.caches.measurement import Measurement
from core.caches.requirements import CacheOperation, missing_operation_sentence
from core.caches.unsupported_reasons import unsupported_operation_reason
from core.hf_generate import SAME_SETTINGS, GenerateEquivalent
from core.lightweight_dataclass import plain
from core.parameter import Parameter, Settings

if TYPE_CHECKING:
    import torch
    from transformers.cache_utils import Cache

    from core.models.loaded_model import LoadedModel


EDITS: frozenset[CacheOperation] = frozenset({"reorder", "truncate", "select", "copy"})
"""What can be done to most caches after they were filled."""


def default_counterpart(options: Settings, needs: frozenset[CacheOperation], device: str) -> GenerateEquivalent:
    """transformers' `generate` keeps it so, or so that the text is the same, when nothing is said."""
    return SAME_SETTINGS


class Variant(NamedTuple):
    """A back end with some of its settings chosen, to be compared as if it were one of its own."""

    title: str
    brief: str = ""
    """Beside a bar; empty: the title fits."""
    options: Settings = MappingProxyType({})


@plain(frozen=True)
class CacheBackend:
    """A way to keep keys and values; one file of `core/caches/` each."""

    name: str
    title: str
    summary: str
    build: Callable[[LoadedModel, int, Settings], Cache | None]
    """(model, greatest length in tokens, options) → transformers cache, empty; None lets the model make its own."""
    describe: Callable[[LoadedModel, RunShape], CacheEstimate]
    """(model, run) → its size as arithmetic, and what else is known beforehand. Raises UnpredictableError."""
    brief: str = ""
    """The title where there is little room; empty: as it is."""
    variants: tuple[Variant, ...] = ()
    """What of it is compared with other back ends; none: it alone, as it is set."""
    parameters: tuple[Parameter, ...] = ()
    exact: bool = True
    paper: str = ""
    aliases: tuple[str, ...] = ()
    order: int = 100
    refuse: Callable[[LoadedModel, frozenset[CacheOperation], Settings], str | None] | None = None
    """(model, what is needed of it, options) → why it cannot serve."""
    offers: frozenset[CacheOperation] = EDITS
    """What can be done to it after it was filled, and with it."""
    counterpart: Callable[[Settings, frozenset[CacheOperation], str], GenerateEquivalent] = default_counterpart
    """(options, what is needed of it, name of the device or “auto”) → how transformers' `generate` is asked for it, or
    why that cannot be."""
    rescue: int | None = None
    """When memory ends, caches with such a number are tried, the smallest first: less of the device, the same text."""
    unbounded: bool = False
    """It forgets, and counts positions inside itself: the text may outgrow the model's context."""

    def unsupported_reason(
        self, model: LoadedModel, needs: frozenset[CacheOperation] = frozenset(), options: Settings | None = None
    ) -> str | None:
        """Sentence on why it cannot serve `model` and do what a strategy `needs`; None when it can. Cheap; raises
        nothing."""
        if self.refuse and (reason := self.refuse(model, needs, options or {})):
            return reason
        return unsupported_operation_reason(model, needs) or self.missing_operation_reason(needs)

    def missing_operation_reason(self, needs: frozenset[CacheOperation]) -> str | None:
        """Sentence on what it cannot do of what a strategy `needs`, with whatever model; None when it can."""
        return missing_operation_sentence(self.title, needs - self.offers)

    def measure(self, cache: Cache | None) -> Measurement:
        """Bytes of the storages held, to the byte."""
        from core.caches.tensors.accounting import measure_storages  # needs torch

        return measure_storages(cache)

    def predict(self, model: LoadedModel, length: int, rows: int, options: Settings) -> int:
        """Bytes at `length` tokens, which a cache of fixed size is made for; `options["tokens"]` when fewer were read.

        Encoder–decoders read the length of their source from `options["source_length"]` (as long as the text itself
        where it is missing). Raises UnpredictableError.
        """
        from core.size_terms import evaluate  # its classes take a while to make: not before somebody asks

        source = int(options.get("source_length") or length) if model.is_encoder_decoder else None
        size = self.describe(model, RunShape(rows, length, source, options)).size
        return evaluate(size, int(options.get("tokens") or length))

    def truncate(self, cache: Cache, length: int) -> None:
        """Forget all but the first `length` tokens. Raises CacheError where that is impossible."""
        from core.caches.tensors.cache_editing import truncate  # needs torch

        truncate(cache, length)

    def select(self, cache: Cache, positions: Sequence[int] | torch.Tensor) -> None:
        """Keep only the tokens at `positions` (1-D tensor or list, ascending), in their order. Raises CacheError."""
        from core.caches.tensors.cache_editing import select  # needs torch

        select(cache, positions)

    def copy(self, cache: Cache) -> Cache:
        """An independent cache with the same content. Raises CacheError where that is impossible."""
        from core.caches.tensors.cache_editing import copy  # needs torch

        return copy(cache)
