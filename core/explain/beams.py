"""Why a continuation lived or died, in one or two plain sentences made of the step's own figures."""

from __future__ import annotations

from core.events import BeamCandidate, BeamStep, Ending

_ENDINGS: dict[Ending, str] = {
    "eos": "The text ends here by itself",
    "stop_string": "The text ends here, at a stop text",
    "length": "The limit ends the text here",
    "context": "The end of the model's context ends the text here",
    "time": "The time limit ends the text here",
    "stopped": "The text was stopped here",
}


def explain_node(candidate: BeamCandidate, step: BeamStep, kept_worst: float | None, num_beams: int) -> str:
    """Plain words for a node of the tree.

    `step` is the step it was considered in, `kept_worst` the score of the worst continuation that was kept there (of
    its group, in diverse search; None when none was), `num_beams` how many may stay (of its group).
    """
    place = _place(candidate, step)
    tell = _TELLERS.get(candidate.fate, _pruned)
    return f"{place} {tell(candidate, kept_worst, num_beams)}{_diversity(candidate)}".strip()


def worst_kept(candidate: BeamCandidate, step: BeamStep) -> float | None:
    """Score of the worst continuation kept beside `candidate` (in its group); None when none was."""
    kept = [item.score for item in _group(candidate, step) if item.fate in ("kept", "early_stopped")]
    return min(kept, default=None)


def _group(candidate: BeamCandidate, step: BeamStep) -> list[BeamCandidate]:
    return [item for item in step.candidates if item.group == candidate.group]


def _place(candidate: BeamCandidate, step: BeamStep) -> str:
    return f"{_ordinal(candidate.rank)} of {len(_group(candidate, step))} continuations:"


def _kept(candidate: BeamCandidate, worst: float | None, beams: int) -> str:
    if candidate.rank > beams:
        return "kept, for better ones ended or had met less of what the text must contain."
    return f"among the best {beams}, so it stays." if beams > 1 else "the best, so it stays."


def _finished(candidate: BeamCandidate, worst: float | None, beams: int) -> str:
    ending = _ENDINGS[candidate.ended] if candidate.ended else "The text ends here"
    return f"finished. {ending}, with a final score of {candidate.normalized:.2f}."


def _stopped(candidate: BeamCandidate, worst: float | None, beams: int) -> str:
    return "it could have gone on, but the search ended: no better text was to be expected."


def _pruned(candidate: BeamCandidate, worst: float | None, beams: int) -> str:
    if candidate.ended:
        return _pruned_end(candidate, beams)
    only = "only the best one stays." if beams == 1 else f"only the best {beams} stay."
    if worst is None or candidate.score > worst:
        return f"{only} Others had met more of what the text must contain." if worst is not None else only
    return f"{only} It trailed the last survivor by {worst - candidate.score:.2f}."


def _pruned_end(candidate: BeamCandidate, beams: int) -> str:
    ending = _ENDINGS[candidate.ended] if candidate.ended else "The text ends here"
    if candidate.rank > beams:
        return f"dropped. {ending}, and only one among the best {beams} of a step may end."
    return f"dropped. {ending}, but better texts had ended already, or it lacks what the text must contain."


def _diversity(candidate: BeamCandidate) -> str:
    if not candidate.diversity_penalty:
        return ""
    return f" Earlier groups chose the same token, which cost it {candidate.diversity_penalty:g}."


def _ordinal(number: int) -> str:
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


_TELLERS = {"kept": _kept, "finished": _finished, "early_stopped": _stopped, "pruned": _pruned}
