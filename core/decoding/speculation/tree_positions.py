"""Where nodes behind a text stand, and what each of them sees."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch

from core.decoding.forward.forward_pass import Mask, TokenPositions
from core.models.loaded_model import LoadedModel


class TreePositions:
    """Makes a model's position_ids and its 4-D additive float mask; layers with a window get the window in their mask
    too."""

    def __init__(self, model: LoadedModel) -> None:
        config = model.config
        self.window: int | None = sliding_window(config)
        self._layer_types: tuple[str, ...] = tuple(dict.fromkeys(getattr(config, "layer_types", None) or ()))
        self._device, self._dtype = model.device, model.dtype
        self._lowest = torch.finfo(self._dtype).min

    def build(self, length: int, depths: Sequence[int], sees: npt.NDArray[np.bool_], offset: int = 0) -> TokenPositions:
        """position_ids and attention_mask [1, 1, n, offset + length + rows] for nodes at `depths` behind `length`
        tokens, that see [n, rows]; `offset` places of the cache stand before the text."""
        position = torch.tensor([depths], device=self._device) + length
        return {"position_ids": position, "attention_mask": self._mask(offset + length, depths, sees)}

    def _mask(self, length: int, depths: Sequence[int], sees: npt.NDArray[np.bool_]) -> Mask:
        blocked = np.zeros((sees.shape[0], length + sees.shape[1]), dtype=np.bool_)
        np.logical_not(sees, out=blocked[:, length:])
        if self.window is None:
            return self._additive(blocked)
        near = blocked | self._window_mask(length, depths, sees)
        if not self._layer_types:
            return self._additive(near)
        return {kind: self._additive(near if kind == "sliding_attention" else blocked) for kind in self._layer_types}

    def _window_mask(self, length: int, depths: Sequence[int], sees: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """What lies a window or more behind. A node's own row and those it sees stand in order of depth, so the depth
        of a seen row is its place among them."""
        assert self.window is not None
        own = np.asarray(depths)[:, None]
        seen_depth = sees.cumsum(1) - 1
        first = own - (sees.sum(1, keepdims=True) - 1)  # depth of the first row that a node sees behind the text
        behind = own - (first + seen_depth) >= self.window
        text = np.arange(length)[None] <= length + own - self.window
        return np.concatenate([text, behind & sees], axis=1)

    def _additive(self, blocked: npt.NDArray[np.bool_]) -> torch.Tensor:
        mask = np.where(blocked, np.float32(self._lowest), np.float32(0.0))[None, None]
        return torch.from_numpy(mask).to(device=self._device, dtype=self._dtype)


def causal_visibility(count: int) -> npt.NDArray[np.bool_]:
    """[n, n]: everyone sees themselves and those before."""
    return np.tri(count, dtype=np.bool_)


def sliding_window(config: object) -> int | None:
    """Tokens a windowed layer looks at, the present one included; None when every layer sees everything."""
    window = getattr(config, "sliding_window", None)
    if not window or getattr(config, "use_sliding_window", True) is False:
        return None
    kinds = getattr(config, "layer_types", None)
    return None if kinds and "sliding_attention" not in kinds else int(window)
