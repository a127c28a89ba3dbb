"""Explain the effect of the settings at a step: what they forbade or moved ahead, changed most, and cut."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from decodescope.core import processors
from decodescope.core.explain import words
from decodescope.core.explain.sentence import Sentence, SentenceNumber, SentenceTemplate, capitalize, fill
from decodescope.core.explain.words import decimal, format_full, format_share_pair, quote, quote_both, share
from decodescope.core.processors.pipeline_stages import stage_label, stage_phrase
from decodescope.resources import depth
from decodescope.resources.language import mark, tr

if TYPE_CHECKING:
    from decodescope.core.events import (
        Alternative,
        Repeats,
        ScoreSpread,
        Stage,
        StageDetail,
        StepTemperature,
        SurpriseAim,
        TokenChosen,
        TopCut,
    )

_LAYERS_NAME = mark("the comparison with the early guess")
"""Plain name of DoLa's stage, which no processor applies."""


def stage_name(stage: Stage) -> str:
    """Return a stage's name within a sentence, at the current level of detail and language; unknown stages use their
    own phrase.
    """
    if depth.current_depth() == depth.EXACT:
        return (
            f"{stage.name} = {_format_value(stage.value)}"
            if stage.value is not None and _has_numeric_setting(stage)
            else stage.name
        )
    if depth.current_depth() == depth.PLAIN and (plain := _plain_phrase(stage)):
        return fill(tr(plain), v="" if stage.value is None else _format_value(stage.value))
    return stage_phrase(stage)


def _plain_phrase(stage: Stage) -> str:
    """Return the template of a stage's plain name; empty if it has none."""
    known = processors.registry.get(stage.name)
    return known.plain_phrase if known is not None else _LAYERS_NAME if stage.name == "dola_layers" else ""


def _has_numeric_setting(stage: Stage) -> bool:
    """Return whether the stage's value is that of the setting; for a list it is the number of entries."""
    known = processors.registry.get(stage.name)
    parameter = known.parameter if known is not None else None
    return parameter is None or parameter.kind in ("int", "float")


def _format_value(value: float) -> str:
    return f"{int(value)}" if value == int(value) else f"{value:g}"


_NOTABLE_FACTOR = 1.5
"""A probability changed by at least this factor is worth a sentence, …"""
_NEGLIGIBLE = 0.01
"""… unless it is below this value both before and after."""

