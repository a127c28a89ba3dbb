"""Draft a tree of given or cost-dependent widths, with one pass per level."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch

from decodescope.core.decoding.speculation.drafters.base import SpeculationText
from decodescope.core.decoding.speculation.round_plan import DraftGate, RoundPlan
from decodescope.core.decoding.speculation.tree import Branch, NodePipeline
from decodescope.core.decoding.tensor_utils import draw_samples, to_host
from decodescope.core.system.gpu import upload

_MAX_GATED_CHILDREN = 8
"""Maximum number of children of a node where the gate decides."""


class LevelReader(Protocol):
    """The part of a drafter that tree drafting uses."""

    pipeline: NodePipeline

    @property
    def index(self) -> int: ...
    @property
    def generator(self) -> torch.Generator: ...
    @property
    def is_cancelled(self) -> Callable[[], bool]: ...
    def read_level(
        self, tokens: Sequence[int], parents: Sequence[int], depth: int, visibility: npt.NDArray[np.bool_]
    ) -> torch.Tensor: ...


class TreeDrafter:
    """Drafts one tree, level by level."""

    def __init__(self, drafter: LevelReader, text: SpeculationText, plan: RoundPlan) -> None:
        self.drafter, self.plan = drafter, plan
        self.branch = Branch()
        self._prefixes: dict[int, torch.Tensor] = {0: text.tensor}
        self._rows: dict[int, int] = {0: -1}
        self._mask = np.zeros((0, 0), dtype=np.bool_)
        self._gate = None if plan.widths else plan.gate
        self._path_probabilities = {0: 1.0}
        """Probability that the target accepts the path to a node; used with a gate."""

    def draft(self, logits: torch.Tensor) -> Branch | None:
        """Add levels until the depth is reached or further ones do not pay off."""
        frontier = [0]
        for depth in range(self.plan.depth):
            children = self._add_level(frontier, logits, depth)
            frontier = self._select_frontier(children)
            if not frontier or depth + 1 == self.plan.depth:
                break
            if self.drafter.is_cancelled():
                return None
            logits = self._read(frontier, depth)
        return self.branch

    def _add_level(self, frontier: list[int], logits: torch.Tensor, depth: int) -> list[int]:
        """Add children of the frontier and return their indices."""
        funnel = self.drafter.pipeline
        prefixes = [self._prefixes[node] for node in frontier] if funnel.needs_prefix else [self._prefixes[0]]
        # A row without a finite score (only ids are left that the drafter does not score) proposes nothing.
        q = torch.softmax(funnel.process_rows(prefixes, logits), -1).nan_to_num(0.0)
        if self.plan.keeps_q:
            self.branch.q.update(zip(frontier, q, strict=True))
        if self._gate is not None:
            return (self._draw_gated if self.plan.is_sampled else self._add_gated)(self._gate, frontier, q)
        return (
            self._draw_children(frontier, q, depth) if self.plan.is_sampled else self._add_likeliest(frontier, q, depth)
        )

    def _draw_children(self, frontier: list[int], q: torch.Tensor, depth: int) -> list[int]:
        """Draw children independently with replacement; a repeated one is a second trial of the same node."""
        drawn = draw_samples(q, self.plan.width(depth), self.drafter.generator)
        new: list[int] = []
        for parent, tokens, shares in zip(frontier, *to_host(drawn, q.gather(1, drawn)), strict=True):
            new += self.branch.draw(parent, tokens, shares)
        return new

    def _add_likeliest(self, frontier: list[int], q: torch.Tensor, depth: int) -> list[int]:
        """Add the most likely children."""
        top = q.topk(min(self.plan.width(depth), q.shape[-1]))
        return [
            self.branch.add(parent, token, share)
            for parent, tokens, shares in zip(frontier, *to_host(top.indices, top.values), strict=True)
            for token, share in zip(tokens, shares, strict=True)
            if share > 0
        ]

    def _draw_gated(self, gate: DraftGate, frontier: list[int], q: torch.Tensor) -> list[int]:
        """Draw as many children per node as pay off; the number is fixed before drawing."""
        new: list[int] = []
        for place, parent in enumerate(frontier):
            before = self._path_probabilities[parent]
            if count := gate.draw_count(before, len(self.branch.ids) + 1):
                drawn = draw_samples(q[place : place + 1], count, self.drafter.generator)
                (tokens,), (shares,) = to_host(drawn, q[place : place + 1].gather(1, drawn))
                for number, child in enumerate(self.branch.draw(parent, tokens, shares)):
                    share = self.branch.probabilities[child - 1]
                    self._path_probabilities[child] = before * gate.acceptance(self.drafter.index, share, number > 0)
                    new.append(child)
        return sorted(new, key=lambda child: -self._path_probabilities[child])

    def _add_gated(self, gate: DraftGate, frontier: list[int], q: torch.Tensor) -> list[int]:
        """Add all children that pay off, most likely ones of the level first."""
        top = q.topk(min(_MAX_GATED_CHILDREN, q.shape[-1]))
        found: list[tuple[float, int, int, float]] = []
        for parent, tokens, shares in zip(frontier, *to_host(top.indices, top.values), strict=True):
            max_chance = self._path_probabilities[parent] * gate.acceptance(self.drafter.index, shares[0])
            for place, (token, share) in enumerate(zip(tokens, shares, strict=True)):
                chance = self._path_probabilities[parent] * gate.acceptance(self.drafter.index, share, place > 0)
                found.append((min(chance, max_chance), parent, token, share))
        new: list[int] = []
        for chance, parent, token, share in sorted(found, key=lambda child: -child[0]):
            # The fixed cost of a round counts for the whole tree, not for its first node.
            if share <= 0 or not gate.is_worthwhile(chance, len(self.branch.ids) + 1):
                break
            new.append(self.branch.add(parent, token, share))
            self._path_probabilities[new[-1]] = chance
        return new

    def _select_frontier(self, children: list[int]) -> list[int]:
        """Return the nodes of a level to extend further."""
        sure = [node for node in children if self.branch.probabilities[node - 1] >= self.plan.threshold]
        if self._gate is not None:
            while sure and not self._gate.should_extend(
                [self._path_probabilities[node] for node in sure], len(self.branch.ids)
            ):
                sure.pop()
        return sure

    def _read(self, frontier: list[int], depth: int) -> torch.Tensor:
        """Feed the frontier; every node sees its ancestors and itself."""
        before, count = self._mask.shape[0], len(frontier)
        sees = np.zeros((before + count, before + count), dtype=np.bool_)
        sees[:before, :before] = self._mask
        parents = [self._rows[self.branch.parents[node - 1]] for node in frontier]
        for row, (node, parent) in enumerate(zip(frontier, parents, strict=True), before):
            if parent >= 0:
                sees[row] = sees[parent]
            sees[row, row] = True
            self._rows[node] = row
        self._mask = sees
        tokens = [self.branch.ids[node - 1] for node in frontier]
        if self.drafter.pipeline.needs_prefix:
            self._extend_prefixes(frontier, tokens)
        return self.drafter.read_level(tokens, parents, depth, sees[before:])

    def _extend_prefixes(self, frontier: list[int], tokens: list[int]) -> None:
        for node, token in zip(frontier, tokens, strict=True):
            parent = self._prefixes[self.branch.parents[node - 1]]
            self._prefixes[node] = torch.cat([parent, upload([[token]], parent.device)], dim=1)
