"""Explain in one or two sentences why beam search kept or dropped a continuation, with the numbers of its step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from decodescope.core.explain.sentence import Sentence, SentenceTemplate, together
from decodescope.core.explain.words import decimal, ending, format_score, ordinal, quote, share
from decodescope.resources.language import mark

if TYPE_CHECKING:
    from decodescope.core.events import BeamCandidate, BeamStep, Overruled

_RANK = SentenceTemplate(
    mark("The {ordinal} of {count} ways to go on:"),
    mark("{ordinal} of {count} continuations:"),
    mark("Rank {rank} of {count} with a score of {score}:"),
)
_RANK_WITHOUT_COUNT = SentenceTemplate(
    mark("The {ordinal} way to go on:"), mark("{ordinal}:"), mark("Rank {rank} with a score of {score}:")
)
_FOR_OTHERS = SentenceTemplate(
    mark("it is followed because better ones ended or lacked more of what the text must contain."),
    mark("kept because better ones ended or contained less of the required text."),
    mark("kept beyond rank {beams} because better ones ended or satisfied fewer constraint tokens."),
)
_AMONG_BEST = SentenceTemplate(
    mark("one of the best {beams}, so it is followed."),
    mark("among the best {beams}, so it stays."),
    mark("kept because rank {rank} ≤ {beams}."),
)
_BEST = SentenceTemplate(
    mark("the best, so it is followed."), mark("the best, so it stays."), mark("kept because rank 1 ≤ 1.")
)
_FINISHED = SentenceTemplate(
    mark("complete. {ending}."),
    mark("finished. {ending}, with a final score of {final}."),
    mark("finished. {ending}, with a score of {score} ÷ {length}^{penalty} = {final}."),
)
_STOPPED = SentenceTemplate(
    mark("it could continue, but the search ended: no better text was expected."),
    mark("it could continue, but the search ended: no better text was expected."),
    mark("it could continue, but the search ended early: no running path was expected to beat the finished ones."),
)
_ONLY_BEST = SentenceTemplate(
    mark("only the best one is followed."), mark("only the best one stays."), mark("dropped because only rank 1 stays.")
)
_ONLY_BEST_FEW = SentenceTemplate(
    mark("only the best {beams} are followed."),
    mark("only the best {beams} stay."),
    mark("dropped because only {beams} stay."),
)
_OTHERS_MET_MORE = SentenceTemplate(
    mark("Others contained more of the required text."),
    mark("Others contained more of the required text."),
    mark("Others had satisfied more constraint tokens; this one has {progress}."),
)
_BELOW = SentenceTemplate(
    mark("The last one kept is better."),
    mark("Its score is {gap} below that of the last one kept."),
    mark("The last one kept has {worst}, {gap} more."),
)
_LATE_END = SentenceTemplate(
    mark("dropped. {ending}, and only one among the best {beams} may end here."),
    mark("dropped. {ending}, and only one among the best {beams} of a step may end."),
    mark("dropped. {ending}, at rank {rank} > {beams}, where no hypothesis may end."),
)
_LATE_END_OF_ONE = SentenceTemplate(
    mark("dropped. {ending}, and only the best one may end here."),
    mark("dropped. {ending}, and only one among the best {beams} of a step may end."),
    mark("dropped. {ending}, at rank {rank} > {beams}, where no hypothesis may end."),
)
_WORSE_END = SentenceTemplate(
    mark("dropped. {ending}, but better texts had already ended, or it lacks required text."),
    mark("dropped. {ending}, but better texts had already ended, or it lacks required text."),
    mark("dropped. {ending}, but better hypotheses had already ended, or it lacks constraint tokens; its "
        "final score is {final}."),
)  # fmt: skip
_DIVERSITY = SentenceTemplate(
    mark("Other groups chose the same here, which lowers its score."),
    mark("Earlier groups chose the same token, which lowered its score by {penalty}."),
    mark("Earlier groups chose the same token: the diversity penalty lowered its ln p by {penalty}."),
)

_OVERRULED = SentenceTemplate(
    mark("The model preferred {other} ({raw}), but the grammar forbids it here."),
    mark("The model preferred {other} ({raw}); the grammar forbade it."),
    mark("After this beam {other} has raw rank 1 with p = {raw}; stage grammar set its logit to −∞."),
)


def explain_candidate(candidate: BeamCandidate, step: BeamStep, num_beams: int) -> Sentence:
    """Explain why a node of the tree was kept or dropped, at the current level of detail and language.

    `step` is the step it was considered in, `num_beams` how many may stay (of its group, in diverse search).
    """
    facts = _facts(candidate, step, num_beams)
    verdict = _EXPLAINERS[candidate.fate](candidate, step, num_beams, facts)
    return together(
        _rank_phrase(candidate, step, facts),
        verdict,
        _explain_diversity(candidate),
        _explain_overruled(candidate, step),
    )


def worst_kept_score(candidate: BeamCandidate, step: BeamStep) -> float | None:
    """Return the score of the worst continuation kept in the group of `candidate`; None if none was kept."""
    group = _summary_of(step).groups.get(candidate.group)
    return group.worst_kept if group is not None else None


@dataclass(slots=True)
class _GroupSummary:
    """Values shared by all candidates of one group."""

    count: int = 0
    has_pruned: bool = False
    worst_kept: float | None = None


class _StepSummary:
    """Values shared by all candidates of one step, computed once."""

    def __init__(self, step: BeamStep) -> None:
        self.step = step
        self.groups: dict[int, _GroupSummary] = {}
        self.overruled: dict[int, Overruled] = {}
        for item in step.candidates:
            group = self.groups.setdefault(item.group, _GroupSummary())
            group.count += 1
            group.has_pruned |= item.fate == "pruned"
            if item.fate in ("kept", "early_stopped"):
                group.worst_kept = item.score if group.worst_kept is None else min(group.worst_kept, item.score)
        for wish in step.overruled:
            self.overruled.setdefault(wish.parent, wish)


_latest: list[_StepSummary] = []
"""Summary of the step explained last; a list, so that a thread replaces it atomically."""


def _summary_of(step: BeamStep) -> _StepSummary:
    for summary in _latest:
        if summary.step is step:
            return summary
    summary = _StepSummary(step)
    _latest[:] = [summary]
    return summary


def _facts(candidate: BeamCandidate, step: BeamStep, beams: int) -> dict[str, str]:
    return {
        "ordinal": ordinal(candidate.rank),
        "rank": f"{candidate.rank}",
        "beams": f"{beams}",
        "score": format_score(candidate.score),
        "final": format_score(candidate.normalized),
        "length": f"{step.step + 1}",
        "penalty": decimal(step.length_penalty, 1) if step.length_penalty % 1 else f"{step.length_penalty:.0f}",
        "ending": ending(candidate.ended),
        "progress": f"{candidate.progress}",
    }


def _rank_phrase(candidate: BeamCandidate, step: BeamStep, facts: dict[str, str]) -> Sentence:
    """Return the candidate's rank; the number of candidates is known only if the pruned ones were recorded."""
    group = _summary_of(step).groups.get(candidate.group)
    if group is not None and group.has_pruned:
        return _RANK.say(**facts, count=f"{group.count}")
    return _RANK_WITHOUT_COUNT.say(**facts)


