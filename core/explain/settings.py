"""What the settings did at a step: what they forbade or put ahead, what they changed most, what they cut."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from core.explain.number_formats import format_full, format_share_pair, share
from core.explain.sentence import Saying, Sentence, SentenceNumber
from core.explain.stages import stage_name
from core.explain.words import quote, quote_both
from resources.language import mark, tr

if TYPE_CHECKING:
    from core.events import Alternative, Stage, TokenChosen

_NOTABLE_FACTOR = 1.5
"""A share that a setting made so many times greater or smaller is worth a sentence, …"""
_NEGLIGIBLE = 0.01
"""… unless it was and is less than this."""

_ALL_FORBIDDEN = Saying(
    mark("{stage} forbids all the {count} the model likes best here."),
    mark("{stage} forbade the model's {count} likeliest tokens here."),
    mark("Stage {stage} set the logits of raw ranks 1 … {last} to −∞."),
)
_ALL_CUT = Saying(
    mark("{stage} took away all the {count} the model likes best here."),
    mark("{stage} left out the model's {count} likeliest tokens here."),
    mark("Stage {stage} cut raw ranks 1 … {last}."),
)
_FIRST_FORBIDDEN = Saying(
    mark("The model liked {other} best, but {stage} forbids it here."),
    mark("{other} was the model's first choice, but {stage} forbids it here."),
    mark("{other} has raw rank 1 with p = {raw}; stage {stage} set its logit to −∞."),
)
_FIRST_CUT = Saying(
    mark("The model liked {other} best, but {stage} took it away."),
    mark("{other} was the model's first choice, but {stage} left it out."),
    mark("{other} has raw rank 1 with p = {raw}; stage {stage} cut it."),
)
_ONE_FORBIDDEN = Saying(
    mark("{stage} forbids {other}, which the model liked better."),
    mark("{stage} forbade {other}, which was likelier by the model alone."),
    mark("Stage {stage} set the logit of {other} to −∞, which has raw rank {rank} with p = {raw}."),
)
_ONE_CUT = Saying(
    mark("{stage} took away {other}, which the model liked better."),
    mark("{stage} left out {other}, which was likelier by the model alone."),
    mark("Stage {stage} cut {other}, which has raw rank {rank} with p = {raw}."),
)
_NOT_IN_GRAMMAR = Saying(
    mark("The model wanted {other} ({raw}), but the grammar forbids it here."),
    mark("The model wanted {other} ({raw}); the grammar forbade it."),
    mark(
        "{other} has raw rank 1 with p = {raw}; stage grammar set its logit to −∞, and {removed} of the mass with it."
    ),
)
_AHEAD = Saying(
    mark("The model liked {other} best, but {stage} put {name} before it."),
    mark("{other} was the model's first choice, but {stage} put {name} ahead of it."),
    mark("{other} has raw rank 1 with p = {raw}; behind stage {stage} it trails {name}, and ends with p = {final}."),
)
_RAISED = Saying(
    mark("{stage} made {name} likelier: from {old} to {new}."),
    mark("{stage} raised {name} from {old} to {new}."),
    mark("Stage {stage}: p of {name} {old} → {new}, × {factor}."),
)
_LOWERED = Saying(
    mark("{stage} made {name} less likely: from {old} to {new}."),
    mark("{stage} lowered {name} from {old} to {new}."),
    mark("Stage {stage}: p of {name} {old} → {new}, × {factor}."),
)
_KEPT = Saying(
    mark("{stage} left {kept} words and word pieces to choose from."),
    mark("{stage} kept {kept} tokens."),
    mark("Stage {stage} kept {kept} tokens, with {mass} of the mass before it."),
)
_AND_FINALLY_ONE = Saying(
    mark("{stage} left {kept} words and word pieces to choose from, and in the end there was 1."),
    mark("{stage} kept {kept} tokens, and in the end 1 was left."),
    mark("Stage {stage} kept {kept} tokens, with {mass} of the mass before it; 1 survives every stage."),
)
_AND_FINALLY_LEFT = Saying(
    mark("{stage} left {kept} words and word pieces to choose from, and in the end there were {left}."),
    mark("{stage} kept {kept} tokens, and in the end {left} were left."),
    mark("Stage {stage} kept {kept} tokens, with {mass} of the mass before it; {left} survive every stage."),
)
_NUMBERS = (
    mark("two"),
    mark("three"),
    mark("four"),
    mark("five"),
    mark("six"),
    mark("seven"),
    mark("eight"),
    mark("nine"),
    mark("ten"),
)


def explain_overruled(event: TokenChosen) -> Sentence:
    """A sentence when a setting took likelier tokens out, or put the chosen one before the model's first choice."""
    ahead = [item for item in event.alternatives if item.rank < event.rank]
    if not ahead or not event.funnel or event.method == "beam":
        return Sentence()
    gone = [item for item in ahead if item.probability == 0]
    stage = _removing_stage(gone[0], event.funnel) if gone else None
    if stage is not None and stage.kind in ("ban", "cut"):
        return _explain_removed(event, ahead, gone, stage)
    return _explain_overtaken(event, ahead[0])


