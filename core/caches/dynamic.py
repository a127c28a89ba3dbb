"""The dynamic cache: keeps everything and grows by the token."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from core.caches.base import EDITS, CacheBackend, Measurement

if TYPE_CHECKING:
    from core.models.model import LoadedModel


def build(model: LoadedModel, length: int, options: Mapping[str, Any]) -> Any:
    """A DynamicCache in which every attention layer keeps all tokens, windowed ones too; a recurrent model's states
    are part of it. None for models that make a memory of their own kind."""
    from core.caches.tensors.windowed import full_width, with_cross  # torch is loaded only when something runs

    if not model.model._supports_default_dynamic_cache():
        return None
    return with_cross(model, full_width(model))


def measure(cache: Any) -> Measurement:
    """Bytes of the storages held, to the byte."""
    from core.caches.tensors.accounting import measure_storages  # needs torch

    return measure_storages(cache)


def predict(model: LoadedModel, length: int, batch: int, options: Mapping[str, Any]) -> int:
    """2 · batch · kv_heads · length · head_dim · bytes(dtype), over the layers; cross-attention and states beside."""
    from core.caches.tensors.shapes import predict_cross, predict_full  # needs torch

    return predict_full(model, length, batch) + predict_cross(model, length, batch, options)


BACKEND = CacheBackend(
    name="dynamic",
    title="Dynamic",
    summary="keeps everything, grows with the text",
    build=build,
    measure=measure,
    predict=predict,
    order=10,
    offers=EDITS | {"drafts"},
)
