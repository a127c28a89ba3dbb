"""Events of speculation rounds, and their totals for a run's metrics."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf

import torch

from decodescope.core.decoding.run import DecodingRun
from decodescope.core.decoding.sequences import DraftingCounters
from decodescope.core.decoding.speculation.auto_length import expected_speedup
from decodescope.core.decoding.speculation.tree import DraftTree
from decodescope.core.decoding.speculation.tree_passes import remembered_cost
from decodescope.core.decoding.speculation.verification import VerifiedPath
from decodescope.core.events import DrafterChoice, DraftFate, DraftNode, DraftRound, ExtraKind, NgramPool
from decodescope.core.models.text import TokenSpellings
from decodescope.core.system.gpu import upload


class Stopwatch:
    """Lap times of a round in wall-clock seconds, scaled by another clock.

    With `uses_wall_clock` the target waits for the disk, which a thread's CPU time excludes, so wall-clock time counts.
    Reading the thread's clock is a system call: it is read only at the start and by `finish`, and each lap gets its
    proportional part.
    """

    def __init__(self, clock: Callable[[], float], uses_wall_clock: bool = False) -> None:
        self._clock, self._uses_wall_clock = clock, uses_wall_clock
        self._clock_start = clock()
        self._started = self._lap_start = time.perf_counter()
        self.seconds: list[float] = []
        self.clock_ratio = 1.0
        """Ratio of the pricing clock's time to wall-clock time."""

    def lap(self) -> None:
        """End a part of the round: draft, verification or overhead."""
        wall = time.perf_counter()
        self.seconds.append(wall - self._lap_start)
        self._lap_start = wall

    def finish(self) -> None:
        """Compute the clock ratio after the last lap."""
        wall = self._lap_start - self._started
        if wall > 0 and not self._uses_wall_clock:
            self.clock_ratio = (self._clock() - self._clock_start) / wall

    def lap_cost(self, lap: int) -> float:
        """Return a lap's seconds by the pricing clock."""
        return self.seconds[lap] * self.clock_ratio

    @property
    def elapsed(self) -> float:
        """Wall-clock seconds since the start."""
        return time.perf_counter() - self._started


@dataclass(frozen=True, slots=True)
class RoundOutcome:
    """A round's tree and verified path, the requested draft length, the drafter choice, and the n-gram pool of
    lookahead.
    """

    tree: DraftTree
    verified: VerifiedPath
    length: int
    choice: DrafterChoice | None = None
    pool: NgramPool | None = None


@dataclass(frozen=True, slots=True)
class RoundNumbers:
    """Counters and times of a round."""

    round: int
    step: int
    draft_seconds: float
    verify_seconds: float
    overhead_seconds: float


@dataclass(frozen=True, slots=True)
class ForcedPositions:
    """Positions of a round at which a token was written by force."""

    accepted: int = 0
    examined: int = 0


@dataclass(slots=True)
class RoundTotals:
    """Totals over the rounds."""

    rounds: int = 0
    accepted: int = 0
    examined: int = 0
    levels: int = 0
    """Sum of the draft depths."""
    draft_seconds: float = 0.0
    verify_seconds: float = 0.0
    overhead_seconds: float = 0.0
    draft_cost: float = 0.0
    """Draft time by the clock used for pass costs."""

    def add(self, outcome: RoundOutcome, step: int, stopwatch: Stopwatch, forced: ForcedPositions) -> RoundNumbers:
        """Count a round without its `forced` positions and return its numbers. `step`: tokens written before it."""
        verdict, (draft, verify) = outcome.verified, stopwatch.seconds[:2]
        figures = RoundNumbers(self.rounds, step, draft, verify, stopwatch.elapsed - draft - verify)
        self.rounds += 1
        self.accepted += len(verdict.path) - forced.accepted
        self.examined += len(verdict.path) + (not verdict.is_bonus) - forced.examined
        self.levels += max(outcome.tree.depths)
        self.draft_seconds += draft
        self.verify_seconds += verify
        self.overhead_seconds += figures.overhead_seconds
        self.draft_cost += stopwatch.lap_cost(0)
        return figures

    def write_to_run(self, run: DecodingRun) -> None:
        """Write the totals to the run's counters."""
        run.counters.drafting = DraftingCounters(
            self.accepted, self.examined, self.draft_seconds, self.verify_seconds, self.overhead_seconds,
            self._predict_speedup(run),
        )  # fmt: skip

    def _predict_speedup(self, run: DecodingRun) -> float | None:
        """Return the predicted speedup from this run's acceptance, mean draft length and times; None before anything
        was drafted.
        """
        cost = remembered_cost(run.model)
        if not self.examined or cost is None:
            return None
        per_token = self.draft_cost / self.levels
        return expected_speedup(
            self.accepted / self.examined, self.levels / self.rounds, per_token / cost.single_pass_seconds
        )


