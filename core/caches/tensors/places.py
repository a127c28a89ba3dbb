"""Where offloaded layers wait: host memory behind a graphics card, or a file."""

from __future__ import annotations

from typing import Any

from transformers.cache_utils import (
    DynamicCache,
    DynamicLayer,
    DynamicSlidingWindowLayer,
    EncoderDecoderCache,
    StaticCache,
)

from core.caches.tensors.disk import build_disk, predict_disk
from core.caches.tensors.fixed import own_fixed, predict_fixed
from core.caches.tensors.mapped import spill_folder
from core.caches.tensors.shapes import element_size, layer_shapes, predict_full
from core.errors import CacheError
from core.models.model import LoadedModel


def place_for(model: LoadedModel, wish: str) -> str:
    """`host` for a model on a graphics card, unless disk is asked for; `disk` everywhere else."""
    return "host" if model.device.type == "cuda" and wish != "disk" else "disk"


def _check(model: LoadedModel, wish: str) -> str:
    """The place. Raises CacheError for host where layers are in host memory already."""
    if wish == "host" and place_for(model, wish) == "disk":
        raise CacheError(
            f"{model.name} computes on {model.device}, so its cache has no other memory to wait in.",
            "Let layers wait on disk.",
        )
    return place_for(model, wish)


def offloaded(model: LoadedModel, place: str, folder: str) -> Any:
    """An empty growing cache."""
    if _check(model, place) == "disk":
        return _paired(model, build_disk(model, spill_folder(folder), None), folder)
    cache = DynamicCache(config=model.config, offloading=True)
    plain: Any = DynamicLayer
    cache.layers = [plain() if type(layer) is DynamicSlidingWindowLayer else layer for layer in cache.layers]
    return _with_plain_cross(model, cache)


def offloaded_fixed(model: LoadedModel, length: int, place: str, folder: str) -> Any:
    """An empty cache of fixed size."""
    if _check(model, place) == "disk":
        return _paired(model, build_disk(model, spill_folder(folder), length), folder)
    cache = StaticCache(config=model.config, max_cache_len=length, offloading=True, offload_only_non_sliding=False)
    cache.layers = own_fixed(model, cache.layers)
    return _with_plain_cross(model, cache)


def _paired(model: LoadedModel, own: Any, folder: str) -> Any:
    """Both halves on disk."""
    if not model.is_encoder_decoder:
        return own
    return EncoderDecoderCache(own, build_disk(model, spill_folder(folder), None, ahead=False))


def _with_plain_cross(model: LoadedModel, own: Any) -> Any:
    return EncoderDecoderCache(own, DynamicCache(config=model.config)) if model.is_encoder_decoder else own


def predict_offloaded(model: LoadedModel, length: int, batch: int, place: str) -> int:
    """Bytes of the decoder's own half at `length` tokens, wherever they are."""
    if place_for(model, place) == "disk":
        return predict_disk(model, length, batch)
    return predict_full(model, length, batch)


def predict_offloaded_fixed(model: LoadedModel, length: int, batch: int, place: str, tokens: int) -> int:
    """Bytes of the whole allocation; on disk with one layer of `tokens` tokens in memory, ready for one more."""
    if place_for(model, place) == "disk":
        waiting = layer_shapes(model)[0].attention_bytes(tokens + 1, batch, element_size(model))
        return predict_full(model, length, batch) + waiting
    return predict_fixed(model, length, batch)