_ALL_FORBIDDEN = SentenceTemplate(
    mark("{stage} forbids all the {count} the model likes best here."),
    mark("{stage} forbade the model's {count} likeliest tokens here."),
    mark("Stage {stage} set the logits of raw ranks 1 … {last} to −∞."),
)
_ALL_CUT = SentenceTemplate(
    mark("{stage} removed all the {count} the model likes best here."),
    mark("{stage} cut the model's {count} likeliest tokens here."),
    mark("Stage {stage} cut raw ranks 1 … {last}."),
)
_FIRST_FORBIDDEN = SentenceTemplate(
    mark("The model liked {other} best, but {stage} forbids it here."),
    mark("{other} was the model's first choice, but {stage} forbids it here."),
    mark("{other} has raw rank 1 with p = {raw}; stage {stage} set its logit to −∞."),
)
_FIRST_CUT = SentenceTemplate(
    mark("The model liked {other} best, but {stage} removed it."),
    mark("{other} was the model's first choice, but {stage} cut it."),
    mark("{other} has raw rank 1 with p = {raw}; stage {stage} cut it."),
)
_ONE_FORBIDDEN = SentenceTemplate(
    mark("{stage} forbids {other}, which the model liked better."),
    mark("{stage} forbade {other}, which had a higher raw probability."),
    mark("Stage {stage} set the logit of {other} to −∞ (raw rank {rank}, p = {raw})."),
)
_ONE_CUT = SentenceTemplate(
    mark("{stage} removed {other}, which the model liked better."),
    mark("{stage} cut {other}, which had a higher raw probability."),
    mark("Stage {stage} cut {other} (raw rank {rank}, p = {raw})."),
)
_NOT_IN_GRAMMAR = SentenceTemplate(
    mark("The model preferred {other} ({raw}), but the grammar forbids it here."),
    mark("The model preferred {other} ({raw}); the grammar forbade it."),
    mark("{other} has raw rank 1 with p = {raw}; stage grammar set its logit to −∞ and removed {removed} of the mass."),
)
_AHEAD = SentenceTemplate(
    mark("The model liked {other} best, but {stage} moved {name} ahead of it."),
    mark("{other} was the model's first choice, but {stage} moved {name} ahead of it."),
    mark(
        "{other} has raw rank 1 with p = {raw}; after stage {stage} it ranks below {name}, and ends with p = {final}."
    ),
)
_RAISED = SentenceTemplate(
    mark("{stage} made {name} likelier: from {old} to {new}."),
    mark("{stage} raised {name} from {old} to {new}."),
    mark("Stage {stage}: p of {name} {old} → {new}, × {factor}."),
)
_LOWERED = SentenceTemplate(
    mark("{stage} made {name} less likely: from {old} to {new}."),
    mark("{stage} lowered {name} from {old} to {new}."),
    mark("Stage {stage}: p of {name} {old} → {new}, × {factor}."),
)
_KEPT = SentenceTemplate(
    mark("{stage} left {kept} words and word pieces to choose from."),
    mark("{stage} kept {kept} tokens."),
    mark("Stage {stage} kept {kept} tokens, with {mass} of the mass entering it."),
)
_AND_FINALLY_ONE = SentenceTemplate(
    mark("{stage} left {kept} words and word pieces to choose from; in the end, 1 was left."),
    mark("{stage} kept {kept} tokens; in the end, 1 was left."),
    mark("Stage {stage} kept {kept} tokens, with {mass} of the mass entering it; 1 survives all stages."),
)
_AND_FINALLY_LEFT = SentenceTemplate(
    mark("{stage} left {kept} words and word pieces to choose from; in the end, {left} were left."),
    mark("{stage} kept {kept} tokens; in the end, {left} were left."),
    mark("Stage {stage} kept {kept} tokens, with {mass} of the mass entering it; {left} survive all stages."),
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
    """Explain that a setting removed likelier tokens, or moved the chosen one ahead of the model's first choice; empty
    otherwise.
    """
    ahead = [item for item in event.alternatives if item.rank < event.rank]
    if not ahead or not event.funnel or event.method == "beam":
        return Sentence()
    gone = [item for item in ahead if item.probability == 0]
    stage = _removing_stage(gone[0], event.funnel) if gone else None
    if stage is not None and stage.kind in ("ban", "cut"):
        return _explain_removed(event, ahead, gone, stage)
    return _explain_overtaken(event, ahead[0])


def _explain_removed(
    event: TokenChosen, better_ranked: list[Alternative], removed: list[Alternative], stage: Stage
) -> Sentence:
    """Explain which likelier tokens were removed: all of them, the first choice, or one of the others."""
    banned, other, by = stage.kind == "ban", removed[0], stage_name(stage)
    if stage.name == "grammar" and other.rank == 1:
        return _NOT_IN_GRAMMAR.say(
            other=quote(other.text, other.special), raw=share(other.raw_probability), removed=share(1 - stage.mass)
        )
    alike = all(_removing_stage(item, event.funnel) is stage for item in better_ranked if item.probability == 0)
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
    """Name the stage after which the chosen token stayed ahead of the model's first choice."""
    if event.method not in ("greedy", "sampled") or first.rank != 1 or first.probability >= event.probability:
        return Sentence()
    last = max(
        (place for place, stage in enumerate(event.funnel) if _is_ranked_before(first.id, event.id, stage)),
        default=None,
    )
    if last is None or last + 1 >= len(event.funnel):
        return Sentence()
    return _AHEAD.say(
        **quote_both(event.piece, first.text, event.is_special, first.special),
        stage=stage_name(event.funnel[last + 1]),
        raw=share(first.raw_probability),
        final=share(first.probability),
    )


def _is_ranked_before(one: int, other: int, stage: Stage) -> bool:
    """Return whether token `one` is listed before `other` among the likeliest after a stage."""
    order = [token for token, _ in stage.top]
    return one in order and (other not in order or order.index(one) < order.index(other))


def _removing_stage(item: Alternative, funnel: tuple[Stage, ...]) -> Stage | None:
    """Return the stage that removed a token; None if it was not among the likeliest before."""
    last = max((place for place, stage in enumerate(funnel) if item.id in dict(stage.top)), default=None)
    return None if last is None or last + 1 >= len(funnel) else funnel[last + 1]


def explain_largest_change(event: TokenChosen) -> Sentence:
    """Name the stage that changed the sampled token's probability most, among stages where it is known before and
    after.
    """
    if event.method != "sampled":
        return Sentence()
    best, explanation = _NOTABLE_FACTOR, Sentence()
    for before, stage in pairwise(event.funnel):
        old, new = dict(before.top).get(event.id, 0.0), dict(stage.top).get(event.id, 0.0)
        if stage.kind != "shift" or not old or not new or max(old, new) < _NEGLIGIBLE:
            continue
        if (factor := max(old / new, new / old)) > best:
            best, explanation = factor, _explain_change(event, stage, old, new)
    return explanation


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
    """Name the filter that cut most, and what it left for sampling."""
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


_BEGIN = SentenceTemplate(
    mark("Here the model has given each of its {left} words and word pieces a chance."),
    mark("The model's raw distribution over {left} tokens."),
    mark("Raw p of {left} tokens: softmax of the model's own logits."),
)
_SHIFT = SentenceTemplate(
    mark("{stage} changes the chances and removes nothing."),
    mark("{stage}: changes the probabilities and cuts no token."),
    mark("{stage}: logits changed, 0 of {before} tokens cut; those left have {raw} of raw p."),
)
_CUT = SentenceTemplate(
    mark("{stage} removes {cut} of {before}. The remaining {left} had {mass} of the chances before."),
    mark("{stage}: cuts {cut} of {before} tokens. The {left} left have {mass} of the probability before it, "
        "{raw} of the raw distribution."),
    mark("{stage}: {cut} of {before} tokens cut, {left} left with {mass} of the p entering the stage, {raw} "
        "of raw p."),
)  # fmt: skip


def explain_cut(stage: Stage, before: Stage | None) -> Sentence:
    """Explain how many of the tokens left by the previous stage this stage cut, and the probability mass of the rest;
    `before` is None for the first stage, the raw distribution.
    """
    if before is None:
        return _BEGIN.words(left=f"{stage.survivors:,}")
    cut = before.survivors - stage.survivors
    sentence = (_CUT if cut > 0 else _SHIFT).words(
        stage=stage_label(stage) if depth.current_depth() == depth.USUAL else stage_name(stage),
        cut=f"{cut:,}",
        before=f"{before.survivors:,}",
        left=f"{stage.survivors:,}",
        mass=share(stage.mass),
        raw=share(stage.raw_mass),
    )
    return (
        capitalize(sentence) if depth.current_depth() == depth.PLAIN else sentence
    )  # names of settings start in lower case


_NO_REPEAT = SentenceTemplate(
    mark("The text does not end like any earlier passage, so nothing was penalized."),
    mark("No token would continue a repetition of an earlier passage here, so none was penalized."),
    mark("No token continues a repeated passage longer than allowed: no logit was changed."),
)
_ONE_REPEAT = SentenceTemplate(
    mark("The last words occurred in the text before, followed by {name}, so its chance was lowered."),
    mark("The text ended like this before ({tokens}), and {name} followed {ago} ago: its score was lowered "
        "by {penalty}."),
    mark("n = {length}, {ago} back: logit of {name} − {penalty}."),
)  # fmt: skip
_REPEATS = SentenceTemplate(
    mark("The last words occurred in the text before, followed by {name}, so its chance was lowered, and "
        "that of {others} more."),
    mark("The text ended like this before ({tokens}), and {name} followed {ago} ago: its score was lowered "
        "by {penalty}. Penalized in all: {count}."),
    mark("n = {length}, {ago} back: logit of {name} − {penalty}; {count} logits were lowered."),
)  # fmt: skip
_FEW_LIKELY = SentenceTemplate(
    mark("Fewer than two words were likely enough, so the likeliest was not removed."),
    mark("Fewer than two tokens had {threshold} or more, so none was removed."),
    mark("Fewer than two tokens with p ≥ {threshold}: no cut for any random number (u = {die}, probability {chance})."),
)
_NO_CUT = SentenceTemplate(
    mark("Chance decided against a cut: the likeliest words stayed."),
    mark("The random number {die} was not below {chance}, so there was no cut: all {count} tokens with "
        "{threshold} or more stayed."),
    mark("u = {die} ≥ {chance}: the {count} tokens with p ≥ {threshold} stay."),
)  # fmt: skip
_CUT_PREVENTED = SentenceTemplate(
    mark("Chance decided for a cut, but it would have removed the end of the text or a line break, so all "
        "stayed."),
    mark("The random number {die} was below {chance}, but the cut would have removed the end token or a "
        "line break, so all {count} stayed."),
    mark("u = {die} < {chance}, but the end token or a line break is among the {count} with p ≥ {threshold}: no cut."),
)  # fmt: skip
_TOP_CUT = SentenceTemplate(
    mark("Chance decided for a cut: the likeliest words were removed, first {name}, which had {share}."),
    mark("The random number {die} was below {chance}: of {count} tokens with {threshold} or more only the "
        "least likely stayed. Removed: {removed}, first {name} with {share}."),
    mark("u = {die} < {chance}: of {count} tokens with p ≥ {threshold} only the least likely stays; logits "
        "at −∞: {removed}, first {name} with p = {share}."),
)  # fmt: skip
_SPREAD = SentenceTemplate(
    mark("Only words with a score close to the best one stayed."),
    mark("The best score is {best}; scores below {floor} were cut (σ is {deviation})."),
    mark("max z = {best}, σ = {deviation}: z < {floor} was cut."),
)
_TOO_MUCH = SentenceTemplate(
    mark("It was more surprising than the target, so the limit for the next choice falls."),
    mark("Its surprise was {surprise} bits, above the target of {target}: the limit of {limit} bits falls."),
    mark("−log₂ p = {surprise} > τ = {target}: μ falls from {limit}."),
)
_TOO_LITTLE = SentenceTemplate(
    mark("It was not more surprising than the target, so the limit for the next choice does not fall."),
    mark(
        "Its surprise was {surprise} bits, not above the target of {target}: the limit of {limit} bits does not fall."
    ),
    mark("−log₂ p = {surprise} ≤ τ = {target}: μ does not fall from {limit}."),
)
_TEMPERATURE = SentenceTemplate(
    mark("The temperature of this choice was {heat}: it is {low} where the model is sure, and {high} where "
        "it has no idea."),
    mark("The temperature of this step was {heat}: it ranges from {low} where one token is certain to "
        "{high} where all are equally likely."),
    mark("T = {heat}, from T_min = {low} at H = 0 to T_max = {high} at H = ln n."),
)  # fmt: skip


def explain_stage(stage: Stage) -> Sentence:
    """Explain a stage's details at the current level of detail and language; empty if it has none."""
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
    """Format with two decimals, or four at the "exact" level."""
    return SentenceNumber(decimal(value, 4 if depth.current_depth() == depth.EXACT else 2))


def _explain_repeats(detail: Repeats) -> Sentence:
    if not detail.found:
        return _NO_REPEAT.say()
    first = detail.found[0]
    return (_ONE_REPEAT if detail.count == 1 else _REPEATS).say(
        name=quote(first.text, first.special),
        length=f"{first.length:,}",
        tokens=words.count(first.length, "token"),
        ago=words.count(first.back, "token"),
        penalty=SentenceNumber(
            format_full(first.penalty) if depth.current_depth() == depth.EXACT else decimal(first.penalty)
        ),
        count=SentenceNumber(f"{detail.count:,}"),
        others=f"{detail.count - 1:,}",
    )


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
