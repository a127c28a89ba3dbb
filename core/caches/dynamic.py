"""The dynamic cache: keeps everything and grows with each token."""

from __future__ import annotations

from typing import TYPE_CHECKING

from decodescope.core.caches.base import EDITS, CacheBackend, own_cache_reason
from decodescope.core.caches.measurement import CacheEstimate, RunShape
from decodescope.core.parameter import Settings
from decodescope.resources.language import mark

if TYPE_CHECKING:
    from transformers.cache_utils import Cache

    from decodescope.core.models.loaded_model import LoadedModel


def build(model: LoadedModel, length: int, options: Settings) -> Cache | None:
    """Build a DynamicCache in which every attention layer keeps all tokens, windowed layers included. It also holds the
    states of recurrent models. Return None for models with their own cache class.
    """
    from decodescope.core.caches.tensors.continuation_probe import (
        full_cache,  # torch is loaded only when something runs
    )
    from decodescope.core.caches.tensors.dynamic_layers import with_cross_attention

    if own_cache_reason(model):
        return None
    return with_cross_attention(model, full_cache(model))


def describe(model: LoadedModel, run: RunShape) -> CacheEstimate:
    """Return 2 · batch · kv_heads · length · head_dim · bytes(dtype) summed over the layers, plus cross-attention and
    states.
    """
    from decodescope.core.caches.tensors.cache_sizes import all_tokens, cache_size, model_layer_shapes, within_windows
    from decodescope.core.caches.tensors.continuation_probe import keeps_windows  # needs torch

    span = within_windows if keeps_windows(model) else all_tokens
    return CacheEstimate(cache_size(model_layer_shapes(model), run, span))


BACKEND = CacheBackend(
    name="dynamic",
    title=mark("Dynamic"),
    summary=mark("keeps everything, grows with the text"),
    build=build,
    describe=describe,
    order=10,
    offers=EDITS | {"drafts"},
)
