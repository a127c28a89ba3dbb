"""Page data of a beam search: every continuation considered, step by step, and the final ranking."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from decodescope.core.events import BeamCandidate, BeamsRanked, BeamStep, DraftNode, DraftRound, Hypothesis, Stage
from decodescope.core.explain.beams import explain_candidate
from decodescope.core.explain.draft_rounds import explain_draft, explain_extra, explain_round
from decodescope.core.explain.words import visible
from decodescope.core.trace.page.json_values import (
    PageValues,
    StageTable,
    TokenTextTable,
    rounded_number,
    sentence_parts,
)


def beam_values(
    steps: Sequence[BeamStep], ranking: BeamsRanked | None, names: TokenTextTable, stages: StageTable
) -> PageValues | None:
    """Return the data of a beam search; None without one."""
    if not steps:
        return None
    width = max(_kept_per_group(step) for step in steps)
    return {
        "width": width,
        "penalty": rounded_number(steps[-1].length_penalty),
        "steps": [_beam_step(step, width, names, stages) for step in steps],
        "ranking": [_beam_hypothesis(item) for item in ranking.hypotheses] if ranking else [],
    }


def with_node_columns(run: PageValues) -> PageValues:
    """Return the data of a page with the nodes of each beam step by property, which compresses better."""
    beams = run["beams"]
    if not isinstance(beams, dict):
        return run
    steps = [{**step, "nodes": _columns(step["nodes"])} for step in beams["steps"]]
    return {**run, "beams": {**beams, "steps": steps}}


def _columns(nodes: Sequence[PageValues]) -> PageValues:
    return {name: [node[name] for node in nodes] for name in (nodes[0] if nodes else ())}


def _kept_per_group(step: BeamStep) -> int:
    """Return how many continuations are kept per step (per group, in diverse search)."""
    group_counts = Counter(
        candidate.group for candidate in step.candidates if candidate.fate in ("kept", "early_stopped")
    )
    return max(group_counts.values(), default=0)


def _beam_step(step: BeamStep, width: int, names: TokenTextTable, stages: StageTable) -> PageValues:
    found: PageValues = {
        "best": step.best,
        "seconds": rounded_number(step.seconds),
        "nodes": [_beam_node(candidate, step, width, names) for candidate in step.candidates],
    }
    if step.funnels:
        found["funnels"] = {str(one.parent): funnel_values(one.stages, stages) for one in step.funnels}
    return found


def funnel_values(funnel: Sequence[Stage], stages: StageTable) -> list[object]:
    """Return [stage, survivors, mass, raw mass] for each stage of a funnel."""
    return [[stages(one), one.survivors, rounded_number(one.mass), rounded_number(one.raw_mass)] for one in funnel]


def _beam_node(candidate: BeamCandidate, step: BeamStep, width: int, names: TokenTextTable) -> PageValues:
    why = explain_candidate(candidate, step, width)
    return {
        "node": candidate.node,
        "parent": candidate.parent,
        "id": candidate.id,
        "word": names(candidate.piece, candidate.special),
        "text": visible(candidate.text),
        "final": rounded_number(candidate.probability),
        "raw": rounded_number(candidate.raw_probability),
        "log": rounded_number(candidate.raw_log_probability),
        "logp": rounded_number(candidate.log_probability),
        "score": rounded_number(candidate.score),
        "normalized": rounded_number(candidate.normalized),
        "rank": candidate.raw_rank,
        "place": candidate.rank,
        "entropy": rounded_number(candidate.entropy),
        "fate": candidate.fate,
        "group": candidate.group,
        "special": candidate.ended == "eos",
        "why": sentence_parts(why, why.figures),
    }


def _beam_hypothesis(item: Hypothesis) -> PageValues:
    return {
        "node": item.node,
        "text": visible(item.text),
        "score": rounded_number(item.score),
        "length": item.length,
        "finished": item.finished,
    }


def round_values(rounds: Sequence[DraftRound], names: TokenTextTable) -> list[PageValues]:
    """Return the data of each round, in order."""
    return [_draft_round(event, names) for event in rounds]


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
