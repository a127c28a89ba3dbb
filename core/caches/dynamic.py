"""The dynamic cache: keeps what the layers need and grows by the token."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from core.caches.base import CacheBackend, Measurement

if TYPE_CHECKING:
    from core.model import LoadedModel


def build(model: LoadedModel, length: int, options: Mapping[str, Any]) -> Any:
    """A DynamicCache laid out by the model's config (windowed layers keep their window); None for a recurrent model,
    which makes its own state."""
    from transformers import DynamicCache, EncoderDecoderCache  # heavy, and only a run needs it

    if not model.model._supports_default_dynamic_cache():
        return None
    cache = DynamicCache(config=model.config)
    if model.is_encoder_decoder:
        return EncoderDecoderCache(cache, DynamicCache(config=model.config))
    return cache


def measure(cache: Any) -> Measurement:
    """Bytes of the storages held, to the byte."""
    from core.caches.accounting import measure_storages  # needs torch

    return measure_storages(cache)


def predict(model: LoadedModel, length: int, batch: int, options: Mapping[str, Any]) -> int:
    """Bytes at `length` tokens: 2 · batch · kv_heads · length · head_dim · bytes(dtype), over the layers."""
    from core.caches.accounting import predict_attention  # needs torch

    return predict_attention(model, length, batch)


BACKEND = CacheBackend(
    name="dynamic",
    title="Dynamic",
    summary="grows with the text",
    build=build,
    measure=measure,
    predict=predict,
    order=10,
)
