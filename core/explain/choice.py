"""Shared parts of sentences on a choice: the runner-up, the rank after processing, and how sampling chose."""

from __future__ import annotations

from typing import TYPE_CHECKING

from decodescope.core.explain.sentence import Sentence, SentenceNumber, SentenceTemplate
from decodescope.core.explain.words import (
    decimal,
    final_share,
    format_full,
    format_log,
    format_score,
    format_share_pair,
    is_only_survivor,
    ordinal,
    percent,
    quote,
    quote_both,
    share,
)
from decodescope.resources import depth
from decodescope.resources.language import mark, tr

if TYPE_CHECKING:
    from decodescope.core.events import Alternative, LayerChoice, TokenChosen

_BEST_DRAWN = SentenceTemplate(
    mark("{name} had the best chance, {share}, and was drawn."),
    mark("{name} was the most likely, with {share}, and was drawn."),
    mark("{name} was drawn: p = {share} (ln p = {log}), final rank 1; raw p = {raw}, raw rank {rank}."),
)
_DRAWN = SentenceTemplate(
    mark("{name} had the {ordinal} best chance, {share}, and was drawn."),
    mark("{name} was the {ordinal} most likely, with {share}, and was drawn."),
    mark("{name} was drawn: p = {share} (ln p = {log}), final rank {place}; raw p = {raw}, raw rank {rank}."),
)
_BEST_ACCEPTED = SentenceTemplate(
    mark("{name} had the best chance, {share}, and passed the random check."),
    mark("{name} was the most likely, with {share}, and was accepted at random."),
    mark("{name} was accepted, u < p ÷ q: p = {share} (ln p = {log}), final rank 1; raw p = {raw}, raw rank {rank}."),
)
_ACCEPTED = SentenceTemplate(
    mark("{name} had the {ordinal} best chance, {share}, and passed the random check."),
    mark("{name} was the {ordinal} most likely, with {share}, and was accepted at random."),
    mark("{name} was accepted, u < p ÷ q: p = {share} (ln p = {log}), final rank {place}; raw p = {raw}, raw rank "
         "{rank}."),
)  # fmt: skip
_BEST_INSTEAD = SentenceTemplate(
    mark("{name} had the best chance, {share}, and was drawn instead."),
    mark("{name} was the most likely, with {share}, and was drawn instead."),
    mark("{name} was drawn from p minus the rejected draft: p = {share} (ln p = {log}), final rank 1; raw p "
        "= {raw}, raw rank {rank}."),
)  # fmt: skip
_INSTEAD = SentenceTemplate(
    mark("{name} had the {ordinal} best chance, {share}, and was drawn instead."),
    mark("{name} was the {ordinal} most likely, with {share}, and was drawn instead."),
    mark("{name} was drawn from p minus the rejected draft: p = {share} (ln p = {log}), final rank {place}; "
        "raw p = {raw}, raw rank {rank}."),
)  # fmt: skip
_BY_ORIGIN = {"draft": (_BEST_ACCEPTED, _ACCEPTED), "correction": (_BEST_INSTEAD, _INSTEAD)}


def sampling_template(event: TokenChosen) -> SentenceTemplate:
    """Return the sentence template for a sampled token: drawn, accepted from a draft, or drawn instead of one. It needs
    the token's numbers and `rank_fields`.
    """
    best, other = _BY_ORIGIN.get(event.origin, (_BEST_DRAWN, _DRAWN))
    return best if final_rank(event) == 1 else other


def final_rank(event: TokenChosen) -> int:
    """Return the rank after processing."""
    return event.final_rank or event.rank


def rank_fields(event: TokenChosen) -> dict[str, str]:
    """Return the final rank as the sentence fields `ordinal` and `place`."""
    return {"ordinal": ordinal(final_rank(event)), "place": f"{final_rank(event):,}"}


def runner_up(event: TokenChosen) -> Alternative | None:
    """Return the likeliest other token after processing; None if there is none."""
    others = [item for item in event.alternatives if item.id != event.id and item.probability > 0]
    return max(others, key=lambda item: item.probability, default=None)


_BEST = SentenceTemplate(
    mark("{name} was the best mix of likely ({share}) and new."),
    mark("{name} had the best balance of likelihood ({share}) and novelty."),
    mark("{name} had the largest (1 − α)·p − α·max cos: p = {share}."),
)
_ONLY = SentenceTemplate(
    mark("{name} was the only one to choose from."),
    mark("{name} was the only candidate."),
    mark("{name} was the only candidate with p > 0: p = {share}."),
)
_BALANCED = SentenceTemplate(
    mark("{other} was likelier ({rival}), but more similar to the text so far, so {name} ({share}) was the "
        "better mix of likely and new."),
    mark("{other} was likelier ({rival}), but more similar to the previous text ({against}), so {name} with "
        "{share} had the better balance."),
    mark("{name}: p = {share}, max cos = {likeness}, score {score}; {other}: p = {rival}, max cos = {likeness2}, score "
         "{score2}."),
)  # fmt: skip
_AHEAD = SentenceTemplate(
    mark("{name} was the likeliest of {count} ({share}), and new enough to stay ahead of {other}."),
    mark("{name} was the likeliest of {count} candidates ({share}), and with a similarity of {likeness} to "
        "the previous text still the best balanced: its score is {score}, that of {other} {score2}."),
    mark("{name}, the likeliest of {count}: p = {share}, max cos = {likeness}, score {score}; second is {other} with "
         "score {score2}."),
)  # fmt: skip


