"""Where offloaded layers wait: host memory behind a graphics card, or a file."""

from __future__ import annotations

from transformers.cache_utils import Cache, DynamicCache, EncoderDecoderCache, StaticCache

from core.caches.tensors.disk import build_disk
from core.caches.tensors.layouts import full_width
from core.caches.tensors.memory_mapped import spill_folder
from core.caches.tensors.static_layers import own_fixed
from core.caches.tensors.windowed import with_cross
from core.errors import CacheError
from core.models.loaded_model import LoadedModel
from resources.language import tr


def is_on_disk(model: LoadedModel, wish: str | None) -> bool:
    """Layers wait in host memory for a model on a graphics card, unless disk is asked for; everywhere else on disk."""
    return model.device.type != "cuda" or wish == "disk"


def _goes_to_disk(model: LoadedModel, wish: str) -> bool:
    """The same. Raises CacheError for host where layers are in host memory already."""
    if wish == "host" and is_on_disk(model, wish):
        raise CacheError(
            tr("{model} computes on {device}, so its cache has no other memory to wait in.").format(
                model=model.name, device=model.device
            ),
            tr("Let layers wait on disk."),
        )
    return is_on_disk(model, wish)


def offloaded(model: LoadedModel, place: str, folder: str) -> Cache:
    """An empty growing cache."""
    if _goes_to_disk(model, place):
        return _paired(model, build_disk(model, spill_folder(folder), None), folder)
    cache = DynamicCache(config=model.config, offloading=True)
    cache.layers = full_width(model).layers
    return with_cross(model, cache)


def offloaded_fixed(model: LoadedModel, length: int, place: str, folder: str) -> Cache:
    """An empty cache of fixed size."""
    if _goes_to_disk(model, place):
        return _paired(model, build_disk(model, spill_folder(folder), length), folder)
    cache = StaticCache(config=model.config, max_cache_len=length, offloading=True, offload_only_non_sliding=False)
    cache.layers = own_fixed(model, cache.layers)
    return with_cross(model, cache)


def _paired(model: LoadedModel, own: Cache, folder: str) -> Cache:
    """Both halves on disk."""
    if not model.is_encoder_decoder:
        return own
    return EncoderDecoderCache(own, build_disk(model, spill_folder(folder), None, ahead=False))
