"""Layers that keep a window, and caches laid out with or without them."""

from __future__ import annotations

from typing import Any

import torch
from transformers.cache_utils import DynamicCache, DynamicLayer, DynamicSlidingWindowLayer, EncoderDecoderCache

from core.models.model import LoadedModel


class WindowLayer(DynamicSlidingWindowLayer):  # type: ignore[no-untyped-call]  # transformers leaves it unannotated
    """transformers' windowed layer, made to hold only what it shows: no view over a longer storage."""

    keys: Any
    values: Any
    _sliding_window_tensor: Any

    def __init__(self, sliding_window: int) -> None:
        super().__init__(sliding_window)
        self._sliding_window_tensor = None

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        """Empty keys and values of the given type and device."""
        DynamicLayer.lazy_initialization(self, key_states, value_states)

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Add tokens [B, H, n, D]; what they attend to comes back, what the window has passed is freed."""
        seen = super().update(key_states, value_states, *args, **kwargs)
        self.compact()
        return seen

    def held(self) -> tuple[tuple[int, int], ...]:
        """Places in the text, [start, stop), of the tokens held."""
        count = self.keys.shape[-2] if self.is_initialized else 0
        return ((self.cumulative_length - count, self.cumulative_length),)

    def compact(self) -> None:
        """Give back the storage behind keys and values that are not kept."""
        self.keys, self.values = compacted(self.keys), compacted(self.values)


def compacted(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor itself, or a copy when its storage holds more than it shows."""
    whole = tensor.untyped_storage().nbytes() == tensor.numel() * tensor.element_size()
    return tensor if whole else tensor.clone(memory_format=torch.contiguous_format)


def by_config(model: LoadedModel) -> Any:
    """A decoder's cache as the model's configuration lays it out: windows, states, placeholders."""
    cache = DynamicCache(config=model.config)
    cache.layers = [_tight(layer) for layer in cache.layers]
    return cache


def full_width(model: LoadedModel) -> Any:
    """The same, but windowed attention layers keep everything too (their mask still hides what is out of reach)."""
    plain: Any = DynamicLayer
    cache = DynamicCache(config=model.config)
    cache.layers = [plain() if type(layer) is DynamicSlidingWindowLayer else layer for layer in cache.layers]
    return cache


def with_cross(model: LoadedModel, own: Any) -> Any:
    """`own` for a decoder; for an encoder–decoder both halves, the cross-attention's a plain one."""
    return EncoderDecoderCache(own, DynamicCache(config=model.config)) if model.is_encoder_decoder else own


def _tight(layer: Any) -> Any:
    return WindowLayer(layer.sliding_window) if type(layer) is DynamicSlidingWindowLayer else layer
