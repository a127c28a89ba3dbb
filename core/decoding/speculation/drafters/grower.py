"""A tree of given widths, drafted level by level in one pass each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch

from core.decoding.speculation.draws import draw
from core.decoding.speculation.plan import Plan
from core.decoding.speculation.processing import NodeFunnel
from core.decoding.speculation.text import Text
from core.decoding.speculation.tree import Branch


class Feeder(Protocol):
    """The part of a drafter that a growing tree uses."""

    funnel: NodeFunnel

    @property
    def generator(self) -> torch.Generator: ...
    @property
    def is_cancelled(self) -> Callable[[], bool]: ...
    def feed(
        self, tokens: Sequence[int], parents: Sequence[int], depth: int, sees: npt.NDArray[np.bool_]
    ) -> torch.Tensor: ...


class Grower:
    """One tree being drafted, level by level."""

    def __init__(self, drafter: Feeder, text: Text, plan: Plan) -> None:
        self.drafter, self.plan = drafter, plan
        self.branch = Branch()
        self._prefixes: dict[int, torch.Tensor] = {0: text.tensor}
        self._rows: dict[int, int] = {0: -1}
        self._sees = np.zeros((0, 0), dtype=np.bool_)

    def grow(self, logits: torch.Tensor) -> Branch | None:
        """Levels until the depth is reached or nothing is worth going on."""
        frontier = [0]
        for depth in range(self.plan.depth):
            children = self._level(frontier, logits, depth)
            frontier = self._worth_going_on(children)
            if not frontier or depth + 1 == self.plan.depth:
                break
            if self.drafter.is_cancelled():
                return None
            logits = self._read(frontier, depth)
        return self.branch

    def _level(self, frontier: list[int], logits: torch.Tensor, depth: int) -> list[int]:
        """Children of the frontier; their numbers."""
        funnel = self.drafter.funnel
        prefixes = [self._prefixes[node] for node in frontier] if funnel.needs_prefix else [self._prefixes[0]]
        q = torch.softmax(funnel.rows(prefixes, logits), -1)
        if self.plan.keep_q:
            self.branch.q.update(zip(frontier, q, strict=True))
        if self.plan.sampled:
            return self._draw(frontier, q, depth)
        return self._take(frontier, q, depth)

    def _draw(self, frontier: list[int], q: torch.Tensor, depth: int) -> list[int]:
        """Independent draws, with replacement; a repeated one is a second trial of the same node."""
        drawn = draw(q, self.plan.width(depth), self.drafter.generator)
        new: list[int] = []
        for parent, tokens, shares in zip(frontier, drawn.tolist(), q.gather(1, drawn).tolist(), strict=True):
            new += self.branch.draw(parent, tokens, shares)
        return new

    def _take(self, frontier: list[int], q: torch.Tensor, depth: int) -> list[int]:
        """The likeliest children."""
        top = q.topk(min(self.plan.width(depth), q.shape[-1]))
        return [
            self.branch.add(parent, token, share)
            for parent, tokens, shares in zip(frontier, top.indices.tolist(), top.values.tolist(), strict=True)
            for token, share in zip(tokens, shares, strict=True)
            if share > 0
        ]

    def _worth_going_on(self, children: list[int]) -> list[int]:
        """Of a level, the nodes to draft behind."""
        return [node for node in children if self.branch.probabilities[node - 1] >= self.plan.threshold]

    def _read(self, frontier: list[int], depth: int) -> torch.Tensor:
        """Feed the frontier; every node sees its ancestors and itself."""
        before, count = self._sees.shape[0], len(frontier)
        sees = np.zeros((before + count, before + count), dtype=np.bool_)
        sees[:before, :before] = self._sees
        parents = [self._rows[self.branch.parents[node - 1]] for node in frontier]
        for row, (node, parent) in enumerate(zip(frontier, parents, strict=True), before):
            if parent >= 0:
                sees[row] = sees[parent]
            sees[row, row] = True
            self._rows[node] = row
        self._sees = sees
        tokens = [self.branch.ids[node - 1] for node in frontier]
        if self.drafter.funnel.needs_prefix:
            self._extend_prefixes(frontier, tokens)
        return self.drafter.feed(tokens, parents, depth, sees[before:])

    def _extend_prefixes(self, frontier: list[int], tokens: list[int]) -> None:
        for node, token in zip(frontier, tokens, strict=True):
            parent = self._prefixes[self.branch.parents[node - 1]]
            self._prefixes[node] = torch.cat([parent, torch.tensor([[token]], device=parent.device)], dim=1)
