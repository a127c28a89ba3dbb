"""Passes of one model over the text and over drafted nodes behind it, whose rows can be taken back."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch

from core.caches.tensors import cache_editing
from core.decoding.forward.forward_pass import Forward, ForwardOutput, TokenPositions
from core.decoding.speculation.target_hidden_states import TargetHiddenStates
from core.decoding.speculation.tree_positions import TreePositions, causal_visibility
from core.decoding.speculation.tree_support import supports_trees

_EXTRA_CAPACITY = 32
"""Rows that a memory has room for besides: drafts come and go in it, and the text need not be moved for every one."""


class TreePasses:
    """One model's memory: `length` tokens of the text are settled, `extra` rows of nodes stand behind them.

    Several tokens at once get a 4-D additive float mask [1, 1, n, length + extra + n] made from who sees whom, and
    positions length + depth; layers with a window get the window in their mask too. Models that place tokens by their
    order alone take chains only.
    """

    def __init__(self, forward: Forward, length: int = 0) -> None:
        self.forward = forward
        self.forward.extra_capacity = _EXTRA_CAPACITY
        self.length = length
        self.extra = 0
        self.hidden_states: TargetHiddenStates | None = None
        """Told the hidden states of what is read, where a drafter reads them."""
        self._is_sequential = not supports_trees(forward.model)
        self._positions = TreePositions(forward.model)

    def read_text(self, ids: torch.Tensor) -> torch.Tensor:
        """Read text tokens [1, n] for good; logits [1, V] behind the last one."""
        count = ids.shape[1]
        more: TokenPositions = {}
        if self.length and count > 1 and not self._is_sequential:
            more = self._positions.build(self.length, range(count), causal_visibility(count), self.forward.offset)
        output = self._read(ids, 1, more)
        self.length += count
        if self.hidden_states is not None:
            self.hidden_states.add_text(last_hidden_states(output))
        return output.last

    def read_nodes(self, ids: torch.Tensor, depths: Sequence[int], sees: npt.NDArray[np.bool_]) -> torch.Tensor:
        """Read nodes [1, n] behind the settled text; logits [n, V] behind each.

        `depths`: 0 for the token right behind the text; `sees` [n, extra + n]: rows each node may look at.
        """
        count = ids.shape[1]
        if self._is_sequential:
            more: TokenPositions = {}
        elif count == 1 and self._positions.window is None and sees.all():
            more = {}
        else:
            more = self._positions.build(self.length, depths, sees, self.forward.offset)
        output = self._read(ids, 0 if count > 1 else 1, more)
        self.extra += count
        if self.hidden_states is not None:
            self.hidden_states.add_nodes(last_hidden_states(output))
        return output.logits[0]

    def _read(self, ids: torch.Tensor, keep: int, more: TokenPositions) -> ForwardOutput:
        """With what the head reads, where somebody is told."""
        return (
            self.forward(ids, keep=keep, **more)
            if self.hidden_states is None
            else self.forward.forward_with_states(ids, keep, **more)
        )

    def commit(self, rows: Sequence[int]) -> None:
        """Make these node rows, in this order, part of the text and forget the others."""
        if self.extra:
            cache_editing.keep_rows(self.forward.cache, self.forward.offset + self.length, rows)
        self.length += len(rows)
        self.extra = 0
        if self.hidden_states is not None:
            self.hidden_states.commit(rows)

    def crop(self, length: int) -> None:
        """Forget all nodes and every text token behind the first `length`, giving their memory back."""
        cache_editing.crop(self.forward.cache, self.forward.offset + length)
        cache_editing.compact(self.forward.cache)
        self.length, self.extra = min(self.length, length), 0


def last_hidden_states(output: ForwardOutput) -> torch.Tensor:
    """What the output head has read, [1, n, D]."""
    assert output.hidden is not None
    return output.hidden[-1]