@dataclass(frozen=True, slots=True)
class NodeProbabilities:
    """The target's view of every node after its parent, [N]: its probability, and the stage that banned it."""

    probabilities: Sequence[float]
    banned_by: Sequence[str]


def build_round_event(
    outcome: RoundOutcome,
    written_count: int,
    node_probabilities: NodeProbabilities,
    figures: RoundNumbers,
    pieces: TokenSpellings,
) -> DraftRound:
    """Build the event of a round. `written_count`: number of tokens of path and extra that became text."""
    tree, verdict = outcome.tree, outcome.verified
    path = verdict.path[:written_count]
    has_extra = written_count > len(verdict.path)
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
            ratio=decision.ratio if decision else None, die=decision.random_number if decision else None,
            proposers=shared.get(node, ()), special=tree.ids[node] in pieces.special,
        ))  # fmt: skip
    return tuple(nodes)


def _shared_proposers(tree: DraftTree) -> dict[int, tuple[int, ...]]:
    """Return the drafters of nodes that several drafters proposed."""
    found: dict[int, set[int]] = {}
    for trials in tree.trials.values():
        for node, drafter in trials:
            found.setdefault(node, set()).add(drafter)
    return {node: tuple(sorted(who)) for node, who in found.items() if len(who) > 1}


def _node_fate(
    node: int, accepted_nodes: set[int], reached: bool, verdict: VerifiedPath, was_tested: bool
) -> DraftFate:
    """Return a node's fate; with sampling, siblings after the accepted one were never tried."""
    if node in accepted_nodes:
        return "accepted"
    if not reached or (verdict.decisions and not was_tested):
        return "unreached"
    return "refused"


def find_banning_stages(
    scores: Sequence[torch.Tensor], names: Sequence[str], tree: DraftTree, shares: Sequence[float]
) -> list[str]:
    """Return the stage that banned each node, [N]; empty if none did.

    `scores`: [N, V], raw and after each of the stages `names`.
    """
    found = [""] * len(tree)
    for node in range(1, len(tree)):
        if shares[node] == 0.0:
            parent, token = tree.parents[node], tree.ids[node]
            banning_stages = (
                name for name, score in zip(names, scores[1:], strict=True) if float(score[parent, token]) == -inf
            )
            found[node] = next(banning_stages, "")
    return found


def target_probabilities(scores: torch.Tensor, tree: DraftTree) -> list[float]:
    """Return the target's processed probability of every node given its parent (1 for the root), [N]; scores [N, V]."""
    if len(tree) == 1:
        return [1.0]
    found: list[float] = node_probabilities(scores, tree).tolist()
    return [1.0, *found]


def node_probabilities(scores: torch.Tensor, tree: DraftTree) -> torch.Tensor:
    """Return the same for all nodes but the root, as a tensor [N - 1]."""
    parents = upload(tree.parents[1:], scores.device)
    tokens = upload(tree.ids[1:], scores.device)
    return torch.log_softmax(scores, -1)[parents, tokens].exp()
