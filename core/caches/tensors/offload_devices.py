"""Where offloaded layers wait: host memory behind a graphics card, or a file."""

from __future__ import annotations

from transformers.cache_utils import Cache, DynamicCache, EncoderDecoderCache, StaticCache

from core.caches.tensors.disk import build_disk_cache
from core.caches.tensors.layouts import full_cache
from core.caches.tensors.memory_mapped import temporary_folder
from core.caches.tensors.static_layers import convert_static_layers
from core.caches.tensors.windowed import with_cross_attention
from core.errors import CacheError
from core.models.loaded_model import LoadedModel
from resources.language import tr


def is_on_disk(model: LoadedModel, requested: str | None) -> bool:
    """Layers wait in host memory for a model on a graphics card, unless disk is asked for; everywhere else on disk."""
    return model.device.type != "cuda" or requested == "disk"


def _check_disk(model: LoadedModel, requested: str) -> bool:
    """The same. Raises CacheError for host where layers are in host memory already."""
    if requested == "host" and is_on_disk(model, requested):
        raise CacheError(
            tr("{model} computes on {device}, so its cache has no other memory to wait in.").format(
                model=model.name, device=model.device
            ),
            tr("Let layers wait on disk."),
        )
    return is_on_disk(model, requested)


def build_offloaded(model: LoadedModel, target: str, folder: str) -> Cache:
    """An empty growing cache."""
    if _check_disk(model, target):
        return _with_disk_cross(model, build_disk_cache(model, temporary_folder(folder), None), folder)
    cache = DynamicCache(config=model.config, offloading=True)
    cache.layers = full_cache(model).layers
    return with_cross_attention(model, cache)


def build_offloaded_static(model: LoadedModel, length: int, target: str, folder: str) -> Cache:
    """An empty cache of fixed size."""
    if _check_disk(model, target):
        return _with_disk_cross(model, build_disk_cache(model, temporary_folder(folder), length), folder)
    cache = StaticCache(config=model.config, max_cache_len=length, offloading=True, offload_only_non_sliding=False)
    cache.layers = convert_static_layers(model, cache.layers)
    return with_cross_attention(model, cache)


def _with_disk_cross(model: LoadedModel, own: Cache, folder: str) -> Cache:
    """Both halves on disk."""
    if not model.is_encoder_decoder:
        return own
    return EncoderDecoderCache(own, build_disk_cache(model, temporary_folder(folder), None, prefetches=False))
