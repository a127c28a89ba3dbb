"""Rounds of speculation as the page has them: what was drafted, what became of it, and why."""

from __future__ import annotations

from collections.abc import Sequence

from core.events import DraftNode, DraftRound
from core.explain.rounds import explain_draft, explain_extra, explain_round
from core.trace.page.json_values import Plain, number, parts
from core.trace.page.token_texts import TokenTexts


def rounds(found: Sequence[DraftRound], names: TokenTexts) -> list[Plain]:
    """One for each round, in order."""
    return [_round(event, names) for event in found]


def _round(event: DraftRound, names: TokenTexts) -> Plain:
    why, extra = explain_round(event), explain_extra(event)
    return {
        "step": event.step,
        "nodes": [_node(node, event, names) for node in event.nodes],
        "accepted": list(event.accepted),
        "extra": event.extra_kind,
        "extraWord": names(event.extra_piece, event.extra_special),
        "extraWhy": parts(extra, extra.figures),
        "draft": number(event.draft_seconds),
        "verify": number(event.verify_seconds),
        "why": parts(why, why.figures),
    }


def _node(node: DraftNode, event: DraftRound, names: TokenTexts) -> Plain:
    why = explain_draft(node, event)
    return {
        "node": node.node,
        "parent": node.parent,
        "id": node.id,
        "word": names(node.piece, node.special),
        "q": number(node.draft_probability),
        "p": number(node.target_probability),
        "fate": node.fate,
        "ratio": number(node.ratio),
        "die": number(node.die),
        "why": parts(why, why.figures),
    }
