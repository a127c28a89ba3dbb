"""What a beam search says of itself: the step as an event, and the final ranking."""

from __future__ import annotations

import math
from collections.abc import Sequence

from core.decoding.beams.beam_node import BeamNode
from core.decoding.beams.beam_scoring import ConstraintMask
from core.events import BeamCandidate, BeamsRanked, Hypothesis, Overruled
from core.models.text import TokenSpellings

_NATURAL_ENDS = ("eos", "stop_string")


def to_beam_candidate(node: BeamNode, pieces: TokenSpellings, tokens_met: int) -> BeamCandidate:
    """A node as plain figures."""
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
    """First choices that a grammar forbade behind `beams`."""
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


def build_ranking(
    nodes: Sequence[BeamNode], texts: Sequence[str], length_penalty: float, diversity_penalty: float
) -> BeamsRanked:
    """The hypotheses, best first, and what their scores were made with."""
    hypotheses = tuple(
        Hypothesis(
            node=node.number, ids=node.ids(), text=text, log_probability=node.score, length=node.length,
            score=node.normalized, finished=node.stop is not None and node.stop.reason in _NATURAL_ENDS, group=node.group,
        )
        for node, text in zip(nodes, texts, strict=True)
    )  # fmt: skip
    return BeamsRanked(hypotheses, length_penalty, diversity_penalty)
