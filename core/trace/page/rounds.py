"""Rounds of speculation as the page has them: what was drafted, what became of it, and why."""

from __future__ import annotations

from collections.abc import Sequence

from core.events import DraftNode, DraftRound
from core.explain.rounds import explain_draft, explain_extra, explain_round
from core.trace.page.json_values import PageValues, rounded_number, sentence_parts
from core.trace.page.token_texts import TokenTextTable


def round_values(found: Sequence[DraftRound], names: TokenTextTable) -> list[PageValues]:
    """One for each round, in order."""
    return [_draft_round(event, names) for event in found]


def _draft_round(event: DraftRound, names: TokenTextTable) -> PageValues:
    why, extra = explain_round(event), explain_extra(event)
    return {
        "step": event.step,
        "nodes": [_draft_node(node, event, names) for node in event.nodes],
        "accepted": list(event.accepted),
        "extra": event.extra_kind,
        "extraWord": names(event.extra_piece, event.extra_special),
        "extraWhy": sentence_parts(extra, extra.figures),
        "draft": rounded_number(event.draft_seconds),
        "verify": rounded_number(event.verify_seconds),
        "why": sentence_parts(why, why.figures),
    }


def _draft_node(node: DraftNode, event: DraftRound, names: TokenTextTable) -> PageValues:
    why = explain_draft(node, event)
    return {
        "node": node.node,
        "parent": node.parent,
        "id": node.id,
        "word": names(node.piece, node.special),
        "q": rounded_number(node.draft_probability),
        "p": rounded_number(node.target_probability),
        "fate": node.fate,
        "ratio": rounded_number(node.ratio),
        "die": rounded_number(node.die),
        "why": sentence_parts(why, why.figures),
    }
