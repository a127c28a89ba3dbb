"""Verification of drafted tokens: pure functions on a tree and the target's scores of its nodes.

Greedy verification: the output equals that of greedy decoding token for token. Rejection sampling on a chain (Leviathan
et al. 2023; Chen et al. 2023) and multi-step speculative sampling on a tree (Miao et al. 2024, SpecInfer): the output
is distributed exactly as sampling from the target, for children that were drawn from the drafters' distributions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import torch

from decodescope.core.decoding.speculation.tree import DraftTree, DraftTrial
from decodescope.core.decoding.tensor_utils import draw_samples
from decodescope.core.system.gpu import upload


@dataclass(frozen=True, slots=True)
class NodeDecision:
    """One acceptance test: accepted when `random_number` < `ratio` = min(1, p/q)."""

    ratio: float
    random_number: float


@dataclass(slots=True)
class VerifiedPath:
    """The accepted nodes in order and the target's own token after them."""

    path: list[int]
    extra_token: int
    is_bonus: bool
    """Whether nothing on the path was rejected: it ends at a leaf."""
    decisions: dict[int, NodeDecision] = field(default_factory=dict)


def verify_greedy(tree: DraftTree, choices: Sequence[int]) -> VerifiedPath:
    """Follow the child that equals the target's choice. `choices`: the target's argmax after every node, [N]."""
    path: list[int] = []
    node, children = 0, tree.children
    while True:
        target_token = choices[node]
        found = next((child for child in children[node] if tree.ids[child] == target_token), None)
        if found is None:
            return VerifiedPath(path, target_token, not children[node])
        path.append(found)
        node = found


class AcceptanceRng:
    """Uniform numbers in [0, 1) from the run's generator, generated in batches."""

    def __init__(self, generator: torch.Generator, batch: int = 64) -> None:
        self._generator, self._batch = generator, batch
        self._numbers = self._generate()

    def _generate(self) -> Iterator[float]:
        while True:
            yield from torch.rand(self._batch, generator=self._generator, device=self._generator.device).tolist()

    def __call__(self) -> float:
        return next(self._numbers)

    def shuffle(self, trials: Sequence[DraftTrial]) -> list[DraftTrial]:
        """Return a random order (Fisher–Yates)."""
        order = list(trials)
        for last in range(len(order) - 1, 0, -1):
            other = int(self() * (last + 1))
            order[last], order[other] = order[other], order[last]
        return order


def verify_sampled(tree: DraftTree, p: torch.Tensor, rng: AcceptanceRng, generator: torch.Generator) -> VerifiedPath:
    """Verify a tree by multi-step speculative sampling; on a chain this is rejection sampling.

    `p`: the target's processed distribution after every node, [N, V]. At a node the proposals are tried in random
    order: v drawn by drafter s is accepted if die < p(v) / q_s(v), else p becomes norm(max(0, p − q_s)).
    """
    parents = upload(tree.parents[1:], p.device)
    tokens = upload(tree.ids[1:], p.device)
    first = [1.0, *p[parents, tokens].tolist()] if len(tree) > 1 else [1.0]
    verdict = VerifiedPath([], -1, True)
    node = 0
    while True:
        child, left = _try_children(tree, node, p[node], first, verdict.decisions, rng)
        if child is None:
            verdict.extra_token = int(draw_samples(left[None], 1, generator))
            verdict.is_bonus = not tree.trials.get(node)
            return verdict
        verdict.path.append(child)
        node = child


def _try_children(
    tree: DraftTree,
    node: int,
    p: torch.Tensor,
    first: Sequence[float],
    decisions: dict[int, NodeDecision],
    rng: AcceptanceRng,
) -> tuple[int | None, torch.Tensor]:
    """Return the accepted child, or None and the rest of p [V] (not normalized)."""
    trials = tree.trials.get(node, [])
    left, untouched = p, True
    for child, drafter in rng.shuffle(trials) if len(trials) > 1 else trials:
        q = tree.q.get((node, drafter))
        token = tree.ids[child]
        share = first[child] if untouched else float(left[token])
        drawn = 1.0 if q is None else float(q[token])
        decision = NodeDecision(min(1.0, share / drawn) if drawn > 0 else 0.0, rng())
        decisions[child] = decision
        if decision.random_number < decision.ratio:
            return child, left
        left, untouched = _residual(left, q, token), False
    return None, left


def _residual(p: torch.Tensor, q: torch.Tensor | None, token: int) -> torch.Tensor:
    """Return norm(max(0, p − q)); q None is the point mass on `token`. If rounding leaves nothing, return p."""
    if q is None:
        left = p.clone()
        left[token] = 0.0
    else:
        left = (p - q).clamp_(min=0.0)
    total = left.sum()
    return left / total if float(total) > 0 else p
