"""Beam search as a tree: candidates, the leader at every step, and the competing hypotheses. No Qt in here."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from decodescope import core
from decodescope.app.state.sequences import LIMITS, RunSequence, SequenceStatus

if TYPE_CHECKING:
    from decodescope.core.events import Alternative, BeamCandidate, BeamsRanked, BeamStep, Hypothesis, TokenChosen


LIVE_FATES = ("kept", "finished", "early_stopped")
"""Fates of candidates that were not pruned."""


class HypothesisRow(NamedTuple):
    """A row of the hypothesis table next to the tree."""

    node: int
    text: str
    score: float
    length: int
    group: int
    state: SequenceStatus


class BeamTree:
    """Steps of one run, appended as they arrive. `count` in the methods is the number of steps shown."""

    def __init__(self) -> None:
        self.steps: list[BeamStep] = []
        self.ranking: BeamsRanked | None = None
        self.width = 0
        """Beams per group."""
        self.progress = 0
        """Largest number of constraint tokens met by any node."""
        self._nodes: dict[int, tuple[BeamCandidate, int]] = {}
        self._finished: list[tuple[int, BeamCandidate]] = []
        self._texts: dict[int, str] = {0: ""}
        """Texts of the live nodes; those of finished nodes are in `_finished_texts`."""
        self._finished_texts: dict[int, str] = {}
        self._leader_changes: list[tuple[int, int]] = []
        self._tokens: dict[tuple[int, int], TokenChosen] = {}
        self._node_by_token: dict[int, int] = {}
        self._best_per_step: list[TokenChosen] = []

    def append(self, event: BeamStep | BeamsRanked) -> None:
        """Add a step, or the final ranking."""
        if isinstance(event, core.events.BeamsRanked):
            self.ranking = event
            return
        before = self.leader(len(self.steps))
        for candidate in event.candidates:
            self._nodes[candidate.node] = (candidate, len(self.steps))
        self.steps.append(event)
        self._update_summaries(event)
        self._best_per_step += [self._token(candidate.node, 0) for candidate in _best_continuation(event)]
        place = self._divergence(before, self.leader(len(self.steps)))
        if place is not None:
            self._leader_changes.append((len(self.steps), place))

    def _divergence(self, before: int, after: int) -> int | None:
        """Return the index at which the paths of two nodes differ; None, without walking the paths, if one only extends
        the other.
        """
        if before == after or (after in self._nodes and self._nodes[after][0].parent == before):
            return None
        return divergence_index(self.path(before), self.path(after))

    def _update_summaries(self, step: BeamStep) -> None:
        """Update the summaries that would otherwise be recomputed at every step."""
        self.width = max(self.width, _kept_per_group(step))
        self.progress = max([self.progress, *(candidate.progress for candidate in step.candidates)])
        before, live = self._texts, [c for c in step.candidates if c.fate in LIVE_FATES]
        self._texts = {c.node: before.get(c.parent, "") + c.text for c in live}
        for candidate in step.candidates:
            if candidate.fate == "finished":
                self._finished.append((len(self.steps), candidate))
                self._finished_texts[candidate.node] = self._texts[candidate.node]

    def __contains__(self, node: int) -> bool:
        return node in self._nodes

    @property
    def groups(self) -> int:
        """Number of groups of diverse beam search; 1 for all other searches."""
        return 1 + max((c.group for step in self.steps[:1] for c in step.candidates), default=0)

    def candidate(self, node: int) -> BeamCandidate:
        """Return a node of the tree.

        Raises KeyError for the prompt (0) and for unknown nodes.
        """
        return self._nodes[node][0]

    def step_of(self, node: int) -> BeamStep:
        """Return the step that considered this node."""
        return self.steps[self._nodes[node][1]]

    def node_of(self, token: TokenChosen) -> int:
        """Return the node of a token created by `tokens`; 0 for any other token."""
        return self._node_by_token.get(id(token), 0)

    def path(self, node: int) -> list[BeamCandidate]:
        """Return the path from the first new token to `node`; empty for the prompt."""
        path: list[BeamCandidate] = []
        while node in self._nodes:
            path.append(self._nodes[node][0])
            node = path[-1].parent
        return path[::-1]

    def text(self, node: int) -> str:
        """Return the text of the path to `node`; texts of the newest nodes are cached."""
        known = self._texts.get(node)
        if known is None:
            known = self._finished_texts.get(node)
        if known is not None:
            return known
        return "".join(candidate.text for candidate in self.path(node))

    # Leader

    def leader(self, count: int) -> int:
        """Return the node of the leading hypothesis after `count` steps; 0 before the first step."""
        count = min(count, len(self.steps))
        if count == len(self.steps) and self.ranking is not None and self.ranking.hypotheses:
            return self.ranking.hypotheses[0].node
        return self.steps[count - 1].best if count > 0 else 0

    def leading_path(self, count: int) -> list[BeamCandidate]:
        """Return the path of the best hypothesis so far."""
        return self.path(self.leader(count))

    def leader_changes(self, count: int) -> list[int]:
        """Return the sorted indices in the text at which the leader had changed up to then."""
        return sorted({place for step, place in self._leader_changes if step <= count})

    # The table

    def hypotheses(self, count: int) -> list[HypothesisRow]:
        """Return the competing hypotheses after `count` steps, the best first; after the last step, the final
        ranking.
        """
        count = min(count, len(self.steps))
        if count == len(self.steps) and self.ranking is not None:
            return [self._ranked(hypothesis) for hypothesis in self.ranking.hypotheses]
        if count == 0:
            return []
        live = [c for c in self.steps[count - 1].candidates if c.fate == "kept"]
        ended = [candidate for step, candidate in self._finished if step <= count]
        rows = [self._row(candidate) for candidate in [*live, *_best_finished(ended, self.width)]]
        return sorted(rows, key=lambda row: -row.score)

    def _row(self, candidate: BeamCandidate) -> HypothesisRow:
        length = self._nodes[candidate.node][1] + 1
        state: SequenceStatus = "running" if candidate.fate == "kept" else _ending(candidate)
        return HypothesisRow(
            candidate.node, self.text(candidate.node), candidate.normalized, length, candidate.group, state
        )

    def _ranked(self, hypothesis: Hypothesis) -> HypothesisRow:
        known = hypothesis.node in self._nodes
        state = _ending(self.candidate(hypothesis.node)) if known else "finished"
        state = "finished" if hypothesis.finished else "stopped" if state == "finished" else state
        return HypothesisRow(
            hypothesis.node, hypothesis.text, hypothesis.score, hypothesis.length, hypothesis.group, state
        )

    # Tokens, for views that show one text

    def tokens(self, node: int, sequence: int = 0) -> list[TokenChosen]:
        """Return the path to `node` as tokens of a text; a node always has the same token object."""
        return [self._token(candidate.node, sequence) for candidate in self.path(node)]

    @property
    def best_per_step(self) -> list[TokenChosen]:
        """One token per step: the best continuation kept at that step, whether or not it leads in the end."""
        return self._best_per_step

    def _token(self, node: int, sequence: int) -> TokenChosen:
        key = (node, sequence)
        if key not in self._tokens:
            candidate, place = self._nodes[node]
            token = self._tokens[key] = _to_token(candidate, self.steps[place], place, sequence)
            self._node_by_token[id(token)] = node
        return self._tokens[key]


def update_from_beams(beams: BeamTree, step: int, sequences: Sequence[RunSequence]) -> None:
    """Set `sequences` to the hypotheses of a beam search after that many steps, the leader first."""
    leader, rows = beams.leader(step), beams.hypotheses(step)
    nodes = [leader, *(row.node for row in rows if row.node != leader)]
    for number, sequence in enumerate(sequences):
        sequence.tokens = beams.tokens(nodes[number], number) if number < len(nodes) else []


def divergence_index(before: Sequence[BeamCandidate], after: Sequence[BeamCandidate]) -> int | None:
    """Return the index at which another text differs from the leading one; None if it only extends it (or there was
    none).
    """
    for place, (old, new) in enumerate(zip(before, after, strict=False)):
        if old.node != new.node:
            return place
    return len(after) if len(after) < len(before) else None


def _best_finished(finished: Sequence[BeamCandidate], width: int) -> list[BeamCandidate]:
    """Return as many of the best finished candidates of each group as a group keeps."""
    best: dict[int, list[BeamCandidate]] = {}
    for candidate in sorted(finished, key=lambda candidate: -candidate.normalized):
        best.setdefault(candidate.group, []).append(candidate)
    return [candidate for some in best.values() for candidate in some[:width]]


def _best_continuation(step: BeamStep) -> list[BeamCandidate]:
    """Return the best continuation of a step as a list; empty if nothing was considered."""
    live = [candidate for candidate in step.candidates if candidate.fate in LIVE_FATES] or list(step.candidates)
    return sorted(live, key=lambda candidate: -candidate.normalized)[:1]


def _kept_per_group(step: BeamStep) -> int:
    counts: dict[int, int] = {}
    for candidate in step.candidates:
        if candidate.fate in ("kept", "early_stopped"):
            counts[candidate.group] = counts.get(candidate.group, 0) + 1
    return max(counts.values(), default=0)


def _ending(candidate: BeamCandidate) -> SequenceStatus:
    """Return how a hypothesis that is no longer running ended."""
    if candidate.fate == "early_stopped":
        return "stopped"
    return "cut" if candidate.ended in LIMITS else "finished"


def _to_token(candidate: BeamCandidate, step: BeamStep, index: int, sequence: int) -> TokenChosen:
    """Convert a candidate to a token; its alternatives are the other continuations of the same parent."""
    siblings = sorted((c for c in step.candidates if c.parent == candidate.parent), key=lambda c: c.raw_rank)
    return core.events.TokenChosen(
        step=index, sequence=sequence, id=candidate.id, piece=candidate.piece, text=candidate.text,
        raw_probability=candidate.raw_probability, probability=candidate.probability,
        raw_log_probability=candidate.raw_log_probability, log_probability=_log(candidate.probability),
        rank=candidate.raw_rank, entropy=candidate.entropy, seconds=step.seconds,
        alternatives=tuple(map(_alternative, siblings)), method="beam",
        special=bool(candidate.special) or candidate.ended == "eos",
        funnel=next((one.stages for one in step.funnels if one.parent == candidate.parent), ()),
    )  # fmt: skip


def _alternative(candidate: BeamCandidate) -> Alternative:
    return core.events.Alternative(
        candidate.id, candidate.piece, candidate.raw_probability, candidate.probability,
        candidate.raw_log_probability, _log(candidate.probability), candidate.raw_rank, special=candidate.special,
    )  # fmt: skip


def _log(probability: float) -> float:
    return math.log(probability) if probability > 0 else -math.inf