def explain_contrastive(event: TokenChosen) -> Sentence:
    """Explain why this candidate was chosen, compared with its rival."""
    tried = [item for item in event.alternatives if item.score is not None and item.probability > 0]
    mine = next((item for item in tried if item.id == event.id), None)
    facts = {"name": quote(event.piece, event.is_special), "share": final_share(event)}
    if mine is None:
        return _BEST.say(**facts)
    if len(tried) == 1:
        return _ONLY.say(**facts)
    likelier = max(tried, key=lambda item: item.probability)
    return (
        _explain_ahead(mine, tried) if likelier.probability <= mine.probability else _explain_balanced(mine, likelier)
    )


def _explain_balanced(chosen: Alternative, likelier: Alternative) -> Sentence:
    rival, own = format_share_pair(likelier.probability, chosen.probability)
    facts = {**quote_both(chosen.text, likelier.text, chosen.special, likelier.special), "share": own, "rival": rival}
    return _BALANCED.say(**facts, **_scores_of_both(chosen, likelier), against=_compared_similarities(likelier, chosen))


def _explain_ahead(chosen: Alternative, candidates: list[Alternative]) -> Sentence:
    second = max((item for item in candidates if item is not chosen), key=lambda item: item.score or 0.0)
    facts = {**quote_both(chosen.text, second.text, chosen.special, second.special), "share": share(chosen.probability)}
    return _AHEAD.say(**facts, **_scores_of_both(chosen, second), count=f"{len(candidates)}")


def _scores_of_both(chosen: Alternative, other: Alternative) -> dict[str, str]:
    """Return the similarity and score of both."""
    digits = depth.pick(2, 2, 4)
    return {
        "likeness": decimal(chosen.degeneration_penalty or 0.0, digits),
        "likeness2": decimal(other.degeneration_penalty or 0.0, digits),
        "score": format_score(chosen.score or 0.0),
        "score2": format_score(other.score or 0.0),
    }


def _compared_similarities(likelier: Alternative, chosen: Alternative) -> SentenceNumber:
    """Return both similarities with enough digits to distinguish them."""
    digits = 2
    old, new = likelier.degeneration_penalty or 0.0, chosen.degeneration_penalty or 0.0
    while decimal(old, digits) == decimal(new, digits) and digits < 6:
        digits += 1
    return SentenceNumber(tr("{one} versus {other}").format(one=decimal(old, digits), other=decimal(new, digits)))


_ALONE = SentenceTemplate(
    mark("The model's early guess was compared with its final one, but only {name} was left to choose."),
    mark("Layer {layer} differed most from the last one, but only {name} was left to choose."),
    mark("Premature layer {layer} (JSD {divergence}); {name} is the only survivor."),
)
_EXACT = mark(
    "Premature layer {layer} (JSD {divergence}): p of {name} {old} → {new} (ln p = {log}), final rank {place}."
)
_MOVED = SentenceTemplate(
    mark("The model's early guess was compared with its final one: {name} went from {old} to {new}, the "
        "best of all."),
    mark("Layer {layer} differed most from the last one. In contrast with it, {name} went from {old} to "
        "{new}, the highest of all."),
    _EXACT,
)  # fmt: skip
_KEPT = SentenceTemplate(
    mark("The model's early guess was compared with its final one: {name} kept its {new}, the best of all."),
    mark("Layer {layer} differed most from the last one. In contrast with it, {name} kept its {new}, the "
        "highest of all."),
    _EXACT,
)  # fmt: skip
_MOVED_BEST = SentenceTemplate(
    mark("The model's early guess was compared with its final one: {name} went from {old} to {new}, the "
        "best chance, and was drawn."),
    mark("Layer {layer} differed most from the last one. In contrast with it, {name} went from {old} to "
        "{new}, the most likely, and was drawn."),
    _EXACT,
)  # fmt: skip
_KEPT_BEST = SentenceTemplate(
    mark("The model's early guess was compared with its final one: {name} kept its {new}, the best chance, "
        "and was drawn."),
    mark("Layer {layer} differed most from the last one. In contrast with it, {name} kept its {new}, the "
        "most likely, and was drawn."),
    _EXACT,
)  # fmt: skip
_MOVED_NTH = SentenceTemplate(
    mark("The model's early guess was compared with its final one: {name} went from {old} to {new}, the "
        "{ordinal} best chance, and was drawn."),
    mark("Layer {layer} differed most from the last one. In contrast with it, {name} went from {old} to "
        "{new}, the {ordinal} most likely, and was drawn."),
    _EXACT,
)  # fmt: skip
_KEPT_NTH = SentenceTemplate(
    mark("The model's early guess was compared with its final one: {name} kept its {new}, the {ordinal} "
        "best chance, and was drawn."),
    mark("Layer {layer} differed most from the last one. In contrast with it, {name} kept its {new}, the "
        "{ordinal} most likely, and was drawn."),
    _EXACT,
)  # fmt: skip


def explain_dola(event: TokenChosen, choice: LayerChoice) -> Sentence:
    """Explain how contrasting with a lower layer changed the token's probability."""
    facts = {
        "layer": f"{choice.layer}",
        "divergence": format_full(dict(choice.divergences).get(choice.layer, 0.0)),
        "name": quote(event.piece, event.is_special),
    }
    if is_only_survivor(event):
        return _ALONE.say(**facts)
    facts["old"], facts["new"] = format_share_pair(event.raw_probability, event.probability)
    facts["log"] = format_log(event.log_probability)
    is_unchanged = percent(event.raw_probability) == percent(event.probability)
    return _select_template(event, is_unchanged).say(**facts, **rank_fields(event))


def _select_template(event: TokenChosen, is_unchanged: bool) -> SentenceTemplate:
    if event.method != "dola_sampled":
        return _KEPT if is_unchanged else _MOVED
    if final_rank(event) == 1:
        return _KEPT_BEST if is_unchanged else _MOVED_BEST
    return _KEPT_NTH if is_unchanged else _MOVED_NTH