def _explain_removed(
    event: TokenChosen, ahead: list[Alternative], removed: list[Alternative], stage: Stage
) -> Sentence:
    """Likelier tokens that are out: all of them at once, the first choice, or one of the rest."""
    banned, other, by = stage.kind == "ban", removed[0], stage_name(stage)
    if stage.name == "grammar" and other.rank == 1:
        return _NOT_IN_GRAMMAR.say(
            other=quote(other.text, other.special), raw=share(other.raw_probability), removed=share(1 - stage.mass)
        )
    alike = all(_removing_stage(item, event.funnel) is stage for item in ahead if item.probability == 0)
    if len(removed) == event.rank - 1 > 1 and alike:
        saying = _ALL_FORBIDDEN if banned else _ALL_CUT
        return saying.say(stage=by, count=_number_word(len(removed)), last=f"{len(removed)}")
    facts = {
        "stage": by,
        "other": quote(other.text, other.special),
        "raw": share(other.raw_probability),
        "rank": f"{other.rank:,}",
    }
    if other.rank == 1:
        return (_FIRST_FORBIDDEN if banned else _FIRST_CUT).say(**facts)
    return (_ONE_FORBIDDEN if banned else _ONE_CUT).say(**facts)


def _number_word(number: int) -> str:
    return tr(_NUMBERS[number - 2]) if number - 2 < len(_NUMBERS) else f"{number}"


def _explain_overtaken(event: TokenChosen, first: Alternative) -> Sentence:
    """The stage behind which the chosen token led the model's first choice for good."""
    if event.method not in ("greedy", "sampled") or first.rank != 1 or first.probability >= event.probability:
        return Sentence()
    last = max(
        (place for place, stage in enumerate(event.funnel) if _is_ranked_before(first.id, event.id, stage)),
        default=None,
    )
    if last is None or last + 1 >= len(event.funnel):
        return Sentence()
    return _AHEAD.say(
        **quote_both(event.piece, first.text, event.is_special, first.special), stage=stage_name(event.funnel[last + 1]),
        raw=share(first.raw_probability), final=share(first.probability),
    )  # fmt: skip


def _is_ranked_before(one: int, other: int, stage: Stage) -> bool:
    """Whether token `one` stands before `other` among the likeliest behind a stage."""
    order = [token for token, _ in stage.top]
    return one in order and (other not in order or order.index(one) < order.index(other))


def _removing_stage(item: Alternative, funnel: tuple[Stage, ...]) -> Stage | None:
    """The stage that a token did not come out of; None where it was not among the likeliest before."""
    last = max((place for place, stage in enumerate(funnel) if item.id in dict(stage.top)), default=None)
    return None if last is None or last + 1 >= len(funnel) else funnel[last + 1]


def explain_largest_change(event: TokenChosen) -> Sentence:
    """The stage that changed the share that dice were thrown over most, where it is known before and behind it."""
    if event.method != "sampled":
        return Sentence()
    best, told = _NOTABLE_FACTOR, Sentence()
    for before, stage in pairwise(event.funnel):
        old, new = dict(before.top).get(event.id, 0.0), dict(stage.top).get(event.id, 0.0)
        if stage.kind != "shift" or not old or not new or max(old, new) < _NEGLIGIBLE:
            continue
        if (factor := max(old / new, new / old)) > best:
            best, told = factor, _explain_change(event, stage, old, new)
    return told


def _explain_change(event: TokenChosen, stage: Stage, old: float, new: float) -> Sentence:
    was, came = format_share_pair(old, new)
    return (_RAISED if new > old else _LOWERED).say(
        stage=stage_name(stage),
        name=quote(event.piece, event.is_special),
        old=was,
        new=came,
        factor=format_full(new / old),
    )


def explain_largest_cut(event: TokenChosen) -> Sentence:
    """What the filter that cut most left over for the dice."""
    if event.method not in ("sampled", "dola_sampled"):
        return Sentence()
    best, removed = None, 0.0
    for before, stage in pairwise(event.funnel):
        part = 1 - stage.survivors / before.survivors if before.survivors else 0.0
        if stage.kind == "cut" and part > removed:
            best, removed = (before, stage), part
    return _explain_survivors(event, *best) if best is not None else Sentence()


def _explain_survivors(event: TokenChosen, before: Stage, stage: Stage) -> Sentence:
    figures = tr("{kept} of {all}").format(kept=f"{stage.survivors:,}", all=f"{before.survivors:,}")
    facts = {"stage": stage_name(stage), "kept": SentenceNumber(figures), "mass": share(stage.mass)}
    last = event.funnel[-1].survivors
    if last >= stage.survivors:
        return _KEPT.say(**facts)
    saying = _AND_FINALLY_ONE if last == 1 else _AND_FINALLY_LEFT
    return saying.say(**facts, left=f"{last:,}")
