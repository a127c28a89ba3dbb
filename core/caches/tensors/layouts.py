"""Caches that keep everything, as far as the model allows it."""

from __future__ import annotations

from transformers.cache_utils import Cache

from core.caches.tensors.continuation_probe import memory_of
from core.caches.tensors.windowed import by_config, laid_full, with_cross
from core.models.loaded_model import LoadedModel


def full_width(model: LoadedModel) -> Cache:
    """Every layer keeps all tokens, windowed ones too; not where a model relies on what its windows forget."""
    return by_config(model) if keeps_windows(model) else laid_full(model)


def keeps_windows(model: LoadedModel) -> bool:
    """Whether windowed layers keep no more than their window in every cache."""
    return memory_of(model) == "windows"


def roomy(model: LoadedModel) -> Cache:
    """An empty cache that keeps every token in every layer and the past of its states: drafts can be taken back."""
    cache = with_cross(model, full_width(model))
    cache.activate_past_recording()
    return cache
