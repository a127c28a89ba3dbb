"""What a stage did at one step, where it tells more of itself than how many it left over."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.explain import words
from core.explain.number_formats import format_full, share
from core.explain.sentence import Saying, Sentence, SentenceNumber
from core.explain.words import decimal, quote
from resources import depth
from resources.language import mark

if TYPE_CHECKING:
    from core.events import Repeats, ScoreSpread, Stage, StageDetail, StepTemperature, SurpriseAim, TopCut

_NO_REPEAT = Saying(
    mark("The text does not end like any earlier passage, so nothing was held back."),
    mark("No token would go on repeating an earlier passage here, so nothing was held back."),
    mark("No token follows a repeated passage of the allowed length: no logit was changed."),
)
_ONE_REPEAT = Saying(
    mark("The last words stood in the text before, and then came {name}: so it was held back."),
    mark("The text has ended like this before, over {tokens}, and {name} followed {ago} ago: it lost {penalty} of its "
         "score."),
    mark("n = {length}, {ago} back: logit of {name} − {penalty}."),
)  # fmt: skip
_REPEATS = Saying(
    mark("The last words stood in the text before, and then came {name}: so it was held back, and {others} more with "
         "it."),
    mark("The text has ended like this before, over {tokens}, and {name} followed {ago} ago: it lost {penalty} of its "
         "score. Held back in all: {count}."),
    mark("n = {length}, {ago} back: logit of {name} − {penalty}; {count} logits were lowered."),
)  # fmt: skip
_FEW_LIKELY = Saying(
    mark("No two words were likely enough for the likeliest to be taken away."),
    mark("Fewer than two tokens had {threshold} or more, so there was nothing to take away."),
    mark("Fewer than two tokens with p ≥ {threshold}: no cut, whatever the die (u = {die}, chance {chance})."),
)
_NO_CUT = Saying(
    mark("The dice said no: the likeliest words stayed."),
    mark("The die did not fall for a cut ({die}, where less than {chance} cuts): all {count} tokens with {threshold} "
         "or more stayed."),
    mark("u = {die} ≥ {chance}: the {count} tokens with p ≥ {threshold} stay."),
)  # fmt: skip
_CUT_PREVENTED = Saying(
    mark("The dice said yes, but the end of the text or a line break would have gone too, so all stayed."),
    mark("The die fell for a cut ({die}, less than {chance}), but it would have taken the end token or a line break, "
         "so all {count} stayed."),
    mark("u = {die} < {chance}, but the end token or a line break is among the {count} with p ≥ {threshold}: no cut."),
)  # fmt: skip
_TOP_CUT = Saying(
    mark("The dice said yes: the likeliest words were taken away, {name} first, which had {share}."),
    mark("The die fell for a cut ({die}, less than {chance}): of {count} tokens with {threshold} or more only the "
         "least likely stayed. Taken away: {removed}, {name} with {share} first."),
    mark("u = {die} < {chance}: of {count} tokens with p ≥ {threshold} only the least likely stays; logits at −∞: "
         "{removed}, {name} with p = {share} first."),
)  # fmt: skip
_SPREAD = Saying(
    mark("Only words whose score comes close to the best one stayed."),
    mark("The best score is {best}; what lies below {floor} was cut (σ is {deviation})."),
    mark("max z = {best}, σ = {deviation}: z < {floor} was cut."),
)
_TOO_MUCH = Saying(
    mark("It surprised more than was asked for, so the next choice is held tighter."),
    mark("It surprised by {surprise} bits, more than the {target} asked for: the limit of {limit} bits falls."),
    mark("−log₂ p = {surprise} > τ = {target}: μ falls from {limit}."),
)
_TOO_LITTLE = Saying(
    mark("It did not surprise more than was asked for, so the next choice is not held tighter."),
    mark("It surprised by {surprise} bits, where {target} were asked for: the limit of {limit} bits does not fall."),
    mark("−log₂ p = {surprise} ≤ τ = {target}: μ does not fall from {limit}."),
)
_TEMPERATURE = Saying(
    mark("The heat of this choice was {heat}: it is {low} where the model is sure, and {high} where it has no idea."),
    mark("The temperature of this step was {heat}: it goes from {low} where one token is certain to {high} where all "
         "are equally likely."),
    mark("T = {heat}, from T_min = {low} at H = 0 to T_max = {high} at H = ln n."),
)  # fmt: skip


def explain_stage(stage: Stage) -> Sentence:
    """What it did at its step, at the depth and in the language of now; empty where it tells no more than others."""
    return _explain_detail(stage.detail) if stage.detail is not None else Sentence()


def _explain_detail(detail: StageDetail) -> Sentence:
    if detail.repeats is not None:
        return _explain_repeats(detail.repeats)
    if detail.top_cut is not None:
        return _explain_top_cut(detail.top_cut)
    if detail.spread is not None:
        return _explain_spread(detail.spread)
    if detail.aim is not None:
        return _explain_surprise(detail.aim)
    return _explain_temperature(detail.heat) if detail.heat is not None else Sentence()


def _number(value: float) -> SentenceNumber:
    """Two digits, four where everything is told."""
    return SentenceNumber(decimal(value, 4 if depth.current_depth() == depth.EXACT else 2))


def _explain_repeats(detail: Repeats) -> Sentence:
    if not detail.found:
        return _NO_REPEAT.say()
    first = detail.found[0]
    return (_ONE_REPEAT if detail.count == 1 else _REPEATS).say(
        name=quote(first.text, first.special), length=f"{first.length:,}",
        tokens=words.count(first.length, "token"), ago=words.count(first.back, "token"),
        penalty=SentenceNumber(format_full(first.penalty) if depth.current_depth() == depth.EXACT else decimal(first.penalty)),
        count=SentenceNumber(f"{detail.count:,}"), others=f"{detail.count - 1:,}",
    )  # fmt: skip


def _explain_top_cut(detail: TopCut) -> Sentence:
    facts = {"die": _number(detail.die), "chance": f"{detail.chance:g}", "threshold": share(detail.threshold),
             "count": f"{detail.count:,}", "removed": f"{detail.removed:,}"}  # fmt: skip
    if detail.count < 2:
        return _FEW_LIKELY.say(**facts)
    if detail.die >= detail.chance:
        return _NO_CUT.say(**facts)
    if not detail.removed:
        return _CUT_PREVENTED.say(**facts)
    first = detail.likely[0]
    return _TOP_CUT.say(**facts, name=quote(first.text, first.special), share=share(first.probability))


def _explain_spread(detail: ScoreSpread) -> Sentence:
    return _SPREAD.say(
        best=_number(detail.best), floor=_number(detail.floor), deviation=_number(detail.deviation)
    )  # fmt: skip


def _explain_surprise(detail: SurpriseAim) -> Sentence:
    saying = _TOO_MUCH if detail.surprise > detail.target else _TOO_LITTLE
    return saying.say(surprise=_number(detail.surprise), target=f"{detail.target:g}", limit=_number(detail.limit))


def _explain_temperature(detail: StepTemperature) -> Sentence:
    return _TEMPERATURE.say(heat=_number(detail.temperature), low=f"{detail.low:g}", high=f"{detail.high:g}")
