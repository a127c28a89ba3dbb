"""Caches whose layers are kept in host memory, for models on a GPU."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from transformers.cache_utils import Cache, DynamicCache, EncoderDecoderCache, StaticCache

from decodescope.core.caches.tensors.adapted_layer import CacheLayer
from decodescope.core.models.loaded_model import LoadedModel


class _PrefetchStreamMixin:
    """Mixin that copies layers ahead on a stream of the model's own GPU; transformers takes the current one."""

    layers: list[CacheLayer]
    prefetch_stream: torch.Stream

    def set_layers(self, model: LoadedModel, layers: Sequence[CacheLayer]) -> None:
        """Use the layers of a cache of the same model."""
        self.layers = list(layers)
        self.prefetch_stream = torch.Stream(model.device)


class HostOffloadedCache(_PrefetchStreamMixin, DynamicCache):
    """A growing cache in host memory."""

    def __init__(self, model: LoadedModel, layers: Sequence[CacheLayer]) -> None:
        super().__init__(config=model.config, offloading=True)
        self.set_layers(model, layers)


class HostOffloadedStaticCache(_PrefetchStreamMixin, StaticCache):
    """A cache of fixed size in host memory."""

    def __init__(self, model: LoadedModel, length: int) -> None:
        super().__init__(config=model.config, max_cache_len=length, offloading=True, offload_only_non_sliding=False)


def wait_for_transfers(cache: Cache | None) -> None:
    """Wait for copies between GPU and host memory before layers are read or changed outside a pass."""
    if isinstance(cache, EncoderDecoderCache):
        cache = cache.self_attention_cache
    if cache is not None and cache.offloading:
        torch.cuda.synchronize(cache.prefetch_stream.device)
