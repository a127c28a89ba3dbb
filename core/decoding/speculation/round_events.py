"""A round as an event, and the sums that a run's metrics are made of."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf

import torch

from core.decoding.run import DecodingRun
from core.decoding.sequences import DraftingCounters
from core.decoding.speculation.auto_length import expected_speedup
from core.decoding.speculation.tree import DraftTree
from core.decoding.speculation.tree_passes import remembered_cost
from core.decoding.speculation.verification import VerifiedPath
from core.events import DrafterChoice, DraftFate, DraftNode, DraftRound, ExtraKind, NgramPool
from core.models.text import TokenSpellings


class Stopwatch:
    """Laps of a round in seconds of the wall, priced by another clock; `waits`: the target waits for the disk, which
    no clock of a thread's own time sees, and the wall prices.

    Asking that clock is a call of the system: it is asked at the begin and for the `finish`, and each lap gets its part.
    """

    def __init__(self, clock: Callable[[], float], waits: bool = False) -> None:
        self._clock, self._uses_wall_clock = clock, waits
        self._clock_start = clock()
        self._started = self._lap_start = time.perf_counter()
        self.seconds: list[float] = []
        self.clock_ratio = 1.0
        """Of the laps' time, what the pricing clock says of it."""

    def lap(self) -> None:
        """One part of the round is done: draft, verification, what it takes besides."""
        wall = time.perf_counter()
        self.seconds.append(wall - self._lap_start)
        self._lap_start = wall

    def finish(self) -> None:
        """All laps are done."""
        wall = self._lap_start - self._started
        if wall > 0 and not self._uses_wall_clock:
            self.clock_ratio = (self._clock() - self._clock_start) / wall

    def lap_cost(self, lap: int) -> float:
        """Seconds of a lap by the clock that prices."""
        return self.seconds[lap] * self.clock_ratio

    @property
    def elapsed(self) -> float:
        """Seconds of the wall since the start."""
        return time.perf_counter() - self._started


@dataclass(frozen=True, slots=True)
class RoundOutcome:
    """A round's tree, what became of it, the draft length asked for, why its drafter was asked, and what
    lookahead holds."""

    tree: DraftTree
    verified: VerifiedPath
    length: int
    choice: DrafterChoice | None = None
    pool: NgramPool | None = None


@dataclass(frozen=True, slots=True)
class RoundNumbers:
    """Numbers of a round besides the tree."""

    round: int
    step: int
    draft_seconds: float
    verify_seconds: float
    overhead_seconds: float


@dataclass(slots=True)
class RoundTotals:
    """Sums over the rounds."""

    rounds: int = 0
    accepted: int = 0
    examined: int = 0
    levels: int = 0
    """Depths of all drafts together."""
    draft_seconds: float = 0.0
    verify_seconds: float = 0.0
    overhead_seconds: float = 0.0
    draft_cost: float = 0.0
    """Draft time by the clock that prices passes."""

    def add(self, outcome: RoundOutcome, step: int, watch: Stopwatch) -> RoundNumbers:
        """Count a round; its figures. `step`: tokens written before it."""
        verdict, (draft, verify) = outcome.verified, watch.seconds[:2]
        figures = RoundNumbers(self.rounds, step, draft, verify, watch.elapsed - draft - verify)
        self.rounds += 1
        self.accepted += len(verdict.path)
        self.examined += len(verdict.path) + (not verdict.is_bonus)
        self.levels += max(outcome.tree.depths)
        self.draft_seconds += draft
        self.verify_seconds += verify
        self.overhead_seconds += figures.overhead_seconds
        self.draft_cost += watch.lap_cost(0)
        return figures

    def write_to_run(self, run: DecodingRun) -> None:
        """Hand the sums to the run."""
        run.counters.drafting = DraftingCounters(
            self.accepted, self.examined, self.draft_seconds, self.verify_seconds, self.overhead_seconds,
            self._predict_speedup(run),
        )  # fmt: skip

    def _predict_speedup(self, run: DecodingRun) -> float | None:
        """The formula, with this run's acceptance, mean draft length and times; None before anything was drafted."""
        cost = remembered_cost(run.model)
        if not self.examined or cost is None:
            return None
        per_token = self.draft_cost / self.levels
        return expected_speedup(
            self.accepted / self.examined, self.levels / self.rounds, per_token / cost.single_pass_seconds
        )


