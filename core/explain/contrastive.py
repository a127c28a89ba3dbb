"""Contrastive search in words: how likely a candidate was, against how much it resembles the text so far."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.explain.number_formats import format_score, format_share_pair, share
from core.explain.sentence import Saying, Sentence, SentenceNumber
from core.explain.words import decimal, quote, quote_both
from resources import depth
from resources.language import mark, tr

if TYPE_CHECKING:
    from core.events import Alternative, TokenChosen

_BEST = Saying(
    mark("{name} was the best mix of likely ({share}) and new."),
    mark("{name} had the best balance of likelihood ({share}) and novelty."),
    mark("{name} had the largest (1 − α)·p − α·max cos: p = {share}."),
)
_ONLY = Saying(
    mark("{name} was the only one to choose from."),
    mark("{name} was the only candidate."),
    mark("{name} was the only candidate with p > 0: p = {share}."),
)
_BALANCED = Saying(
    mark("{other} was likelier ({rival}), but more like what was written before, so {name} ({share}) was the better "
         "mix of likely and new."),
    mark("{other} was likelier ({rival}), but resembled the text before it more ({against}), so {name} with {share} "
         "had the better balance."),
    mark("{name}: p = {share}, max cos = {likeness}, score {score}; {other}: p = {rival}, max cos = {likeness2}, score "
         "{score2}."),
)  # fmt: skip
_AHEAD = Saying(
    mark("{name} was the likeliest of {count} ({share}), and new enough to stay ahead of {other}."),
    mark("{name} was the likeliest of {count} candidates ({share}), and with a likeness of {likeness} to the text "
         "before it still the best balanced: its score is {score}, that of {other} {score2}."),
    mark("{name}, the likeliest of {count}: p = {share}, max cos = {likeness}, score {score}; second is {other} with "
         "score {score2}."),
)  # fmt: skip


def explain_contrastive(event: TokenChosen) -> Sentence:
    """Why this candidate, with the figures of the one it was chosen before."""
    tried = [item for item in event.alternatives if item.score is not None and item.probability > 0]
    mine = next((item for item in tried if item.id == event.id), None)
    facts = {"name": quote(event.piece, event.is_special), "share": share(event.probability)}
    if mine is None:
        return _BEST.say(**facts)
    if len(tried) == 1:
        return _ONLY.say(**facts)
    likelier = max(tried, key=lambda item: item.probability)
    return (
        _explain_ahead(mine, tried) if likelier.probability <= mine.probability else _explain_balanced(mine, likelier)
    )


def _explain_balanced(mine: Alternative, likelier: Alternative) -> Sentence:
    rival, own = format_share_pair(likelier.probability, mine.probability)
    facts = {**quote_both(mine.text, likelier.text, mine.special, likelier.special), "share": own, "rival": rival}
    return _BALANCED.say(**facts, **_scores_of_both(mine, likelier), against=_compared_similarities(likelier, mine))


def _explain_ahead(mine: Alternative, tried: list[Alternative]) -> Sentence:
    second = max((item for item in tried if item is not mine), key=lambda item: item.score or 0.0)
    facts = {**quote_both(mine.text, second.text, mine.special, second.special), "share": share(mine.probability)}
    return _AHEAD.say(**facts, **_scores_of_both(mine, second), count=f"{len(tried)}")


def _scores_of_both(mine: Alternative, other: Alternative) -> dict[str, str]:
    """Likeness and score of both."""
    digits = depth.pick(2, 2, 4)
    return {
        "likeness": decimal(mine.degeneration_penalty or 0.0, digits),
        "likeness2": decimal(other.degeneration_penalty or 0.0, digits),
        "score": format_score(mine.score or 0.0),
        "score2": format_score(other.score or 0.0),
    }


def _compared_similarities(likelier: Alternative, mine: Alternative) -> SentenceNumber:
    """Both likenesses, with as many digits as tell them apart."""
    digits = 2
    old, new = likelier.degeneration_penalty or 0.0, mine.degeneration_penalty or 0.0
    while decimal(old, digits) == decimal(new, digits) and digits < 6:
        digits += 1
    return SentenceNumber(tr("{one} against {other}").format(one=decimal(old, digits), other=decimal(new, digits)))
