"""Explain what would change at a step under other settings, in a few sentences with the numbers of both sides."""

from __future__ import annotations

from typing import TYPE_CHECKING

from decodescope.core.explain.sentence import Sentence, SentenceNumber, SentenceTemplate, together
from decodescope.core.explain.words import format_share_pair, quote, quote_both, share
from decodescope.resources.language import mark

if TYPE_CHECKING:
    from decodescope.core.events import Alternative, TokenChosen

_NOTHING = SentenceTemplate(
    mark("Nothing would be different here."),
    mark("Nothing would be different at this step."),
    mark("All probabilities would be unchanged at this step."),
)
_OTHER = SentenceTemplate(
    mark("{other} would be written instead of {name}: {new} instead of {old}."),
    mark("{other} would be chosen instead of {name}, with {new} instead of {old}."),
    mark("{other} would be chosen instead of {name}; p of {other} {old} → {new}."),
)
_OTHER_ALIKE = SentenceTemplate(
    mark("{other} would be written instead of {name}, with {new} as before."),
    mark("{other} would be chosen instead of {name}, with {new} as before."),
    mark("{other} would be chosen instead of {name}; p of {other} = {new} on both sides."),
)
_STILL = SentenceTemplate(
    mark("{name} would still be written, with {new} instead of {old}."),
    mark("{name} would still be chosen, with {new} instead of {old}."),
    mark("{name} would still be chosen; p {old} → {new}."),
)
_STILL_ALIKE = SentenceTemplate(
    mark("{name} would still be written, with {new} as before."),
    mark("{name} would still be chosen, with {new} as before."),
    mark("{name} would still be chosen; p = {new} on both sides."),
)
_GONE = SentenceTemplate(
    mark("{name} could not be written here."),
    mark("{name} would be cut: another token would be chosen."),
    mark("{name} would have p = 0 instead of {old}: another token would be chosen."),
)
_WOULD_HAVE = SentenceTemplate(
    mark("{name} would have {new} instead of {old}; it is unknown whether it would be written."),
    mark("{name} would have {new} instead of {old}; it is unknown whether it would be chosen."),
    mark("p of {name} {old} → {new}; it is unknown whether it would be chosen."),
)
_LEFT = SentenceTemplate(
    mark("{new} words and word pieces would be left to choose from, instead of {old}."),
    mark("{new} tokens would be left instead of {old}."),
    mark("Survivors of all stages: {old} → {new}."),
)
_ONE_LEFT = SentenceTemplate(
    mark("1 word or word piece would be left to choose from, instead of {old}."),
    mark("1 token would be left instead of {old}."),
    mark("Survivors of all stages: {old} → 1."),
)
_CUT = SentenceTemplate(
    mark("{name}, which had {old}, would be out."),
    mark("{name}, which had {old}, would be cut."),
    mark("{name} would be cut: p {old} → 0."),
)
_KEPT = SentenceTemplate(
    mark("{name} would be let in, with {new}."),
    mark("{name} would be kept, with {new}."),
    mark("{name} would be kept: p 0 → {new}."),
)


def explain_what_if(before: TokenChosen, after: TokenChosen, is_decided: bool) -> Sentence:
    """Explain how choice, survivors and cuts would change, at the current level of detail and language.

    `core.replay_step` returns the three arguments for a step.
    """
    if before == after:
        return _NOTHING.say()
    return together(
        _explain_choice(before, after, is_decided),
        _explain_survivors(before, after),
        _explain_membership(before, after),
    )


def _explain_choice(before: TokenChosen, after: TokenChosen, is_decided: bool) -> Sentence:
    name = quote(before.piece, before.is_special)
    if is_decided and after.id != before.id:
        was = next((item.probability for item in before.alternatives if item.id == after.id), 0.0)
        old, new = format_share_pair(was, after.probability)
        both = quote_both(before.piece, after.piece, before.is_special, after.is_special)
        return (_OTHER if old != new else _OTHER_ALIKE).say(**both, old=old, new=new)
    old, new = format_share_pair(before.probability, after.probability)
    if not is_decided:
        return (_WOULD_HAVE if after.probability else _GONE).say(name=name, old=old, new=new)
    return (_STILL if old != new else _STILL_ALIKE).say(name=name, old=old, new=new)


def _explain_survivors(before: TokenChosen, after: TokenChosen) -> Sentence:
    if not before.funnel or not after.funnel or before.funnel[-1].survivors == after.funnel[-1].survivors:
        return Sentence()
    old, new = (SentenceNumber(f"{each.funnel[-1].survivors:,}") for each in (before, after))
    return (_ONE_LEFT if after.funnel[-1].survivors == 1 else _LEFT).say(old=old, new=new)


def _explain_membership(before: TokenChosen, after: TokenChosen) -> Sentence:
    """Name the likeliest token that is newly cut or newly kept, other than the chosen ones."""
    chosen_ids = (before.id, after.id)
    was, comes = (
        {item.id: item for item in each.alternatives if item.id not in chosen_ids} for each in (before, after)
    )
    gone = [was[token] for token in was if was[token].probability and token in comes and not comes[token].probability]
    if gone:
        first = _most_likely(gone)
        return _CUT.say(name=quote(first.text, first.special), old=share(first.probability))
    new = [comes[token] for token in comes if comes[token].probability and token in was and not was[token].probability]
    if new:
        first = _most_likely(new)
        return _KEPT.say(name=quote(first.text, first.special), new=share(first.probability))
    return Sentence()


def _most_likely(alternatives: list[Alternative]) -> Alternative:
    return max(alternatives, key=lambda item: item.probability)