@dataclass(frozen=True, slots=True)
class NodeProbabilities:
    """What the target holds of every node behind its parent, [N]: its probability, and what left it none."""

    probabilities: Sequence[float]
    banned_by: Sequence[str]


def build_round_event(
    outcome: RoundOutcome,
    written: int,
    node_probabilities: NodeProbabilities,
    figures: RoundNumbers,
    pieces: TokenSpellings,
) -> DraftRound:
    """The event. `written`: tokens of path and extra that became text."""
    tree, verdict = outcome.tree, outcome.verified
    path = verdict.path[:written]
    has_extra = written > len(verdict.path)
    kind: ExtraKind = ("bonus" if verdict.is_bonus else "correction") if has_extra else "none"
    return DraftRound(
        round=figures.round, step=figures.step, nodes=_draft_nodes(tree, verdict, path, node_probabilities, pieces),
        accepted=tuple(path), extra_id=verdict.extra_token if has_extra else -1,
        extra_piece=pieces[verdict.extra_token] if has_extra else "", extra_kind=kind,
        draft_seconds=figures.draft_seconds, verify_seconds=figures.verify_seconds,
        overhead_seconds=figures.overhead_seconds, length=outcome.length, choice=outcome.choice,
        pool=outcome.pool, extra_special=verdict.extra_token in pieces.special if has_extra else None,
    )  # fmt: skip


def _draft_nodes(
    tree: DraftTree,
    verdict: VerifiedPath,
    path: list[int],
    node_probabilities: NodeProbabilities,
    pieces: TokenSpellings,
) -> tuple[DraftNode, ...]:
    taken = set(path)
    cut_short = len(path) < len(verdict.path)
    visited = {0, *(path[:-1] if cut_short else path)}
    nodes, shared = [], _shared_proposers(tree)
    for node in range(1, len(tree)):
        reached = tree.parents[node] in visited
        decision = verdict.decisions.get(node) if reached else None
        nodes.append(DraftNode(
            node=node, parent=tree.parents[node], id=tree.ids[node], piece=pieces[tree.ids[node]],
            depth=tree.depths[node], drafter=tree.drafters[node], draft_probability=tree.probabilities[node],
            target_probability=node_probabilities.probabilities[node], cut_by=node_probabilities.banned_by[node],
            fate=_node_fate(node, taken, reached, verdict, decision is not None),
            ratio=decision.ratio if decision else None, die=decision.die if decision else None,
            proposers=shared.get(node, ()), special=tree.ids[node] in pieces.special,
        ))  # fmt: skip
    return tuple(nodes)


def _shared_proposers(tree: DraftTree) -> dict[int, tuple[int, ...]]:
    """Nodes that several drafters proposed → who."""
    found: dict[int, set[int]] = {}
    for trials in tree.trials.values():
        for node, drafter in trials:
            found.setdefault(node, set()).add(drafter)
    return {node: tuple(sorted(who)) for node, who in found.items() if len(who) > 1}


def _node_fate(node: int, taken: set[int], reached: bool, verdict: VerifiedPath, was_tested: bool) -> DraftFate:
    """With dice, a sibling behind the accepted one was never tried."""
    if node in taken:
        return "accepted"
    if not reached or (verdict.decisions and not was_tested):
        return "unreached"
    return "refused"


def find_banning_stages(
    scores: Sequence[torch.Tensor], names: Sequence[str], tree: DraftTree, shares: Sequence[float]
) -> list[str]:
    """The stage that left each node no chance, [N]; empty where it has one. `scores`: [N, V], raw and behind each of
    the stages `names`."""
    found = [""] * len(tree)
    for node in range(1, len(tree)):
        if shares[node] == 0.0:
            parent, token = tree.parents[node], tree.ids[node]
            behind = (
                name for name, score in zip(names, scores[1:], strict=True) if float(score[parent, token]) == -inf
            )
            found[node] = next(behind, "")
    return found


def target_probabilities(scores: torch.Tensor, tree: DraftTree) -> list[float]:
    """The target's processed probability of every node given its parent (1 for the root), [N]; scores [N, V]."""
    if len(tree) == 1:
        return [1.0]
    parents = torch.tensor(tree.parents[1:], device=scores.device)
    tokens = torch.tensor(tree.ids[1:], device=scores.device)
    log_p = torch.log_softmax(scores, -1)[parents, tokens]
    found: list[float] = log_p.exp().tolist()
    return [1.0, *found]
