"""From scores to nodes: the continuations that a group looks at in one step, and what is known of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from core.decoding.beams.beam_group import DEAD, BeamGroup, BeamSettings
from core.decoding.beams.beam_node import BeamNode
from core.decoding.beams.candidate_selection import Selector
from core.decoding.beams.constraint_banks import ConstraintBanks
from core.decoding.beams.hypotheses import length_factor
from resources.language import tr


@dataclass(frozen=True, slots=True)
class GroupScores:
    """One group's scores at a step."""

    group: BeamGroup
    scores: torch.Tensor
    """Processed log-probabilities [m, V]."""
    raw: torch.Tensor
    """The model's own, [m, V]."""
    length: int
    """New tokens with the one that is chosen now."""
    penalties: torch.Tensor | None
    """What diversity took off each token, [V]; None without groups."""
    processed: bool
    """Whether the scores may no longer be a distribution."""


def look(
    view: GroupScores, settings: BeamSettings, select: Selector, banks: ConstraintBanks | None
) -> tuple[list[BeamNode], list[BeamNode]]:
    """The continuations found by the selector, and those the constraints add; dead ones left out.

    Raises FloatingPointError when a score is no number.
    """
    group, vocabulary = view.group, view.scores.shape[-1]
    running = torch.tensor([beam.score for beam in group.beams], device=view.scores.device)
    total = view.scores + running[:, None]
    if banks is not None:
        total = banks.mask(total, group.beams)
    flat = total.reshape(-1)
    found = _nodes(view, settings, *select(flat, settings.considered, settings.width * vocabulary))
    if banks is None:
        return found, []
    more = banks.extra(total, group.beams, {(node.row - group.start, node.token) for node in found})
    where = torch.tensor([row * vocabulary + token for row, token in more], dtype=torch.long, device=flat.device)
    return found, _nodes(view, settings, flat[where], where) if more else []


def _nodes(view: GroupScores, settings: BeamSettings, values: torch.Tensor, places: torch.Tensor) -> list[BeamNode]:
    """Nodes of continuations: `values` their total scores, `places` into the flattened [m · V]."""
    group, vocabulary, nodes = view.group, view.scores.shape[-1], []
    for score, place, log_p, share, normalized, penalty, *raw in _figures(view, settings, values, places):
        if score != score:
            raise FloatingPointError(tr("a beam's score is not a number"))
        if score <= DEAD:
            continue
        beam, token = divmod(int(place), vocabulary)
        parent = group.beams[beam]
        nodes.append(
            BeamNode(
                token, parent, group.start + beam, view.length, score, parent.path, normalized=normalized,
                log_probability=log_p, probability=share, group=group.number, penalty=penalty,
                raw_log_probability=raw[0], raw_rank=int(raw[1]), entropy=raw[2],
            )
        )  # fmt: skip
    return nodes


def _figures(
    view: GroupScores, settings: BeamSettings, values: torch.Tensor, places: torch.Tensor
) -> Sequence[tuple[float, ...]]:  # fmt: skip
    """(score, place, log-probability, probability, normalised score, penalty, and by the model alone log-probability,
    rank, entropy) of each, in one transfer to the host."""
    scores, vocabulary = view.scores, view.scores.shape[-1]
    rows = (places // vocabulary).clamp(max=len(scores) - 1)
    log_p = scores.reshape(-1)[places.clamp(max=scores.numel() - 1)]
    share = log_p
    if view.processed:
        share = log_p - scores.logsumexp(-1)[rows]
    normalized = values / length_factor(view.length, settings.length_penalty)
    penalty = torch.zeros_like(values) if view.penalties is None else view.penalties[places % vocabulary]
    columns = (values, places, log_p, share.exp(), normalized, penalty, *_raw_figures(view.raw, rows, places))
    figures: list[tuple[float, ...]] = torch.stack([column.double() for column in columns], 1).tolist()
    return figures


def _raw_figures(raw: torch.Tensor, rows: torch.Tensor, places: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Log-probability, rank from 1 among all tokens, and entropy in nats by the model alone, each [c]."""
    log_p = raw[rows, places % raw.shape[-1]]
    rank = (raw[rows] > log_p[:, None]).sum(-1) + 1
    return log_p, rank, torch.special.entr(raw.exp()).sum(-1)[rows]
