"""Why a continuation lived or died, in one or two plain sentences made of the step's own figures."""

from __future__ import annotations

from core.events import BeamCandidate, BeamStep
from core.explain.sentence import Sentence, say, together
from core.explain.words import ENDINGS, decimal, ordinal


def explain_candidate(candidate: BeamCandidate, step: BeamStep, num_beams: int) -> Sentence:
    """Plain words for a node of the tree.

    `step` is the step it was considered in, `num_beams` how many may stay (of its group, in diverse search).
    """
    verdict = _TELLERS[candidate.fate](candidate, step, num_beams)
    return together(say("{} {}", _place(candidate, step), verdict), _diversity(candidate))


def worst_kept(candidate: BeamCandidate, step: BeamStep) -> float | None:
    """Score of the worst continuation kept beside `candidate` (in its group); None when none was."""
    kept = [item.score for item in _group(candidate, step) if item.fate in ("kept", "early_stopped")]
    return min(kept, default=None)


def _group(candidate: BeamCandidate, step: BeamStep) -> list[BeamCandidate]:
    return [item for item in step.candidates if item.group == candidate.group]


def _place(candidate: BeamCandidate, step: BeamStep) -> str:
    """Its rank; among how many is known only where the pruned ones were recorded."""
    group = _group(candidate, step)
    of = f" of {len(group)} continuations" if any(item.fate == "pruned" for item in group) else ""
    return f"{ordinal(candidate.rank)}{of}:"


def _kept(candidate: BeamCandidate, step: BeamStep, beams: int) -> str:
    if candidate.rank > beams:
        return "kept, for better ones ended or had met less of what the text must contain."
    return f"among the best {beams}, so it stays." if beams > 1 else "the best, so it stays."


def _ending(candidate: BeamCandidate) -> str:
    return ENDINGS[candidate.ended].sentence if candidate.ended else "The text ends here"


def _finished(candidate: BeamCandidate, step: BeamStep, beams: int) -> str:
    return f"finished. {_ending(candidate)}, with a final score of {decimal(candidate.normalized)}."


def _stopped(candidate: BeamCandidate, step: BeamStep, beams: int) -> str:
    return "it could have gone on, but the search ended: no better text was to be expected."


def _pruned(candidate: BeamCandidate, step: BeamStep, beams: int) -> str:
    if candidate.ended:
        return _pruned_end(candidate, beams)
    worst = worst_kept(candidate, step)
    only = "only the best one stays." if beams == 1 else f"only the best {beams} stay."
    if worst is None:
        return only
    if candidate.score > worst:
        return f"{only} Others had met more of what the text must contain."
    return f"{only} Its score is {decimal(worst - candidate.score)} below that of the last one that stayed."


def _pruned_end(candidate: BeamCandidate, beams: int) -> str:
    if candidate.rank > beams:
        return f"dropped. {_ending(candidate)}, and only one among the best {beams} of a step may end."
    return f"dropped. {_ending(candidate)}, but better texts had ended already, or it lacks what the text must contain."


def _diversity(candidate: BeamCandidate) -> str:
    if not candidate.diversity_penalty:
        return ""
    return f"Earlier groups chose the same token, which took {candidate.diversity_penalty:g} off its score."


_TELLERS = {"kept": _kept, "finished": _finished, "early_stopped": _stopped, "pruned": _pruned}
