"""Why this token, of a model on another machine: what its engine told of the step, and what it did not."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from core.explain.number_formats import format_log, share
from core.explain.sentence import Saying, Sentence, together
from core.explain.words import ordinal, quote
from resources.language import mark

if TYPE_CHECKING:
    from core.events import TokenChosen

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
