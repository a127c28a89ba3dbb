"""The sliding-window cache: layers trained with a window keep only the window."""

from __future__ import annotations

from typing import TYPE_CHECKING

from decodescope.core.caches.base import (
    CacheBackend,
    has_windows,
    own_windows_reason,
    rejected_drafts_reason,
    states_reason,
)
from decodescope.core.caches.measurement import CacheEstimate, RunShape
from decodescope.core.parameter import Settings
from decodescope.resources.language import mark, tr

if TYPE_CHECKING:
    from transformers.cache_utils import Cache

    from decodescope.core.caches.base import CacheOperation
    from decodescope.core.models.loaded_model import LoadedModel


def build(model: LoadedModel, length: int, options: Settings) -> Cache:
    """Build a cache whose windowed layers keep the last `sliding_window` − 1 tokens (the next token fills the
    window).
    """
    from decodescope.core.caches.tensors.dynamic_layers import config_cache, with_cross_attention

    return with_cross_attention(model, config_cache(model))


def describe(model: LoadedModel, run: RunShape) -> CacheEstimate:
    """Estimate the size as that of a dynamic cache with min(length, window − 1) tokens in windowed layers."""
    from decodescope.core.caches.tensors.cache_sizes import (
        cache_size,
        model_layer_shapes,  # needs torch
        within_windows,
    )

    shapes = model_layer_shapes(model)
    return CacheEstimate(cache_size(shapes, run, within_windows), window=min(shapes.windows, default=None))


def rejection_reason(model: LoadedModel, needs: frozenset[CacheOperation], options: Settings) -> str | None:
    """Return why a model is not supported: it was not trained with a window and would generate a different text."""
    if reason := states_reason(model):
        return reason
    if not has_windows(model) and (reason := own_windows_reason(model)):
        return reason
    if not has_windows(model):
        return tr(
            "{model} was trained without a window: dropping old tokens would change its text. “Sink” "
            "does that on purpose."
        ).format(model=model.name)
    return rejected_drafts_reason(model, needs, tr("Sliding window"))


BACKEND = CacheBackend(
    name="sliding_window",
    title=mark("Sliding window"),
    brief=mark("Window"),
    summary=mark("windowed layers keep only their window"),
    build=build,
    describe=describe,
    paper="Beltagy et al. 2020, Longformer; Jiang et al. 2023, Mistral 7B",
    order=30,
    rescue=1,
    rejection_reason=rejection_reason,
)
