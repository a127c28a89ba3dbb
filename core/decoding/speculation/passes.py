"""Passes of one model over the text and over drafted nodes behind it, whose rows can be taken back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from core.caches.tensors import editing
from core.decoding.forward.forward import Forward
from core.decoding.speculation.tree_support import places_nodes


class Passes:
    """One model's memory: `length` tokens of the text are settled, `extra` rows of nodes stand behind them.

    Several tokens at once get a 4-D additive float mask [1, 1, n, length + extra + n] made from who sees whom, and
    positions length + depth; layers with a window get the window in their mask too. Models that place tokens by their
    order alone take chains only.
    """

    def __init__(self, forward: Forward, length: int = 0) -> None:
        self.forward = forward
        self.length = length
        self.extra = 0
        config = forward.model.config
        self._ordered = not places_nodes(forward.model)
        self._window: int | None = window_of(config)
        self._kinds: tuple[str, ...] = tuple(dict.fromkeys(getattr(config, "layer_types", None) or ()))
        self._device, self._dtype = forward.model.device, forward.model.dtype
        self._lowest = torch.finfo(self._dtype).min

    def text(self, ids: torch.Tensor) -> torch.Tensor:
        """Read text tokens [1, n] for good; logits [1, V] behind the last one."""
        count = ids.shape[1]
        more: dict[str, Any] = {}
        if self.length and count > 1 and not self._ordered:
            more = self._places(range(count), causal(count))
        output = self.forward(ids, **more)
        self.length += count
        return output.last

    def nodes(self, ids: torch.Tensor, depths: Sequence[int], sees: npt.NDArray[np.bool_]) -> torch.Tensor:
        """Read nodes [1, n] behind the settled text; logits [n, V] behind each.

        `depths`: 0 for the token right behind the text; `sees` [n, extra + n]: rows each node may look at.
        """
        count = ids.shape[1]
        if self._ordered:
            more: dict[str, Any] = {}
        elif count == 1 and self._window is None and sees.all():
            more = {}
        else:
            more = self._places(depths, sees)
        output = self.forward(ids, keep=0 if count > 1 else 1, **more)
        self.extra += count
        return output.logits[0]

    def settle(self, rows: Sequence[int]) -> None:
        """Make these node rows, in this order, part of the text and forget the others."""
        if self.extra:
            editing.keep_rows(self.forward.cache, self.length, rows)
        self.length += len(rows)
        self.extra = 0

    def crop(self, length: int) -> None:
        """Forget all nodes and every text token behind the first `length`, giving their memory back."""
        editing.crop(self.forward.cache, length)
        editing.compact(self.forward.cache)
        self.length, self.extra = min(self.length, length), 0

    def _places(self, depths: Sequence[int], sees: npt.NDArray[np.bool_]) -> dict[str, Any]:
        """position_ids and attention_mask."""
        position = torch.tensor([depths], device=self._device) + self.length
        return {"position_ids": position, "attention_mask": self._mask(depths, sees)}

    def _mask(self, depths: Sequence[int], sees: npt.NDArray[np.bool_]) -> Any:
        blocked = np.zeros((sees.shape[0], self.length + sees.shape[1]), dtype=np.bool_)
        np.logical_not(sees, out=blocked[:, self.length :])
        if self._window is None:
            return self._additive(blocked)
        near = blocked | self._out_of_window(depths, sees)
        if not self._kinds:
            return self._additive(near)
        return {kind: self._additive(near if kind == "sliding_attention" else blocked) for kind in self._kinds}

    def _out_of_window(self, depths: Sequence[int], sees: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """What lies a window or more behind. A node's own row and those it sees stand in order of depth, so the depth
        of a seen row is its place among them."""
        assert self._window is not None
        own = np.asarray(depths)[:, None]
        seen_depth = sees.cumsum(1) - 1
        first = own - (sees.sum(1, keepdims=True) - 1)  # depth of the first row that a node sees behind the text
        behind = own - (first + seen_depth) >= self._window
        text = np.arange(self.length)[None] <= self.length + own - self._window
        return np.concatenate([text, behind & sees], axis=1)

    def _additive(self, blocked: npt.NDArray[np.bool_]) -> torch.Tensor:
        mask = np.where(blocked, np.float32(self._lowest), np.float32(0.0))[None, None]
        return torch.from_numpy(mask).to(device=self._device, dtype=self._dtype)


def causal(count: int) -> npt.NDArray[np.bool_]:
    """[n, n]: everyone sees themselves and those before."""
    return np.tri(count, dtype=np.bool_)


def window_of(config: Any) -> int | None:
    """Tokens a windowed layer looks at, the present one included; None when every layer sees everything."""
    window = getattr(config, "sliding_window", None)
    if not window or getattr(config, "use_sliding_window", True) is False:
        return None
    kinds = getattr(config, "layer_types", None)
    return None if kinds and "sliding_attention" not in kinds else int(window)
