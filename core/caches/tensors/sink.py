"""StreamingLLM's cache: the first tokens and the latest, positions counted inside the cache (Xiao et al. 2024)."""

from __future__ import annotations

from typing import Any

import torch
from transformers.cache_utils import DynamicCache, DynamicLayer

from core.caches.tensors.rotary import Rotary
from core.errors import CacheError
from core.models.model import LoadedModel


class SinkLayer(DynamicLayer):  # type: ignore[no-untyped-call]  # transformers leaves it unannotated
    """Keys [B, H, T, D] are kept without their place and get the one they have in the cache at every pass.

    At most `window` − 1 tokens stay after a pass: the next token makes it `window`. What a pass of several tokens reads
    is all that was held and all that is new.
    """

    keys: Any
    values: Any
    is_lean = True

    def __init__(self, rotary: Rotary, window: int, sinks: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.rotary, self.window, self.sinks = rotary, window, sinks
        self.seen = 0
        """Tokens read since the text began, forgotten ones included."""

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Add tokens whose keys are turned to the places after those held; what they attend to comes back."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        held = self.get_seq_length()
        keys = torch.cat([self.keys, self.rotary.turn_back(key_states, held)], dim=-2)
        values = torch.cat([self.values, value_states], dim=-2)
        self.seen += key_states.shape[-2]
        self.keys, self.values = self._keep(keys), self._keep(values)
        return self.rotary.turn(keys, 0), values

    def held(self) -> tuple[tuple[int, int], ...]:
        """Places in the text, [start, stop), of the tokens held: the sinks, and the latest."""
        count = self.get_seq_length()
        if count == self.seen:
            return ((0, count),)
        return ((0, self.sinks), (self.seen - count + self.sinks, self.seen))

    def least(self) -> int:
        """Shortest length it can be cut to: once something was forgotten, it cannot."""
        return 0 if self.seen == self.get_seq_length() else self.seen

    def truncate(self, length: int) -> None:
        """Forget all but the first `length` tokens of the text. Raises CacheError once it has forgotten any."""
        if length >= self.seen:
            return
        if self.least():
            raise CacheError("The tokens a sink cache has forgotten do not come back.", "Choose the dynamic cache.")
        self.keys, self.values = self.keys[:, :, :length].clone(), self.values[:, :, :length].clone()
        self.seen = length

    def select(self, kept: list[int]) -> None:
        """Raises CacheError: places in the cache are not places in the text."""
        raise CacheError("A sink cache cannot keep tokens at chosen places.", "Choose the dynamic cache.")

    def _keep(self, tensor: torch.Tensor) -> torch.Tensor:
        over = tensor.shape[-2] - (self.window - 1)
        if over <= 0:
            return tensor
        return torch.cat([tensor[:, :, : self.sinks], tensor[:, :, self.sinks + over :]], dim=-2)


def build_sink(model: LoadedModel, window: int, sinks: int) -> Any:
    """An empty sink cache. Raises CacheError when the settings contradict each other or the model's context."""
    if window < sinks + 2:
        raise CacheError(
            f"A window of {window:,} tokens has no room beside {sinks:,} sink tokens.",
            f"Use a window of {sinks + 2:,} or more.",
        )
    if model.context is not None and window > model.context:
        raise CacheError(
            f"The window of {window:,} tokens is longer than the model's context of {model.context:,}.",
            f"Use a window of {model.context:,} or less.",
        )
    rotary = Rotary(model)
    cache = DynamicCache(config=model.config)
    cache.layers = [SinkLayer(rotary, window, sinks) for _ in cache.layers]
    cache.longest_pass = model.context - window + 1 if model.context else None  # type: ignore[attr-defined]
    return cache
