"""From scores to nodes: the continuations that a group looks at in one step, and what is known of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from core.decoding.beams.beam_group import DEAD, BeamGroup, BeamSettings
from core.decoding.beams.beam_node import BeamNode
from core.decoding.beams.candidate_selection import CandidateSelector
from core.decoding.beams.constraint_banks import ConstraintBanks
from core.decoding.beams.hypotheses import length_factor
from resources.language import tr


@dataclass(frozen=True, slots=True)
class GroupScores:
    """One group's scores at a step."""

    group: BeamGroup
    scores: torch.Tensor
    """Processed log-probabilities [m, V]."""
    raw_log_probabilities: torch.Tensor
    """The model's own, [m, V]."""
    length: int
    """New tokens with the one that is chosen now."""
    penalties: torch.Tensor | None
    """What diversity took off each token, [V]; None without groups."""
    is_processed: bool
    """Whether the scores may no longer be a distribution."""


def find_candidates(
    group_scores: GroupScores, settings: BeamSettings, select: CandidateSelector, banks: ConstraintBanks | None
) -> tuple[list[BeamNode], list[BeamNode]]:
    """The continuations found by the selector, and those the constraints add; dead ones left out.

    Raises FloatingPointError when a score is no number.
    """
    group, vocabulary = group_scores.group, group_scores.scores.shape[-1]
    running = torch.tensor([beam.score for beam in group.beams], device=group_scores.scores.device)
    total = group_scores.scores + running[:, None]
    if banks is not None:
        total = banks.mask(total, group.beams)
    flat = total.reshape(-1)
    found = _build_nodes(group_scores, settings, *select(flat, settings.candidate_count, settings.width * vocabulary))
    if banks is None:
        return found, []
    more = banks.extra_continuations(total, group.beams, {(node.row - group.start, node.token) for node in found})
    where = torch.tensor([row * vocabulary + token for row, token in more], dtype=torch.long, device=flat.device)
    return found, _build_nodes(group_scores, settings, flat[where], where) if more else []


def _build_nodes(
    group_scores: GroupScores, settings: BeamSettings, values: torch.Tensor, indices: torch.Tensor
) -> list[BeamNode]:
    """Nodes of continuations: `values` their total scores, `indices` into the flattened [m · V]."""
    group, vocabulary, nodes = group_scores.group, group_scores.scores.shape[-1], []
    for score, place, log_p, share, normalized, penalty, *raw in _candidate_columns(
        group_scores, settings, values, indices
    ):
        if score != score:
            raise FloatingPointError(tr("a beam's score is not a number"))
        if score <= DEAD:
            continue
        beam, token = divmod(int(place), vocabulary)
        parent = group.beams[beam]
        nodes.append(
            BeamNode(
                token, parent, group.start + beam, group_scores.length, score, parent.text_path, normalized=normalized,
                log_probability=log_p, probability=share, group=group.number, penalty=penalty,
                raw_log_probability=raw[0], raw_rank=int(raw[1]), entropy=raw[2],
            )
        )  # fmt: skip
    return nodes


def _candidate_columns(
    group_scores: GroupScores, settings: BeamSettings, values: torch.Tensor, indices: torch.Tensor
) -> Sequence[tuple[float, ...]]:  # fmt: skip
    """(score, place, log-probability, probability, normalised score, penalty, and by the model alone log-probability,
    rank, entropy) of each, in one transfer to the host."""
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
    columns = (
        values,
        indices,
        log_p,
        share.exp(),
        normalized,
        penalty,
        *_raw_columns(group_scores.raw_log_probabilities, rows, indices),
    )
    figures: list[tuple[float, ...]] = torch.stack([column.double() for column in columns], 1).tolist()
    return figures


def _raw_columns(raw: torch.Tensor, rows: torch.Tensor, indices: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Log-probability, rank from 1 among all tokens, and entropy in nats by the model alone, each [c]."""
    log_p = raw[rows, indices % raw.shape[-1]]
    rank = (raw[rows] > log_p[:, None]).sum(-1) + 1
    return log_p, rank, torch.special.entr(raw.exp()).sum(-1)[rows]
