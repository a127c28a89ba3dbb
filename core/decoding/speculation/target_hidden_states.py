"""The target's hidden states of the text, kept for drafters that read them."""

from __future__ import annotations

from collections.abc import Sequence

import torch


class TargetHiddenStates:
    """The state [D] behind every token that the target has read for good; those taken are forgotten."""

    def __init__(self) -> None:
        self._states: torch.Tensor | None = None
        self._offset = 0
        self._nodes: torch.Tensor | None = None

    def add_text(self, states: torch.Tensor) -> None:
        """Of text tokens [1, n, D] read at the end."""
        self._states = states if self._states is None else torch.cat([self._states, states], 1)

    def add_nodes(self, states: torch.Tensor) -> None:
        """Of drafted nodes [1, n, D] behind the text, of which `commit` will keep some."""
        self._nodes = states if self._nodes is None else torch.cat([self._nodes, states], 1)

    def commit(self, rows: Sequence[int]) -> None:
        """These nodes, in this order, are text now."""
        if self._nodes is not None and rows:
            self.add_text(self._nodes[:, list(rows)])
        self._nodes = None

    def take(self, begin: int, end: int) -> torch.Tensor:
        """States [1, end − begin, D] of the text's tokens; nobody asks for what lies before them again."""
        assert self._states is not None
        found = self._states[:, begin - self._offset : end - self._offset]
        self._states, self._offset = self._states[:, end - self._offset :], end
        return found
