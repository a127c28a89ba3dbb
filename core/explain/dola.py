"""DoLa in words: which layer the last one was set against, and what that made of the token's share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.explain.choice import final_rank, is_only_survivor, rank_fields
from core.explain.number_formats import format_full, format_log, format_share_pair
from core.explain.sentence import Saying, Sentence
from core.explain.words import percent, quote
from resources.language import mark

if TYPE_CHECKING:
    from core.events import LayerChoice, TokenChosen

_ALONE = Saying(
    mark("The model's early guess was held against its last one, but only {name} was left to choose."),
    mark("Layer {layer} differed most from the last one, but only {name} was left to choose."),
    mark("Premature layer {layer} (JSD {divergence}); {name} is the only survivor."),
)
_EXACT = mark(
    "Premature layer {layer} (JSD {divergence}): p of {name} {old} → {new} (ln p = {log}), final rank {place}."
)
_MOVED = Saying(
    mark("The model's early guess was held against its last one: {name} went from {old} to {new}, the most of all."),
    mark("Layer {layer} differed most from the last one. Set against its guess, {name} went from {old} to {new}, the "
         "most of all."),
    _EXACT,
)  # fmt: skip
_KEPT = Saying(
    mark("The model's early guess was held against its last one: {name} kept its {new}, the most of all."),
    mark("Layer {layer} differed most from the last one. Set against its guess, {name} kept its {new}, the most of "
         "all."),
    _EXACT,
)  # fmt: skip
_MOVED_BEST = Saying(
    mark("The model's early guess was held against its last one: {name} went from {old} to {new}, the best chance, and "
         "the dice chose it."),
    mark("Layer {layer} differed most from the last one. Set against its guess, {name} went from {old} to {new}, the "
         "most likely, and the dice chose it."),
    _EXACT,
)  # fmt: skip
_KEPT_BEST = Saying(
    mark("The model's early guess was held against its last one: {name} kept its {new}, the best chance, and the dice "
         "chose it."),
    mark("Layer {layer} differed most from the last one. Set against its guess, {name} kept its {new}, the most "
         "likely, and the dice chose it."),
    _EXACT,
)  # fmt: skip
_MOVED_NTH = Saying(
    mark("The model's early guess was held against its last one: {name} went from {old} to {new}, the {ordinal} best "
         "chance, and the dice chose it."),
    mark("Layer {layer} differed most from the last one. Set against its guess, {name} went from {old} to {new}, the "
         "{ordinal} most likely, and the dice chose it."),
    _EXACT,
)  # fmt: skip
_KEPT_NTH = Saying(
    mark("The model's early guess was held against its last one: {name} kept its {new}, the {ordinal} best chance, and "
         "the dice chose it."),
    mark("Layer {layer} differed most from the last one. Set against its guess, {name} kept its {new}, the {ordinal} "
         "most likely, and the dice chose it."),
    _EXACT,
)  # fmt: skip


def explain_dola(event: TokenChosen, choice: LayerChoice) -> Sentence:
    """What came of holding a lower layer's guess against the last one's."""
    facts = {
        "layer": f"{choice.layer}",
        "divergence": format_full(dict(choice.divergences).get(choice.layer, 0.0)),
        "name": quote(event.piece, event.is_special),
    }
    if is_only_survivor(event):
        return _ALONE.say(**facts)
    facts["old"], facts["new"] = format_share_pair(event.raw_probability, event.probability)
    facts["log"] = format_log(event.log_probability)
    kept = percent(event.raw_probability) == percent(event.probability)
    return _select_template(event, kept).say(**facts, **rank_fields(event))


def _select_template(event: TokenChosen, kept: bool) -> Saying:
    if event.method != "dola_sampled":
        return _KEPT if kept else _MOVED
    if final_rank(event) == 1:
        return _KEPT_BEST if kept else _MOVED_BEST
    return _KEPT_NTH if kept else _MOVED_NTH
