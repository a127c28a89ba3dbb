"""The beam search loop: each step considers continuations of all beams, keeps some, ends some, and emits an event.

Scores, number of continuations, end conditions and results match transformers' beam search; diverse and constrained
search match its version 4, because version 5 removed them.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch

from decodescope.core.decoding.beams.beam_group import DEAD, BeamGroup, BeamSettings
from decodescope.core.decoding.beams.beam_node import BeamNode, PathDecoder
from decodescope.core.decoding.beams.candidates import (
    BeamScorer,
    CandidateSelector,
    ConstraintMask,
    GroupScores,
    find_candidates,
    select_best,
)
from decodescope.core.decoding.beams.constraint_banks import ConstraintBanks
from decodescope.core.decoding.processor_pipeline import StageHeading
from decodescope.core.decoding.run import DecodingRun
from decodescope.core.decoding.sequences import FinishedSequence
from decodescope.core.decoding.step_stats import compute_step_stats
from decodescope.core.decoding.stopping import StopReason
from decodescope.core.decoding.tensor_utils import argmax
from decodescope.core.errors import ParameterError, StrategyError
from decodescope.core.events import (
    BeamCandidate,
    BeamFunnel,
    BeamsRanked,
    BeamStep,
    Event,
    Hypothesis,
    Overruled,
    SequenceFinished,
)
from decodescope.core.models.text import TokenSpellings
from decodescope.core.system.gpu import upload
from decodescope.resources.language import tr, trn

_NATURAL_ENDS = ("eos", "stop_string")


def to_beam_candidate(node: BeamNode, pieces: TokenSpellings, tokens_met: int) -> BeamCandidate:
    """Convert a node to its event form; `tokens_met` is the number of constraint tokens on its path."""
    assert node.parent is not None
    return BeamCandidate(
        node=node.number, parent=node.parent.number, id=node.token, piece=pieces[node.token],
        probability=node.probability, log_probability=node.log_probability, score=node.score,
        normalized=node.normalized, rank=node.rank, fate=node.fate, group=node.group, diversity_penalty=node.penalty,
        raw_probability=math.exp(node.raw_log_probability), raw_log_probability=node.raw_log_probability,
        raw_rank=node.raw_rank, entropy=node.entropy, progress=tokens_met, text=node.text,
        ended=node.stop.reason if node.stop else None, special=node.token in pieces.special,
    )  # fmt: skip


def overruled_choices(
    masks: Sequence[ConstraintMask], beams: Sequence[BeamNode], pieces: TokenSpellings
) -> list[Overruled]:
    """Return the model's first choices after `beams` that a grammar forbade."""
    return [
        Overruled(
            beam.number,
            one.first_choice,
            pieces[one.first_choice],
            math.exp(one.log_probability),
            one.first_choice in pieces.special,
        )
        for one, beam in zip(masks, beams, strict=True)
        if one.is_overruled
    ]


def beam_funnels(
    trace: Sequence[torch.Tensor], headings: Sequence[StageHeading], parents: Mapping[int, int], top_n: int,
    pieces: TokenSpellings,
) -> list[BeamFunnel]:  # fmt: skip
    """Return the funnel of each beam: what each stage left of the distribution after it.

    `trace`: log-probabilities [m, V] before the stages and after each, with `headings` for the latter; `parents`: the
    number of the node that a row continues, for the rows with candidates. Empty without stages, or if `top_n` is 0.
    """
    if not headings or not top_n or not parents:
        return []
    rows = sorted(parents)
    if len(rows) < len(trace[0]):
        trace = [scores[upload(rows, scores.device, torch.long)] for scores in trace]
    read = compute_step_stats(trace, argmax(trace[-1]), top_n, headings, pieces)
    return [BeamFunnel.of(parents[row], stats.details) for row, stats in zip(rows, read, strict=True)]


def build_ranking(
    nodes: Sequence[BeamNode], texts: Sequence[str], length_penalty: float, diversity_penalty: float
) -> BeamsRanked:
    """Build the ranking event: the hypotheses, best first, with the penalties used for their scores."""
    hypotheses = tuple(
        Hypothesis(
            node=node.number,
            ids=node.ids(),
            text=text,
            log_probability=node.score,
            length=node.length,
            score=node.normalized,
            finished=node.stop is not None and node.stop.reason in _NATURAL_ENDS,
            group=node.group,
        )
        for node, text in zip(nodes, texts, strict=True)
    )
    return BeamsRanked(hypotheses, length_penalty, diversity_penalty)


@dataclass(frozen=True, slots=True)
class BeamPlan:
    """A strategy's configuration: candidate selection, groups, and constraints."""

    selector: CandidateSelector = select_best
    groups: int = 1
    diversity_penalty: float = 0.0
    banks: ConstraintBanks | None = None
    ended_beams_count: bool = False
    """Whether `early_stopping` compares with the best continuation even if it ends here (transformers 4)."""


