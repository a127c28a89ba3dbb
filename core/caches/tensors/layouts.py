"""Caches that keep everything, as far as the model allows it."""

from __future__ import annotations

from transformers.cache_utils import Cache

from core.caches.tensors.continuation_probe import memory_kind
from core.caches.tensors.windowed import config_cache, with_cross_attention, without_windows
from core.models.loaded_model import LoadedModel


def full_cache(model: LoadedModel) -> Cache:
    """Every layer keeps all tokens, windowed ones too; not where a model relies on what its windows forget."""
    return config_cache(model) if keeps_windows(model) else without_windows(model)


def keeps_windows(model: LoadedModel) -> bool:
    """Whether windowed layers keep no more than their window in every cache."""
    return memory_kind(model) == "windows"


def draft_cache(model: LoadedModel) -> Cache:
    """An empty cache that keeps every token in every layer and the past of its states: drafts can be taken back."""
    cache = with_cross_attention(model, full_cache(model))
    cache.activate_past_recording()
    return cache
