"""The model's own cache: windows, recurrent states or both, as its configuration specifies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from decodescope.core.caches.base import CacheBackend, layer_types, own_cache_reason, rejected_drafts_reason
from decodescope.core.caches.sliding_window import build, describe
from decodescope.core.parameter import Settings
from decodescope.resources.language import mark, tr

if TYPE_CHECKING:
    from transformers.cache_utils import Cache

    from decodescope.core.caches.base import CacheOperation
    from decodescope.core.models.loaded_model import LoadedModel


def build_own(model: LoadedModel, length: int, options: Settings) -> Cache | None:
    """Build for every layer the cache it was designed with, or return None for models with their own cache class."""
    return None if own_cache_reason(model) else build(model, length, options)


def rejection_reason(model: LoadedModel, needs: frozenset[CacheOperation], options: Settings) -> str | None:
    """Return why a model with plain attention only is not supported: this cache would equal the dynamic one."""
    if own_cache_reason(model):
        return None
    if layer_types(model) == {"full_attention"}:
        return tr("every layer of {model} has full attention, so its own cache is the same as “Dynamic”.").format(
            model=model.name
        )
    return rejected_drafts_reason(model, needs, tr("Model's own"))


BACKEND = CacheBackend(
    name="model_specific",
    title=mark("Model's own"),
    summary=mark("windows and states as designed for the model"),
    build=build_own,
    describe=describe,
    aliases=("hybrid", "mamba", "recurrent"),
    paper="Gu & Dao 2023, Mamba; Gemma Team 2024, Gemma 2",
    order=35,
    rejection_reason=rejection_reason,
)
