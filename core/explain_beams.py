"""Why a continuation lived or died in a beam search, in plain sentences made of the step's own figures."""

from __future__ import annotations

from collections.abc import Sequence

from core.events import BeamCandidate, BeamStep
from core.explain import ordinal, percent

LIKELY = 0.5
"""A token at least that probable is told to have been let down by the text before it."""
_ENDINGS = {
    "eos": "The text ends here by itself",
    "stop_string": "A stop text ends it here",
    "length": "The limit of new tokens ends it here",
    "context": "The end of the model's context ends it here",
    "time": "The time limit ends it here",
}


def explain_node(candidate: BeamCandidate, step: BeamStep, num_beams: int) -> str:
    """Plain words for a continuation's fate; `num_beams` are those of its group (of all, where there are none)."""
    rivals = [other for other in step.candidates if other.group == candidate.group]
    tell = {"pruned": _pruned, "finished": _finished, "early_stopped": _early_stopped}.get(candidate.fate, _kept)
    return f"{tell(candidate, rivals, num_beams)} {_diversity(candidate, rivals)}".strip()


def _place(candidate: BeamCandidate, rivals: Sequence[BeamCandidate]) -> str:
    if len(rivals) == 1:
        return "The only continuation"
    return f"{_capital(ordinal(candidate.rank))} of {len(rivals)} continuations"


def _stay(beams: int) -> str:
    return "only the best one stays" if beams == 1 else f"only the best {beams} stay"


def _pruned(candidate: BeamCandidate, rivals: Sequence[BeamCandidate], beams: int) -> str:
    place = _place(candidate, rivals)
    if candidate.ended and candidate.rank <= beams:
        return f"{place}. {_ending(candidate)}, but texts that ended before it have better scores."
    if candidate.ended:
        return f"{place}. {_ending(candidate)}, but only a text among the best {beams} may end."
    gap = _gap(candidate, rivals)
    if gap is None:
        return f"{place}: {_stay(beams)}."
    if gap < 0:
        return f"{place}, yet pruned: others with lower scores had met more of the constraints."
    return f"{place}: {_stay(beams)}. It trailed the last survivor by {gap:.2f}.{_blame(candidate)}"


def _gap(candidate: BeamCandidate, rivals: Sequence[BeamCandidate]) -> float | None:
    """How far it lies behind the last one that went on; negative when that one was no better."""
    survivors = [other.score for other in rivals if other.fate in ("kept", "early_stopped")]
    return min(survivors) - candidate.score if survivors else None


def _blame(candidate: BeamCandidate) -> str:
    if candidate.probability < LIKELY or candidate.log_probability == candidate.score:
        return ""
    return f" Its own token was likely ({percent(candidate.probability)}); the text before it had lost too much."


def _kept(candidate: BeamCandidate, rivals: Sequence[BeamCandidate], beams: int) -> str:
    place = _place(candidate, rivals)
    better = [other for other in rivals if other.rank < candidate.rank]
    if any(other.fate == "pruned" and not other.ended for other in better):
        return f"{place} by score, yet kept: it had met {_tokens(candidate.progress)} of the constraints."
    ended = sum(1 for other in better if other.ended)
    if candidate.rank > beams and ended:
        return f"{place}: kept, for {_count(ended)} before it ended and needed no beam any more."
    first_out = max((o.score for o in rivals if o.fate == "pruned" and not o.ended), default=None)
    if first_out is None:
        return f"{place}: it went on."
    return f"{place}: the best {beams} stay. It led the first one left out by {candidate.score - first_out:.2f}."


def _finished(candidate: BeamCandidate, rivals: Sequence[BeamCandidate], beams: int) -> str:
    score = f"{candidate.normalized:.2f}".replace("-", "−")
    return f"{_place(candidate, rivals)}. {_ending(candidate)}, and with a score of {score} it is among the results."


def _early_stopped(candidate: BeamCandidate, rivals: Sequence[BeamCandidate], beams: int) -> str:
    return f"{_place(candidate, rivals)}: it would have gone on, but the search ended with this step."


def _diversity(candidate: BeamCandidate, rivals: Sequence[BeamCandidate]) -> str:
    if not candidate.diversity_penalty:
        return ""
    words = f"An earlier group had chosen this token, which cost it {candidate.diversity_penalty:.2f}"
    gap = _gap(candidate, rivals)
    saved = candidate.fate == "pruned" and gap is not None and 0 <= gap < candidate.diversity_penalty
    return f"{words}; without that it would have stayed." if saved else f"{words}."


def _ending(candidate: BeamCandidate) -> str:
    return _ENDINGS.get(candidate.ended, "The text ends here")


def _tokens(count: int) -> str:
    return "1 token" if count == 1 else f"{count:,} tokens"


def _count(number: int) -> str:
    return "one" if number == 1 else f"{number:,}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
