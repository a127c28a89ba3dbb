"""Explain why a token was chosen, in a few sentences with the numbers of its step.

First what the settings forbade or changed, then what was cut, then the choice, then the role of a draft. Probabilities
are those after the settings unless a sentence says otherwise.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from decodescope.core.explain import choice, settings
from decodescope.core.explain.choice import final_rank, rank_fields, runner_up, sampling_template
from decodescope.core.explain.sentence import Sentence, SentenceTemplate, together
from decodescope.core.explain.words import (
    CERTAIN,
    final_share,
    format_log,
    format_share_pair,
    is_only_survivor,
    ordinal,
    quote,
    quote_both,
    share,
)
from decodescope.core.processors import registry
from decodescope.core.processors.pipeline_stages import stage_phrase
from decodescope.resources.language import join_sentences, mark, tr

if TYPE_CHECKING:
    from decodescope.core.events import Origin, TokenChosen

_UNKNOWN = SentenceTemplate(
    mark("The engine wrote {name} without reporting how likely it was."),
    mark("The engine wrote {name} without reporting its probability."),
    mark("The engine wrote {name}; neither p nor rank was reported."),
)
_FIRST = SentenceTemplate(
    mark("{name} is the model's favourite here: {share}."),
    mark("{name} had {share} in the raw distribution, the highest of all."),
    mark("{name} had raw p = {share} (ln p = {log}), raw rank 1; H was not reported."),
)
_NTH = SentenceTemplate(
    mark("{name} is the model's {ordinal} choice here: {share}."),
    mark("{name} had {share} in the raw distribution, the {ordinal} most likely."),
    mark("{name} had raw p = {share} (ln p = {log}), raw rank {rank}; H was not reported."),
)
_NOT_LISTED = SentenceTemplate(
    mark("{name} had {share}, and is not among the model's {count} favourites here."),
    mark(
        "{name} had {share} in the raw distribution, and is not among the {count} most likely that the engine reported."
    ),
    mark("{name} had raw p = {share} (ln p = {log}), raw rank above {count}; H was not reported."),
)
_AFTER = SentenceTemplate(
    mark("{name} had {share} after the temperature; the engine does not report its chance before that."),
    mark("{name} had {share} after the temperature; the engine does not report the raw probability."),
    mark("{name} had p = {share} (ln p = {log}) after the temperature; raw p, rank and H were not reported."),
)
_GIVEN = SentenceTemplate(
    mark("It is part of the given text: nothing was chosen."),
    mark("It is part of the given text."),
    mark("It was given."),
)
_SETTINGS = SentenceTemplate(
    mark("The engine does not report its probability after the settings."),
    mark("The engine does not report its probability after the settings."),
    mark("The final p was not reported."),
)


def is_remote(event: TokenChosen) -> bool:
    """Return whether a remote engine chose it: no engine reports the entropy, which every local step has."""
    return math.isnan(event.entropy)


def explain_remote_token(event: TokenChosen) -> Sentence:
    """Explain the step from what was reported, at the current level of detail and language."""
    raw, final = event.raw_log_probability, event.log_probability
    given = _GIVEN.say() if event.method == "scored" else Sentence()
    if math.isnan(raw) and math.isnan(final):
        return together(_UNKNOWN.say(name=quote(event.piece, event.is_special)), given)
    if math.isnan(raw):
        return together(
            _AFTER.say(
                name=quote(event.piece, event.is_special), share=share(event.probability), log=format_log(final)
            ),
            given,
        )
    return together(_explain_model_rank(event), given, _SETTINGS.say() if math.isnan(final) else Sentence())


def _explain_model_rank(event: TokenChosen) -> Sentence:
    listed_count = sum(item.rank > 0 for item in event.alternatives)
    saying = _FIRST if event.rank == 1 else _NTH if event.rank else _NOT_LISTED
    return saying.say(
        name=quote(event.piece, event.is_special),
        share=share(event.raw_probability), log=format_log(event.raw_log_probability),
        rank=f"{event.rank:,}", ordinal=ordinal(event.rank), count=f"{listed_count}",
    )  # fmt: skip


_NEARLY_ALL = 0.9995

_ONLY = SentenceTemplate(
    mark("Only {name} was left."),
    mark("Only {name} was left."),
    mark("{name} is the only survivor: p = {share}."),
)
_CERTAIN_OF = SentenceTemplate(
    mark("The model was nearly certain of {name}: {share}."),
    mark("{name} had {share}: the model was nearly certain."),
    mark("{name} is the argmax with p = {share} (ln p = {log}); raw p = {raw}, H = {entropy} nats."),
)
_MOST_LIKELY = SentenceTemplate(
    mark("{name} is what the model likes best here, {share}, and the best is always chosen."),
    mark("{name} had {share}, the highest of all, so greedy decoding chose it."),
    mark("{name} is the argmax with p = {share} (ln p = {log}); raw p = {raw}, raw rank {rank}."),
)
_TIE = SentenceTemplate(
    mark("The model likes {name} and {other} equally well, {share} each; {name} was chosen."),
    mark("{name} and {other} had {share} each, the highest of all; greedy decoding chose {name}."),
    mark("{name} and {other} share the largest p = {share} (ln p = {log}); the argmax is {name}."),
)
_AHEAD = SentenceTemplate(
    mark("{name} is what the model likes best here, {share}; next comes {other}, {rival}."),
    mark("{name} had {share}, the highest of all, ahead of {other} with {rival}."),
    mark("{name} is the argmax with p = {share} (ln p = {log}), ahead of {other} with p = {rival}; raw rank {rank}."),
)
_ONLY_DRAWN = SentenceTemplate(
    mark("Only {name} was left, so nothing had to be drawn."),
    mark("Only {name} was left, so nothing had to be drawn."),
    mark("{name} is the only survivor: p = {share}, so nothing had to be drawn."),
)
_HARDLY_ANOTHER = SentenceTemplate(
    mark("{name} had {share}: hardly anything else could be drawn."),
    mark("{name} had {share}: hardly anything else could be drawn."),
    mark("{name} had p = {share} (ln p = {log}), H = {entropy} nats before the settings."),
)
_BEAM_FIRST = SentenceTemplate(
    mark("{name} is what the model likes best here, {share}, and the search kept it."),
    mark("{name} had {share} in the raw distribution, the highest of all, and the search kept it."),
    mark("{name} has raw p = {share} (ln p = {log}), raw rank 1; the search ranks whole texts by Σ ln p, and kept it."),
)
_BEAM_BEHIND = SentenceTemplate(
    mark("Here the model prefers {other}, {rival} against {share} for {name}; but the search compares whole "
        "texts, and kept one with {name}."),
    mark("{name} had {share} in the raw distribution, less than {other} with {rival}; but the search "
        "compares whole texts, and kept one with it."),
    mark("{name} has raw p = {share} (ln p = {log}), raw rank {rank}, after {other} with p = {rival}; the "
        "search ranks whole texts by Σ ln p, and kept one with it."),
)  # fmt: skip
_BEAM_NTH = SentenceTemplate(
    mark("{name} is only the {ordinal} best here, {share}; but the search compares whole texts, and kept "
        "one with it."),
    mark("{name} had {share} in the raw distribution, the {ordinal} most likely; but the search compares "
        "whole texts, and kept one with it."),
    mark("{name} has raw p = {share} (ln p = {log}), raw rank {rank}; the search ranks whole texts by Σ ln "
        "p, and kept one with it."),
)  # fmt: skip
_SCORED_FIRST = SentenceTemplate(
    mark("The text has {name} here, which is also the model's favourite: {share}."),
    mark("{name} is part of the given text, and the model's first choice here, with {share}."),
    mark("{name} was given: p = {share} (ln p = {log}), rank 1, H = {entropy} nats."),
)
_SCORED_NTH = SentenceTemplate(
    mark("The text has {name} here; for the model it is the {ordinal} best, {share}."),
    mark("{name} is part of the given text; for the model it was the {ordinal} most likely, with {share}."),
    mark("{name} was given: p = {share} (ln p = {log}), rank {rank}, H = {entropy} nats."),
)
_SCORED_BEHIND = SentenceTemplate(
    mark("The text has {name} here; for the model it is the {ordinal} best, {share}. Its favourite is "
        "{other}: {rival}."),
    mark("{name} is part of the given text; for the model it was the {ordinal} most likely, with {share}, "
        "and {other} the first choice, with {rival}."),
    mark("{name} was given: p = {share} (ln p = {log}), rank {rank}, H = {entropy} nats; rank 1 is {other} with "
         "p = {rival}."),
)  # fmt: skip
_OTHER_FIRST = SentenceTemplate(
    mark("{name} was chosen, which is also what the model likes best here: {share}."),
    mark("{name} had {share}, the highest of all, and was chosen by the method {method}."),
    mark("{name} was chosen by {method}: p = {share} (ln p = {log}), final rank 1; raw p = {raw}, raw rank {rank}."),
)
_OTHER_NTH = SentenceTemplate(
    mark("{name} was chosen, which for the model is the {ordinal} best here: {share}."),
    mark("{name} had {share}, the {ordinal} most likely, and was chosen by the method {method}."),
    mark("{name} was chosen by {method}: p = {share} (ln p = {log}), final rank {place}; raw p = {raw}, raw rank "
         "{rank}."),
)  # fmt: skip
_DRAFTED = SentenceTemplate(
    mark("A quick guess had predicted it."),
    mark("The draft had proposed it."),
    mark("The draft had proposed it, and it was accepted."),
)
_CORRECTED = SentenceTemplate(
    mark("A quick guess had predicted something else here, and was rejected."),
    mark("The draft had proposed another token here, which was rejected."),
    mark("The draft had proposed another token here, which was rejected: this is the correction."),
)
_BONUS = SentenceTemplate(
    mark("Every guess before it was right, so it came for free."),
    mark("Every drafted token before it was accepted, so it came as a bonus."),
    mark("Every drafted token before it was accepted, so it came as a bonus of the same pass."),
)
_FORCED = SentenceTemplate(
    mark("{name} was written by a setting, not chosen: the model alone gave it {raw}."),
    mark("{name} was written by force ({setting}), not chosen: the model gave it {raw}."),
    mark("{name} was forced by {setting}: raw p = {raw}, raw rank {rank}; it is no sample of p."),
)
_ORIGINS: dict[Origin, SentenceTemplate] = {"draft": _DRAFTED, "correction": _CORRECTED, "bonus": _BONUS}


def explain_token(event: TokenChosen) -> Sentence:
    """Explain why a token was chosen, at the current level of detail and language."""
    if is_remote(event):
        return explain_remote_token(event)
    if event.origin == "forced":
        return _explain_forced(event)
    return together(
        _explain_withdrawn(event),
        settings.explain_overruled(event) or settings.explain_largest_change(event),
        settings.explain_largest_cut(event),
        _EXPLAINERS.get(event.method, _explain_other)(event),
        _explain_origin(event),
    )


_WITHDRAWN = SentenceTemplate(
    mark("{phrase} had been written here; it is to be avoided, so it was taken back."),
    mark("{phrase} had been written here and was withdrawn, because it contains “{word}”."),
    mark("{phrase} was withdrawn (contains “{word}”; p = {raw} for its first token, forbidden here since)."),
)


def _explain_withdrawn(event: TokenChosen) -> str:
    """Explain what had been written at this place before, at most the last three."""
    shown = [
        _WITHDRAWN.say(
            phrase=quote("".join(token.text for token in one.tokens)),
            word=one.phrase,
            raw=share(one.tokens[0].raw_probability) if one.tokens else "",
        )
        for one in event.withdrawn[-3:]
    ]
    return join_sentences(*map(str, shown))


def _explain_forced(event: TokenChosen) -> Sentence:
    """Explain a token that a setting wrote: the first stage that left only this token names the setting."""
    names = {processor.name for processor in registry.values() if processor.forces is not None}
    forcing = [stage for stage in event.funnel if stage.name in names and stage.survivors == 1]
    setting = stage_phrase(forcing[0]) if forcing else tr("a setting")
    return _FORCED.say(**_processed_fields(event), setting=setting)


def _processed_fields(event: TokenChosen) -> dict[str, str]:
    """Return the sentence fields after processing, with the raw probability and rank."""
    return {
        "name": quote(event.piece, event.is_special),
        "share": final_share(event),
        "log": format_log(event.log_probability),
        "raw": share(event.raw_probability),
        "rank": f"{event.rank:,}",
        "entropy": format_log(event.entropy),
    }


def _explain_greedy(event: TokenChosen) -> Sentence:
    facts = _processed_fields(event)
    if is_only_survivor(event):
        return _ONLY.say(**facts)
    if min(event.raw_probability, event.probability) > CERTAIN:
        return _CERTAIN_OF.say(**facts)
    rival = runner_up(event)
    if rival is None:
        return _MOST_LIKELY.say(**facts)
    facts |= quote_both(event.piece, rival.text, event.is_special, rival.special)
    if rival.probability >= event.probability:
        return _TIE.say(**facts)
    facts["share"], facts["rival"] = format_share_pair(event.probability, rival.probability)
    return _AHEAD.say(**facts)


def _explain_sampled(event: TokenChosen) -> Sentence:
    if is_only_survivor(event):
        return _ONLY_DRAWN.say(**_processed_fields(event))
    if event.probability > _NEARLY_ALL:
        return _HARDLY_ANOTHER.say(**_processed_fields(event))
    return sampling_template(event).say(**_processed_fields(event), **rank_fields(event))


def _explain_dola(event: TokenChosen) -> Sentence:
    if event.layer_choice is None:
        return _explain_sampled(event) if event.method == "dola_sampled" else _explain_greedy(event)
    return choice.explain_dola(event, event.layer_choice)


def _raw_fields(event: TokenChosen) -> dict[str, str]:
    """Return the sentence fields of the raw distribution."""
    facts = _processed_fields(event) | {
        "share": share(event.raw_probability),
        "log": format_log(event.raw_log_probability),
        "ordinal": ordinal(event.rank),
    }
    return facts


def _explain_beam(event: TokenChosen) -> Sentence:
    """Explain a token of beam search with raw probabilities: a search's scores belong to whole texts."""
    facts = _raw_fields(event)
    if event.rank == 1:
        return _BEAM_FIRST.say(**facts)
    rival = max((item for item in event.alternatives if item.rank < event.rank),
                key=lambda item: item.raw_probability, default=None)  # fmt: skip
    if rival is None:
        return _BEAM_NTH.say(**facts)
    facts["share"], facts["rival"] = format_share_pair(event.raw_probability, rival.raw_probability)
    return _BEAM_BEHIND.say(**facts | quote_both(event.piece, rival.text, event.is_special, rival.special))