def _explain_kept(candidate: BeamCandidate, step: BeamStep, beams: int, facts: dict[str, str]) -> Sentence:
    if candidate.rank > beams:
        return _FOR_OTHERS.words(**facts)
    return (_AMONG_BEST if beams > 1 else _BEST).words(**facts)


def _explain_finished(candidate: BeamCandidate, step: BeamStep, beams: int, facts: dict[str, str]) -> Sentence:
    return _FINISHED.words(**facts)


def _explain_stopped(candidate: BeamCandidate, step: BeamStep, beams: int, facts: dict[str, str]) -> Sentence:
    return _STOPPED.words(**facts)


def _explain_pruned(candidate: BeamCandidate, step: BeamStep, beams: int, facts: dict[str, str]) -> Sentence:
    if candidate.ended:
        return _explain_pruned_end(candidate, beams, facts)
    worst = worst_kept_score(candidate, step)
    only = (_ONLY_BEST if beams == 1 else _ONLY_BEST_FEW).words(**facts)
    if worst is None:
        return only
    if candidate.score > worst:
        return together(only, _OTHERS_MET_MORE.say(**facts))
    return together(only, _BELOW.say(gap=format_score(worst - candidate.score), worst=format_score(worst)))


def _explain_pruned_end(candidate: BeamCandidate, beams: int, facts: dict[str, str]) -> Sentence:
    if candidate.rank > beams:
        return (_LATE_END if beams > 1 else _LATE_END_OF_ONE).words(**facts)
    return _WORSE_END.words(**facts)


def _explain_diversity(candidate: BeamCandidate) -> Sentence:
    if not candidate.diversity_penalty:
        return Sentence()
    return _DIVERSITY.say(penalty=f"{candidate.diversity_penalty:g}")


def _explain_overruled(candidate: BeamCandidate, step: BeamStep) -> Sentence:
    """Name the model's first choice after the same beam if a grammar forbade it."""
    wish = _summary_of(step).overruled.get(candidate.parent)
    return (
        _OVERRULED.say(other=quote(wish.piece, wish.special), raw=share(wish.raw_probability)) if wish else Sentence()
    )


_EXPLAINERS = {
    "kept": _explain_kept,
    "finished": _explain_finished,
    "early_stopped": _explain_stopped,
    "pruned": _explain_pruned,
}
