"""A round as an event, and the sums that a run's metrics are made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from core.decoding.run import DecodingRun
from core.decoding.speculation.cost import remembered_cost
from core.decoding.speculation.economy import expected_speedup
from core.decoding.speculation.schedule import Outcome
from core.decoding.speculation.tree import DraftTree
from core.decoding.speculation.verify import Verdict
from core.events import DraftNode, DraftRound
from core.text import Pieces


@dataclass(slots=True)
class Tally:
    """Sums over the rounds."""

    rounds: int = 0
    accepted: int = 0
    examined: int = 0
    levels: int = 0
    """Depths of all drafts together."""
    draft_seconds: float = 0.0
    verify_seconds: float = 0.0
    overhead_seconds: float = 0.0

    def add(self, outcome: Outcome) -> None:
        """Count a round with drafted tokens."""
        verdict = outcome.verdict
        self.rounds += 1
        self.accepted += len(verdict.path)
        self.examined += len(verdict.path) + (not verdict.is_bonus)
        self.levels += max(outcome.tree.depths)

    def report(self, run: DecodingRun) -> None:
        """Hand the sums to the run."""
        run.acceptance = (self.accepted, self.examined)
        run.draft_seconds, run.verify_seconds = self.draft_seconds, self.verify_seconds
        run.overhead_seconds = self.overhead_seconds
        run.predicted_speedup = self._predicted(run)

    def _predicted(self, run: DecodingRun) -> float | None:
        """The formula, with this run's acceptance, mean draft length and times; None before anything was drafted."""
        cost = remembered_cost(run.model)
        if not self.examined or cost is None:
            return None
        per_token = self.draft_seconds / self.levels
        return expected_speedup(self.accepted / self.examined, self.levels / self.rounds, per_token / cost.one)


@dataclass(frozen=True, slots=True)
class Figures:
    """Numbers of a round besides the tree."""

    round: int
    step: int
    length: int
    draft_seconds: float
    verify_seconds: float
    overhead_seconds: float


def round_event(
    tree: DraftTree, verdict: Verdict, written: int, shares: Sequence[float], figures: Figures, pieces: Pieces
) -> DraftRound:
    """The event. `written`: tokens of path and extra that became text; `shares`: the target's probability of every
    node behind its parent, [N]."""
    path = verdict.path[:written]
    has_extra = written > len(verdict.path)
    kind = ("bonus" if verdict.is_bonus else "correction") if has_extra else "none"
    return DraftRound(
        round=figures.round, step=figures.step, nodes=_nodes(tree, verdict, path, shares, pieces),
        accepted=tuple(path), extra_id=verdict.extra if has_extra else -1,
        extra_piece=pieces[verdict.extra] if has_extra else "", extra_kind=kind,
        draft_seconds=figures.draft_seconds, verify_seconds=figures.verify_seconds,
        overhead_seconds=figures.overhead_seconds, length=figures.length,
    )  # fmt: skip


def _nodes(
    tree: DraftTree, verdict: Verdict, path: list[int], shares: Sequence[float], pieces: Pieces
) -> tuple[DraftNode, ...]:
    taken = set(path)
    cut_short = len(path) < len(verdict.path)
    visited = {0, *(path[:-1] if cut_short else path)}
    nodes = []
    for node in range(1, len(tree)):
        reached = tree.parents[node] in visited
        decision = verdict.decisions.get(node) if reached else None
        nodes.append(DraftNode(
            node=node, parent=tree.parents[node], id=tree.ids[node], piece=pieces[tree.ids[node]],
            depth=tree.depths[node], drafter=tree.drafters[node], draft_probability=tree.probabilities[node],
            target_probability=shares[node], fate=_fate(node, taken, reached, verdict, decision is not None),
            ratio=decision.ratio if decision else None, die=decision.die if decision else None,
        ))  # fmt: skip
    return tuple(nodes)


def _fate(node: int, taken: set[int], reached: bool, verdict: Verdict, was_thrown: bool) -> str:
    """With dice, a sibling behind the accepted one was never tried."""
    if node in taken:
        return "accepted"
    if not reached or (verdict.decisions and not was_thrown):
        return "unreached"
    return "refused"


def target_shares(scores: torch.Tensor, tree: DraftTree) -> list[float]:
    """The target's processed probability of every node given its parent (1 for the root), [N]; scores [N, V]."""
    if len(tree) == 1:
        return [1.0]
    parents = torch.tensor(tree.parents[1:], device=scores.device)
    tokens = torch.tensor(tree.ids[1:], device=scores.device)
    log_p = torch.log_softmax(scores, -1)[parents, tokens]
    found: list[float] = log_p.exp().tolist()
    return [1.0, *found]
