"""A beam search as the page has it: every continuation that was considered, step by step, and the final ranking."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from core.events import BeamCandidate, BeamsRanked, BeamStep, Hypothesis
from core.explain.beams import explain_candidate
from core.explain.words import visible
from core.trace.page.json_values import Plain, number, parts
from core.trace.page.token_texts import TokenTexts


def beams(steps: Sequence[BeamStep], ranking: BeamsRanked | None, names: TokenTexts) -> Plain | None:
    """None where nothing was searched."""
    if not steps:
        return None
    width = max(_kept_per_group(step) for step in steps)
    return {
        "width": width,
        "penalty": number(steps[-1].length_penalty),
        "steps": [_step(step, width, names) for step in steps],
        "ranking": [_hypothesis(item) for item in ranking.hypotheses] if ranking else [],
    }


def _kept_per_group(step: BeamStep) -> int:
    """How many stay: of a group, in diverse search."""
    kept = Counter(candidate.group for candidate in step.candidates if candidate.fate in ("kept", "early_stopped"))
    return max(kept.values(), default=0)


def _step(step: BeamStep, width: int, names: TokenTexts) -> Plain:
    return {
        "best": step.best,
        "seconds": number(step.seconds),
        "nodes": [_node(candidate, step, width, names) for candidate in step.candidates],
    }


def _node(candidate: BeamCandidate, step: BeamStep, width: int, names: TokenTexts) -> Plain:
    why = explain_candidate(candidate, step, width)
    return {
        "node": candidate.node,
        "parent": candidate.parent,
        "id": candidate.id,
        "word": names(candidate.piece, candidate.special),
        "text": visible(candidate.text),
        "final": number(candidate.probability),
        "raw": number(candidate.raw_probability),
        "log": number(candidate.raw_log_probability),
        "logp": number(candidate.log_probability),
        "score": number(candidate.score),
        "normalized": number(candidate.normalized),
        "rank": candidate.raw_rank,
        "place": candidate.rank,
        "entropy": number(candidate.entropy),
        "fate": candidate.fate,
        "group": candidate.group,
        "special": candidate.ended == "eos",
        "why": parts(why, why.figures),
    }


def _hypothesis(item: Hypothesis) -> Plain:
    return {
        "node": item.node,
        "text": visible(item.text),
        "score": number(item.score),
        "length": item.length,
        "finished": item.finished,
    }