def _explain_scored(event: TokenChosen) -> Sentence:
    """Explain a token of a given text: nothing was chosen, the model only rates it."""
    facts = _raw_fields(event)
    if event.rank == 1:
        return _SCORED_FIRST.say(**facts)
    first = next((item for item in event.alternatives if item.rank == 1), None)
    if first is None:
        return _SCORED_NTH.say(**facts)
    facts["share"], facts["rival"] = format_share_pair(event.raw_probability, first.raw_probability)
    return _SCORED_BEHIND.say(**facts | quote_both(event.piece, first.text, event.is_special, first.special))


def _explain_other(event: TokenChosen) -> Sentence:
    """Explain a token that a method with a name of its own chose: only the result is known, not the rule."""
    facts = _processed_fields(event) | rank_fields(event)
    if is_only_survivor(event):
        return _ONLY.say(**facts)
    template = _OTHER_FIRST if final_rank(event) == 1 else _OTHER_NTH
    return template.say(**facts, method=quote(event.method, special=False))


_EXPLAINERS = {
    "beam": _explain_beam,
    "greedy": _explain_greedy,
    "sampled": _explain_sampled,
    "contrastive": choice.explain_contrastive,
    "dola": _explain_dola,
    "dola_sampled": _explain_dola,
    "scored": _explain_scored,
}


def _explain_origin(event: TokenChosen) -> str:
    """Explain the role of a draft."""
    return _ORIGINS[event.origin].say() if event.origin in _ORIGINS else ""
