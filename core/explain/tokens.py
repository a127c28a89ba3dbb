"""Why this token, in a few plain sentences made of the step's own figures: each of them is true of the step.

What the settings forbade or changed comes first, then what was cut, then the choice, then what a draft had to do with
it. Shares are those after the settings unless a sentence says “by the model alone”.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from core.explain import choice, settings
from core.explain.choice import is_only_survivor, rank_fields, runner_up, sampling_template
from core.explain.sentence import Saying, Sentence, together
from core.explain.words import format_log, format_share_pair, ordinal, quote, quote_both, share
from resources.language import mark

if TYPE_CHECKING:
    from core.events import Origin, TokenChosen

_UNKNOWN = Saying(
    mark("The engine wrote {name}, and does not tell how likely that was."),
    mark("The engine wrote {name}, and does not tell how likely it was."),
    mark("The engine wrote {name}; neither p nor the rank is told."),
)
_FIRST = Saying(
    mark("{name} is what the model likes best here: {share}."),
    mark("{name} had {share} by the model alone, the most of all."),
    mark("{name} had raw p = {share} (ln p = {log}), raw rank 1; H is not told."),
)
_NTH = Saying(
    mark("{name} is the {ordinal} best here for the model: {share}."),
    mark("{name} had {share} by the model alone, the {ordinal} most likely."),
    mark("{name} had raw p = {share} (ln p = {log}), raw rank {rank}; H is not told."),
)
_NOT_LISTED = Saying(
    mark("{name} had {share}, and is none of the {count} that the model likes best here."),
    mark("{name} had {share} by the model alone, and was none of the {count} most likely that the engine told."),
    mark("{name} had raw p = {share} (ln p = {log}), raw rank above {count}; H is not told."),
)
_AFTER = Saying(
    mark("{name} had {share} once the temperature had acted; what it had before, the engine does not tell."),
    mark("{name} had {share} after the temperature; what the model alone held, the engine does not tell."),
    mark("{name} had p = {share} (ln p = {log}) after the temperature; raw p, rank and H are not told."),
)
_GIVEN = Saying(
    mark("It stands in the text: nothing was chosen."),
    mark("It was given by the text."),
    mark("It was given."),
)
_SETTINGS = Saying(
    mark("What the settings made of that, the engine does not tell."),
    mark("What the settings made of that, the engine does not tell."),
    mark("The final p is not told."),
)


def is_remote(event: TokenChosen) -> bool:
    """Whether an engine on another machine chose it: none tells the entropy, which every step of ours has."""
    return math.isnan(event.entropy)


def explain_remote_token(event: TokenChosen) -> Sentence:
    """What was told of the step, at the depth and in the language of now."""
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
    told = sum(item.rank > 0 for item in event.alternatives)
    saying = _FIRST if event.rank == 1 else _NTH if event.rank else _NOT_LISTED
    return saying.say(
        name=quote(event.piece, event.is_special),
        share=share(event.raw_probability), log=format_log(event.raw_log_probability),
        rank=f"{event.rank:,}", ordinal=ordinal(event.rank), count=f"{told}",
    )  # fmt: skip


_CERTAIN = 0.95
_NEARLY_ALL = 0.9995

_ONLY = Saying(
    mark("Only {name} was left."),
    mark("Only {name} was left."),
    mark("{name} is the only survivor: p = {share}."),
)
_CERTAIN_OF = Saying(
    mark("The model was nearly certain of {name}: {share}."),
    mark("{name} had {share}: the model was nearly certain."),
    mark("{name} is the argmax with p = {share} (ln p = {log}); raw p = {raw}, H = {entropy} nats."),
)
_MOST_LIKELY = Saying(
    mark("{name} is what the model likes best here, {share}, and the best is always taken."),
    mark("{name} had {share}, the most of all, so greedy decoding took it."),
    mark("{name} is the argmax with p = {share} (ln p = {log}); raw p = {raw}, raw rank {rank}."),
)
_TIE = Saying(
    mark("The model likes {name} and {other} equally well, {share} each; {name} was taken."),
    mark("{name} and {other} had {share} each, the most of all; greedy decoding took {name}."),
    mark("{name} and {other} share the largest p = {share} (ln p = {log}); the argmax is {name}."),
)
_AHEAD = Saying(
    mark("{name} is what the model likes best here, {share}; next comes {other}, {rival}."),
    mark("{name} had {share}, the most of all, ahead of {other} with {rival}."),
    mark("{name} is the argmax with p = {share} (ln p = {log}), ahead of {other} with p = {rival}; raw rank {rank}."),
)
_ONLY_DRAWN = Saying(
    mark("Only {name} was left, so no dice were needed."),
    mark("Only {name} was left, so no dice were needed."),
    mark("{name} is the only survivor: p = {share}, so no dice were needed."),
)
_HARDLY_ANOTHER = Saying(
    mark("{name} had {share}: the dice could hardly choose another."),
    mark("{name} had {share}: the dice could hardly choose another."),
    mark("{name} had p = {share} (ln p = {log}), H = {entropy} nats before the settings."),
)
_BEAM_FIRST = Saying(
    mark("{name} is what the model likes best here, {share}, and the search kept it."),
    mark("{name} had {share} by the model alone, the most of all here, and the search kept it."),
    mark("{name} has raw p = {share} (ln p = {log}), raw rank 1; the search ranks whole texts by Σ ln p, and kept it."),
)
_BEAM_BEHIND = Saying(
    mark("Here the model likes {other} better, {rival} against {share} for {name}; but the search compares whole texts,"
         " and kept one that has {name}."),
    mark("{name} had {share} by the model alone, less than {other} with {rival}; but the search compares whole texts, "
         "and kept one that has it."),
    mark("{name} has raw p = {share} (ln p = {log}), raw rank {rank}, behind {other} with p = {rival}; the search ranks"
         " whole texts by Σ ln p, and kept one that has it."),
)  # fmt: skip
_BEAM_NTH = Saying(
    mark("{name} is only the {ordinal} best here, {share}; but the search compares whole texts, and kept one that has "
         "it."),
    mark("{name} had {share} by the model alone, the {ordinal} most likely; but the search compares whole texts, and "
         "kept one that has it."),
    mark("{name} has raw p = {share} (ln p = {log}), raw rank {rank}; the search ranks whole texts by Σ ln p, and kept "
         "one that has it."),
)  # fmt: skip
_SCORED_FIRST = Saying(
    mark("{name} stands in the text, and it is what the model would have put here: {share}."),
    mark("{name} was given by the text, and it is the model's first choice here, with {share}."),
    mark("{name} was given: p = {share} (ln p = {log}), rank 1, H = {entropy} nats."),
)
_SCORED_NTH = Saying(
    mark("{name} stands in the text; for the model it is the {ordinal} best here, {share}."),
    mark("{name} was given by the text; the model had it as the {ordinal} most likely, with {share}."),
    mark("{name} was given: p = {share} (ln p = {log}), rank {rank}, H = {entropy} nats."),
)
_SCORED_BEHIND = Saying(
    mark("{name} stands in the text; for the model it is the {ordinal} best here, {share}. It would have put {other}: "
         "{rival}."),
    mark("{name} was given by the text; the model had it as the {ordinal} most likely, with {share}, and would have "
         "put {other} first, with {rival}."),
    mark("{name} was given: p = {share} (ln p = {log}), rank {rank}, H = {entropy} nats; rank 1 is {other} with "
         "p = {rival}."),
)  # fmt: skip
_DRAFTED = Saying(
    mark("A quick guess had named it before."),
    mark("The draft had proposed it."),
    mark("The draft had proposed it, and it was accepted."),
)
_CORRECTED = Saying(
    mark("A quick guess had named something else here, and was turned down."),
    mark("The draft had proposed something else here, which was refused."),
    mark("The draft had proposed something else here, which was refused: this is the correction."),
)
_BONUS = Saying(
    mark("All that was guessed before it was right, so it came for nothing."),
    mark("All that was drafted before it was accepted, so it came as a bonus."),
    mark("All that was drafted before it was accepted, so it came as a bonus of the same pass."),
)
_ORIGINS: dict[Origin, Saying] = {"draft": _DRAFTED, "correction": _CORRECTED, "bonus": _BONUS}


def explain_token(event: TokenChosen) -> Sentence:
    """Why it was chosen, at the depth and in the language of now; a string that knows its figures."""
    if is_remote(event):
        return explain_remote_token(event)
    return together(
        settings.explain_overruled(event) or settings.explain_largest_change(event), settings.explain_largest_cut(event), _EXPLAINERS[event.method](event),
        _explain_origin(event),
    )  # fmt: skip


def _processed_fields(event: TokenChosen) -> dict[str, str]:
    """Figures after the settings, and what the model alone held."""
    return {
        "name": quote(event.piece, event.is_special),
        "share": share(event.probability),
        "log": format_log(event.log_probability),
        "raw": share(event.raw_probability),
        "rank": f"{event.rank:,}",
        "entropy": format_log(event.entropy),
    }


def _explain_greedy(event: TokenChosen) -> Sentence:
    facts = _processed_fields(event)
    if is_only_survivor(event):
        return _ONLY.say(**facts)
    if min(event.raw_probability, event.probability) > _CERTAIN:
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
    """The model's own figures, and its first choice where that is another."""
    facts = _processed_fields(event) | {
        "share": share(event.raw_probability), "log": format_log(event.raw_log_probability), "ordinal": ordinal(event.rank),
    }  # fmt: skip
    return facts


def _explain_beam(event: TokenChosen) -> Sentence:
    """Figures are the model's own: a search's scores belong to whole texts."""
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
    """Nothing was chosen: the text says which token, the model only how likely it was."""
    facts = _raw_fields(event)
    if event.rank == 1:
        return _SCORED_FIRST.say(**facts)
    first = next((item for item in event.alternatives if item.rank == 1), None)
    if first is None:
        return _SCORED_NTH.say(**facts)
    facts["share"], facts["rival"] = format_share_pair(event.raw_probability, first.raw_probability)
    return _SCORED_BEHIND.say(**facts | quote_both(event.piece, first.text, event.is_special, first.special))


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
    """What a draft had to do with it."""
    return _ORIGINS[event.origin].say() if event.origin in _ORIGINS else ""
