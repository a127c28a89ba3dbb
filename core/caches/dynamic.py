"""The dynamic cache: keeps everything and grows by the token."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.caches.base import EDITS, CacheBackend
from core.caches.cache_estimate import CacheEstimate, RunShape
from core.caches.unsupported_reasons import own_memory
from core.parameter import Settings
from resources.language import mark

if TYPE_CHECKING:
    from transformers.cache_utils import Cache

    from core.models.loaded_model import LoadedModel


def build(model: LoadedModel, length: int, options: Settings) -> Cache | None:
    """A DynamicCache in which every attention layer keeps all tokens, windowed ones too; a recurrent model's states
    are part of it. None for models that make a memory of their own kind."""
    from core.caches.tensors.layouts import full_width  # torch is loaded only when something runs
    from core.caches.tensors.windowed import with_cross

    if own_memory(model):
        return None
    return with_cross(model, full_width(model))


def describe(model: LoadedModel, situation: RunShape) -> CacheEstimate:
    """2 · batch · kv_heads · length · head_dim · bytes(dtype), over the layers; cross-attention and states beside."""
    from core.caches.tensors.layer_shapes import shapes_of
    from core.caches.tensors.layouts import keeps_windows  # needs torch
    from core.caches.tensors.size_formulas import everything, kept, within_windows

    span = within_windows if keeps_windows(model) else everything
    return CacheEstimate(kept(shapes_of(model), situation, span))


BACKEND = CacheBackend(
    name="dynamic",
    title=mark("Dynamic"),
    summary=mark("keeps everything, grows with the text"),
    build=build,
    describe=describe,
    order=10,
    offers=EDITS | {"drafts"},
)
