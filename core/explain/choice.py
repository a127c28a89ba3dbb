"""What sentences on a choice share: what else could be taken, the place among what is left, what the dice did."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.explain.sentence import Saying
from core.explain.words import ordinal
from resources.language import mark

if TYPE_CHECKING:
    from core.events import Alternative, TokenChosen

_BEST_DRAWN = Saying(
    mark("{name} had the best chance, {share}, and the dice chose it."),
    mark("{name} had {share}, the most likely, and the dice chose it."),
    mark("{name} was drawn: p = {share} (ln p = {log}), final rank 1; raw p = {raw}, raw rank {rank}."),
)
_DRAWN = Saying(
    mark("{name} had {share}, the {ordinal} best chance, and the dice chose it."),
    mark("{name} had {share}, the {ordinal} most likely, and the dice chose it."),
    mark("{name} was drawn: p = {share} (ln p = {log}), final rank {place}; raw p = {raw}, raw rank {rank}."),
)
_BEST_ACCEPTED = Saying(
    mark("{name} had the best chance, {share}, and the dice let it pass."),
    mark("{name} had {share}, the most likely, and the dice accepted it."),
    mark("{name} was accepted, u < p ÷ q: p = {share} (ln p = {log}), final rank 1; raw p = {raw}, raw rank {rank}."),
)
_ACCEPTED = Saying(
    mark("{name} had {share}, the {ordinal} best chance, and the dice let it pass."),
    mark("{name} had {share}, the {ordinal} most likely, and the dice accepted it."),
    mark("{name} was accepted, u < p ÷ q: p = {share} (ln p = {log}), final rank {place}; raw p = {raw}, raw rank "
         "{rank}."),
)  # fmt: skip
_BEST_INSTEAD = Saying(
    mark("{name} had the best chance, {share}, and the dice chose it instead."),
    mark("{name} had {share}, the most likely, and the dice chose it instead."),
    mark("{name} was drawn from what the refused draft left of p: p = {share} (ln p = {log}), final rank 1; raw p = "
         "{raw}, raw rank {rank}."),
)  # fmt: skip
_INSTEAD = Saying(
    mark("{name} had {share}, the {ordinal} best chance, and the dice chose it instead."),
    mark("{name} had {share}, the {ordinal} most likely, and the dice chose it instead."),
    mark("{name} was drawn from what the refused draft left of p: p = {share} (ln p = {log}), final rank {place}; raw "
         "p = {raw}, raw rank {rank}."),
)  # fmt: skip
_BY_ORIGIN = {"draft": (_BEST_ACCEPTED, _ACCEPTED), "correction": (_BEST_INSTEAD, _INSTEAD)}


def sampling_template(event: TokenChosen) -> Saying:
    """What the dice did: they choose, or they judge a draft. The saying wants the token's figures and its place."""
    best, other = _BY_ORIGIN.get(event.origin, (_BEST_DRAWN, _DRAWN))
    return best if final_rank(event) == 1 else other


def final_rank(event: TokenChosen) -> int:
    """Where it stands among what is left."""
    return event.final_rank or event.rank


def rank_fields(event: TokenChosen) -> dict[str, str]:
    """The same for a sentence: `ordinal` and `place`."""
    return {"ordinal": ordinal(final_rank(event)), "place": f"{final_rank(event):,}"}


def runner_up(event: TokenChosen) -> Alternative | None:
    """The likeliest other token after the settings."""
    others = [item for item in event.alternatives if item.id != event.id and item.probability > 0]
    return max(others, key=lambda item: item.probability, default=None)


def is_only_survivor(event: TokenChosen) -> bool:
    """Whether the settings left nothing else."""
    return bool(event.funnel) and event.funnel[-1].survivors == 1
