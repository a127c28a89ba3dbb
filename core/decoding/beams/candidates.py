"""From scores to nodes: the continuations that a group considers in one step, with their statistics."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import NamedTuple, Protocol

import torch

from decodescope.core.decoding.beams.beam_group import DEAD, BeamGroup, BeamSettings, length_factor
from decodescope.core.decoding.beams.beam_node import BeamNode
from decodescope.core.decoding.beams.constraint_banks import ConstraintBanks
from decodescope.core.decoding.processor_pipeline import ActiveStage, StageHeading, build_pipeline
from decodescope.core.processors.base import Context
from decodescope.core.system.gpu import upload
from decodescope.resources.language import tr


class CandidateSelector(Protocol):
    """Select `count` continuations from the scores [n · V] of all beams, as (scores, indices), each [count]."""

    def __call__(
        self, flat_scores: torch.Tensor, count: int, vocabulary_size: int
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Select from `flat_scores` [n · V]; `vocabulary_size` is n · V when all beams are alive."""


def select_best(flat_scores: torch.Tensor, count: int, vocabulary_size: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the highest scores, best first."""
    top = flat_scores.topk(min(count, flat_scores.shape[0]))
    return top.values, top.indices


class SamplingSelector:
    """Sample without replacement from softmax(scores), sorted by score; the order decides which candidates may end a
    text.

    `generate` sorts since 5.24; earlier releases keep the order of sampling, so that other candidates end. Every
    probability is divided by its own exponential variate and the largest quotients win, which is sampling without
    replacement (Efraimidis and Spirakis 2006) and equals torch.multinomial, draw for draw, without its limit of 2^24
    categories.
    """

    def __init__(self, generator: torch.Generator) -> None:
        self._generator = generator

    def __call__(
        self, flat_scores: torch.Tensor, count: int, vocabulary_size: int
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return scores and indices of the sampled candidates; if fewer are possible, the rest have a score of -inf."""
        if flat_scores.shape[0] < vocabulary_size:
            flat_scores = torch.nn.functional.pad(
                flat_scores, (0, vocabulary_size - flat_scores.shape[0]), value=-math.inf
            )
        probabilities = torch.softmax(flat_scores, -1)
        race = torch.empty_like(probabilities).exponential_(generator=self._generator)
        places = (probabilities / race).topk(min(count, flat_scores.shape[0])).indices
        drawn = flat_scores[places].masked_fill(probabilities[places] == 0, -math.inf)
        scores, order = drawn.sort(descending=True, stable=True)
        return scores, places[order]


@dataclass(frozen=True, slots=True)
class GroupScores:
    """Scores of one group at a step."""

    group: BeamGroup
    scores: torch.Tensor
    """Processed log-probabilities [m, V]."""
    raw_log_probabilities: torch.Tensor
    """The model's own, [m, V]."""
    length: int
    """New tokens, including the one chosen at this step."""
    penalties: torch.Tensor | None
    """Diversity penalty of each token, [V]; None without groups."""
    is_processed: bool
    """Whether the scores may no longer be normalized."""


def find_candidates(
    group_scores: GroupScores, settings: BeamSettings, select: CandidateSelector, banks: ConstraintBanks | None
) -> tuple[list[BeamNode], list[BeamNode]]:
    """Return the selected continuations and those added by the constraints, without banned ones.

    Raises FloatingPointError when a score is NaN.
    """
    group, vocabulary = group_scores.group, group_scores.scores.shape[-1]
    running = upload([beam.score for beam in group.beams], group_scores.scores.device)
    total = group_scores.scores + running[:, None]
    if banks is not None:
        total = banks.mask(total, group.beams)
    flat = total.reshape(-1)
    found = _build_nodes(group_scores, settings, *select(flat, settings.candidate_count, settings.width * vocabulary))
    if banks is None:
        return found, []
    more = banks.extra_continuations(total, group.beams, {(node.row - group.start, node.token) for node in found})
    where = upload([row * vocabulary + token for row, token in more], flat.device, torch.long)
    return found, _build_nodes(group_scores, settings, flat[where], where) if more else []


def _build_nodes(
    group_scores: GroupScores, settings: BeamSettings, values: torch.Tensor, indices: torch.Tensor
) -> list[BeamNode]:
    """Build nodes of continuations from their total scores `values` and their indices `indices` into the flattened [m ·
    V].
    """
    group, nodes = group_scores.group, list[BeamNode]()
    for score, beam, token, log_p, share, normalized, penalty, *raw in candidate_columns(
        group_scores, settings, values, indices
    ):
        if score != score:
            raise FloatingPointError(tr("a beam's score is not a number"))
        if score <= DEAD:
            continue
        row = int(beam)
        parent = group.beams[row]
        nodes.append(
            BeamNode(
                int(token), parent, group.start + row, group_scores.length, score, parent.text_path,
                normalized=normalized, log_probability=log_p, probability=share, group=group.number, penalty=penalty,
                raw_log_probability=raw[0], raw_rank=int(raw[1]), entropy=raw[2],
            )
        )  # fmt: skip
    return nodes


def candidate_columns(
    group_scores: GroupScores, settings: BeamSettings, values: torch.Tensor, indices: torch.Tensor
) -> Sequence[tuple[float, ...]]:  # fmt: skip
    """Return per candidate (score, row, token, log-probability, probability, normalized score, penalty, and from the
    model alone log-probability, rank, entropy), in one transfer to the host.
    """
    scores, vocabulary = group_scores.scores, group_scores.scores.shape[-1]
    rows = (indices // vocabulary).clamp(max=len(scores) - 1)
    log_p = scores.reshape(-1)[indices.clamp(max=scores.numel() - 1)]
    share = log_p
    if group_scores.is_processed:
        share = log_p - scores.logsumexp(-1)[rows]
    normalized = values / length_factor(group_scores.length, settings.length_penalty)
    penalty = (
        torch.zeros_like(values) if group_scores.penalties is None else group_scores.penalties[indices % vocabulary]
    )
    # Rows and tokens are exact in float32, and MPS has nothing wider; indices of many beams are not.
    columns = (
        values,
        indices // vocabulary,
        indices % vocabulary,
        log_p,
        share.exp(),
        normalized,
        penalty,
        *_raw_columns(group_scores.raw_log_probabilities, rows, indices),
    )
    figures: list[tuple[float, ...]] = torch.stack([column.float() for column in columns], 1).tolist()
    return figures


def _raw_columns(raw: torch.Tensor, rows: torch.Tensor, indices: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Return log-probability, rank (from 1, among all tokens) and entropy in nats from the model alone, each [c]."""
    log_p = raw[rows, indices % raw.shape[-1]]
    rank = (raw[rows] > log_p[:, None]).sum(-1) + 1
    return log_p, rank, torch.special.entr(raw.exp()).sum(-1)[rows]


class ConstraintMask(NamedTuple):
    """Effect of a grammar on the next token of one beam."""

    is_overruled: bool
    """Whether the model's first choice is forbidden."""
    first_choice: int
    log_probability: float
    """Log-probability of that first choice from the model alone."""
    removed_probability: float
    """Fraction of the model's own probability that is forbidden."""


class BeamScorer:
    """The pipeline of a beam search: stages shared by all beams, then the diversity penalty, then stages for each
    group.
    """

    def __init__(self, context: Context, groups: int, penalty: float) -> None:
        self._penalty = penalty
        stages = build_pipeline(context).stages
        cut = len(stages)
        if groups > 1:
            cut = len(list(takewhile(lambda stage: stage.processor.before_diversity, stages)))
        self._shared_stages = stages[:cut]
        # Some processors keep state per row, so each group gets its own instances.
        self._group_stages = [build_pipeline(context).stages[cut:] for _ in range(groups)] if groups > 1 else [[]]
        self._grammar_stages = [
            next((stage for stage in [*self._shared_stages, *own] if stage.processor.progress is not None), None)
            for own in self._group_stages
        ]

    @property
    def changes_scores(self) -> bool:
        """Whether any stage or diversity penalty changes log-probabilities."""
        return bool(self._shared_stages or self._group_stages[0] or len(self._group_stages) > 1)

    @property
    def headings(self) -> list[StageHeading]:
        """The headings of what `trace_shared` and `trace_group` together return, without the first."""
        penalty = [_penalty_heading(self._penalty)] if self._penalizes else []
        return [
            *(stage.heading for stage in self._shared_stages),
            *penalty,
            *(stage.heading for stage in self._group_stages[0]),
        ]

    @property
    def _penalizes(self) -> bool:
        return len(self._group_stages) > 1 and bool(self._penalty)

    def trace_shared(self, ids: torch.Tensor, log_probabilities: torch.Tensor) -> list[torch.Tensor]:
        """Return the scores [n, V] of all beams before the shared stages and after each; `ids` [n, T]."""
        return _trace_stages(self._shared_stages, ids, log_probabilities)

    def trace_group(
        self, group: int, ids: torch.Tensor, shared: Sequence[torch.Tensor], counts: torch.Tensor | None
    ) -> list[torch.Tensor]:
        """Continue the trace `shared`, each [m, V], by the penalty and the group's stages; `counts` [V] is how often
        earlier groups chose each token at this step.
        """
        before = [*shared]
        if counts is not None and self._penalizes:
            before.append(before[-1] - self._penalty * counts)
        return [*before[:-1], *_trace_stages(self._group_stages[group], ids, before[-1])]

    def constraint_masks(self, group: int, ids: torch.Tensor, log_probabilities: torch.Tensor) -> list[ConstraintMask]:
        """Return the grammar's effect on each row; empty without a grammar.

        `log_probabilities` [m, V] are the model's log-probabilities. The grammar has already processed these texts at
        this step and reuses its result.
        """
        form = self._grammar_stages[group]
        if form is None:
            return []
        best, left = log_probabilities.max(-1), form.process(ids, log_probabilities)
        gone = left.gather(-1, best.indices[:, None])[:, 0].isneginf() & best.values.isfinite()
        removed = log_probabilities.masked_fill(left.isfinite(), -float("inf")).exp().sum(-1)
        figures = (gone, best.indices, best.values, removed)
        return [ConstraintMask(*row) for row in zip(*(figure.tolist() for figure in figures), strict=True)]

    def diversity_penalties(self, counts: torch.Tensor | None) -> torch.Tensor | None:
        """Return the diversity penalty of each token, [V], or None without groups."""
        return None if counts is None else self._penalty * counts

    def reorder(self, rows: torch.Tensor, group_rows: Sequence[torch.Tensor]) -> None:
        """Reorder processor state: row i was row `rows[i]`; `group_rows` are the same within each group."""
        _reorder_stages(self._shared_stages, rows)
        for stages, own in zip(self._group_stages, group_rows, strict=True):
            _reorder_stages(stages, own)


def _penalty_heading(penalty: float) -> StageHeading:
    label, phrase = (
        text.format(v=f"{penalty:g}") for text in (tr("diversity {v}"), tr("the diversity penalty of {v}"))
    )
    return StageHeading("diversity_penalty", label, penalty, "shift", phrase)


def _trace_stages(stages: Sequence[ActiveStage], ids: torch.Tensor, scores: torch.Tensor) -> list[torch.Tensor]:
    found = [scores]
    for stage in stages:
        found.append(stage.process(ids, found[-1]))
    return found


def _reorder_stages(stages: Sequence[ActiveStage], rows: torch.Tensor) -> None:
    """Reorder the state of processors that keep one."""
    for stage in stages:
        if stage.processor.reorder_rows is not None:
            stage.processor.reorder_rows(stage.process, rows)