def decode_beams(run: DecodingRun, plan: BeamPlan) -> Iterator[Event]:
    """Run the search: one event per step, then the ranking and the returned texts.

    Raises ParameterError for invalid settings, StrategyError when no text meets the constraints.
    """
    search = BeamSearch(run, plan)
    beams = int(run.settings.get("num_beams") or 1)
    output, prefilled = run.prefill()
    yield prefilled
    search.begin()
    raw = run.replace_invalid(output.last)
    while True:
        run.counters.check_overdue()
        yield search.step(raw)
        yield from run.finish_step(search.length - 1, beams)
        if search.done or run.is_cancelled():
            break
        raw = run.replace_invalid(search.forward_beams())
    yield from search.finish()


class BeamSearch:
    """State of a running beam search."""

    def __init__(self, run: DecodingRun, plan: BeamPlan) -> None:
        self._run, self._plan = run, plan
        settings = _beam_settings(run, plan)
        self._return_count = int(run.settings.get("num_return_sequences") or 1)
        self._path_decoder = PathDecoder(run.model.tokenizer, run.model.pieces, run.start_ids, run.text.state)
        self._scorer = BeamScorer(run.context, plan.groups, plan.diversity_penalty)
        root = BeamNode(0, None, 0, 0, 0.0, self._path_decoder.start, tail=run.stopping.tail)
        self._groups = [BeamGroup(number, settings, root, plan.banks) for number in range(plan.groups)]
        self._settings = settings
        self._ids = torch.tensor([run.start_ids], device=run.device)
        self._node_count = 0
        self._overruled: list[Overruled] = []
        self._forbidden: list[tuple[int, float]] = []
        """Per beam, the probability that a grammar forbade at this step."""
        self._funnels: list[BeamFunnel] = []
        self._headings = self._scorer.headings
        self._last_scores = torch.empty(0)
        self._clock = time.perf_counter()
        self.length = 0
        """Number of new tokens in every running hypothesis."""

    @property
    def done(self) -> bool:
        """Whether every group has finished."""
        return all(group.done for group in self._groups)

    def begin(self) -> None:
        """Start the clock of the first step. Raises StrategyError for a cache whose rows cannot be reordered."""
        self._clock = time.perf_counter()
        if not self._run.forward.can_reorder:
            raise StrategyError(
                tr("{model} uses its own kind of cache, whose rows cannot be reordered.").format(
                    model=self._run.model.name
                ),
                tr("Choose a strategy that generates one token at a time, or another model."),
            )

    def step(self, raw: torch.Tensor) -> BeamStep:
        """Choose one token for all groups; `raw` are logits [n, V]."""
        self.length += 1
        limit = self._run.stopping.reached_limit(self.length)
        own = torch.log_softmax(raw, -1)
        shared = self._scorer.trace_shared(self._ids, own)
        counts = torch.zeros_like(own[0]) if self._plan.groups > 1 else None
        considered: list[BeamNode] = []
        self._overruled, self._forbidden, self._funnels = [], [], []
        for group in self._groups:
            if not group.done:
                nodes, chosen = self._step_group(group, own, shared, counts, limit)
                considered += nodes
                if counts is not None:
                    tokens = upload(chosen, counts.device, torch.long)  # empty when all beams ended
                    counts.index_add_(0, tokens, counts.new_ones(len(chosen)))
        if not considered and not any(group.hypotheses.items for group in self._groups):
            alive = self._last_scores.masked_fill(self._last_scores <= DEAD, -math.inf)
            self._run.check_scores(alive, raw, self.length - 1)
        event = self._event(considered)
        self._run.counters.set_length(self.length)
        return event

    def _step_group(
        self,
        group: BeamGroup,
        own: torch.Tensor,
        shared: Sequence[torch.Tensor],
        counts: torch.Tensor | None,
        limit: StopReason | None,
    ) -> tuple[list[BeamNode], list[int]]:
        """Return all nodes considered, best first, and the chosen tokens (counted by the diversity penalty).

        `own` [n, V] are the model's log-probabilities, `shared` these and those after each stage that all groups share.
        """
        rows = group.rows
        trace = self._scorer.trace_group(group.number, self._ids[rows], [scores[rows] for scores in shared], counts)
        self._last_scores = scores = trace[-1]
        if self._run.request.top_n:
            if held := self._scorer.constraint_masks(group.number, self._ids[rows], own[rows]):
                self._overruled += overruled_choices(held, group.beams, self._run.model.pieces)
                self._forbidden += [
                    (beam.number, one.removed_probability) for one, beam in zip(held, group.beams, strict=True)
                ]
        view = GroupScores(
            group, scores, own[rows], self.length, self._scorer.diversity_penalties(counts), self._scorer.changes_scores
        )
        try:
            usual, extra = find_candidates(view, self._settings, self._plan.selector, self._plan.banks)
        except FloatingPointError:
            self._run.check_scores(scores, own[rows], self.length - 1)
            raise
        for node in usual + extra:
            self._extend_text(node)
        parents = {node.row - group.start: node.parent.number for node in usual + extra if node.parent is not None}
        self._funnels += beam_funnels(trace, self._headings, parents, self._run.request.top_n, self._run.model.pieces)
        chosen = group.decide_fates(usual, extra, limit)
        nodes = sorted(usual + extra, key=lambda node: -node.score)
        for rank, node in enumerate(nodes, 1):
            self._node_count += 1
            node.rank, node.number = rank, self._node_count
        return nodes, [node.token for node in chosen]

    def _extend_text(self, node: BeamNode) -> None:
        """Set the node's text, whether it ends there, and its constraint progress."""
        stopping, parent = self._run.stopping, node.parent
        assert parent is not None
        node.text, node.text_path = self._path_decoder.push(parent.text_path, node.token)
        node.stop, node.tail = stopping.natural_end(node.token, parent.tail)
        if self._plan.banks is not None:
            self._plan.banks.record_progress(node)

    def _event(self, nodes: Sequence[BeamNode]) -> BeamStep:
        pieces, banks = self._run.model.pieces, self._plan.banks
        shown = nodes if self._run.request.top_n else [node for node in nodes if node.fate != "pruned"]
        leaders = [node for group in self._groups for node in (*group.hypotheses.items[:1], *group.beams)]
        leader = max(leaders, key=lambda node: node.normalized, default=None)
        return BeamStep(
            step=self.length - 1,
            candidates=tuple(to_beam_candidate(node, pieces, banks.tokens_met(node) if banks else 0) for node in shown),
            best=leader.number if leader else 0,
            seconds=time.perf_counter() - self._clock,
            required=banks.constraints.total_tokens if banks else 0,
            length_penalty=self._settings.length_penalty,
            overruled=tuple(self._overruled),
            forbidden=tuple(self._forbidden),
            funnels=tuple(self._funnels),
        )

    def forward_beams(self) -> torch.Tensor:
        """Reorder cache and ids to the kept beams and feed their tokens; return logits [n, V]."""
        self._clock = time.perf_counter()
        running = [node for group in self._groups for node in group.running_beams()]
        rows, before = [node.row for node in running], self._ids.shape[0]
        self._run.forward.select_rows(rows, before)
        device = self._ids.device
        places, tokens = (
            upload(rows, device),
            upload([[node.token] for node in running], device),
        )
        own = [upload([node.row - group.start for node in group.running_beams()], device) for group in self._groups]
        self._scorer.reorder(places, own)
        self._ids = torch.cat([self._ids.index_select(0, places), tokens], 1)
        start = 0
        for group in self._groups:
            start = group.set_start(start)
        return self._run.forward(tokens).last

    def finish(self) -> Iterator[Event]:
        """Emit the ranking and one SequenceFinished per returned text, best first."""
        run, nodes = self._run, self._ranked_nodes()
        texts = [node.decoded_text() + self._path_decoder.flush(node.text_path) for node in nodes]
        if nodes:
            run.counters.set_length(nodes[0].length)
        yield run.measure_cache(self.length)
        yield build_ranking(nodes, texts, self._settings.length_penalty, self._plan.diversity_penalty)
        for number, node in enumerate(nodes[: self._return_count]):
            stop = node.stop or StopReason("stopped")
            stop = run.apply_grammar(stop, node.ids()) or stop
            tail = self._path_decoder.flush(node.text_path)
            yield SequenceFinished(number, stop.reason, stop.string, stop.limit, tail, stop.whole)
            run.results.append(FinishedSequence(node.ids(), texts[number], node.normalized, number))

    def _ranked_nodes(self) -> list[BeamNode]:
        """Return finished hypotheses of all groups, best first; after a stop also the running ones."""
        nodes = [node for group in self._groups for node in group.hypotheses.items]
        if self._run.stopped or not nodes:
            nodes += [node for group in self._groups for node in group.unfinished(self._run.stopped)]
        if not nodes:
            raise StrategyError(
                trn(
                    "No beam met all constraints within {length:,} token.",
                    "No beam met all constraints within {length:,} tokens.",
                    self.length,
                ).format(length=self.length),
                tr("Allow more new tokens or more beams, or relax the constraints."),
            )
        return sorted(nodes, key=lambda node: -node.normalized)


def _beam_settings(run: DecodingRun, plan: BeamPlan) -> BeamSettings:
    beams, returned = run.beams, int(run.settings.get("num_return_sequences") or 1)
    if returned > beams:
        raise ParameterError(
            tr("{beams} beams cannot return {returned} sequences.").format(returned=returned, beams=beams),
            tr("Use at least as many beams as sequences."),
            "num_return_sequences",
        )
    if beams % plan.groups:
        raise ParameterError(
            tr("{beams} beams cannot be divided evenly into {groups} groups.").format(beams=beams, groups=plan.groups),
            tr("Make the number of beams a multiple of the number of groups."),
            "num_beam_groups",
        )
    width = beams // plan.groups
    return BeamSettings(
        width=width,
        candidate_count=max(2, 1 + len(run.stopping.eos)) * width,
        early_stopping=run.settings.get("early_stopping") or False,
        length_penalty=float(run.settings["length_penalty"]),
        max_length=run.stopping.max_new,
        ended_beams_count=plan.ended_beams_count,
    )
