"""Which entries fit what is typed, the best first; with nothing typed, those used last before all others,
and what can be done now before what cannot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from app.control.palette.entry import Entry
from app.control.palette.finding import Match, match

ELSEWHERE = 0.9
"""What a word counts that is not in the title but in another name."""
USED_LATELY, CANNOT = 4.0, 12.0
"""Scores for what was used lately, and against what cannot be done now."""
FAR = 0.4
"""What has less than this part of the best one's score only happens to have those letters."""
MOST = 200
"""Rows that are worth showing."""


class Found(NamedTuple):
    """An entry, and which letters of its title were typed."""

    entry: Entry
    places: tuple[int, ...] = ()


def found(entries: Sequence[Entry], query: str, recent: Sequence[str]) -> list[Found]:
    """The entries that fit `query`, the best first; `recent` are the keys of those used last, the latest first."""
    if not query.split():
        lately = {key: place for place, key in enumerate(recent)}
        return [
            Found(entry) for entry in sorted(entries, key=lambda one: (bool(one.reason), lately.get(one.key, MOST)))
        ]
    fitting = [(entry, best) for entry in entries if (best := _best(query, entry)) is not None]
    least = FAR * max((best.score for _entry, best in fitting), default=0.0)
    near = [(entry, best) for entry, best in fitting if best.score >= least]
    ranked = sorted(near, key=lambda pair: -_score(pair[0], pair[1], recent))
    return [Found(entry, best.places) for entry, best in ranked[:MOST]]


def _score(entry: Entry, best: Match, recent: Sequence[str]) -> float:
    return best.score + USED_LATELY * (entry.key in recent) - entry.behind - CANNOT * bool(entry.reason)


def _best(query: str, entry: Entry) -> Match | None:
    """By the title, or by another name, whose letters are not to be seen."""
    own = match(query, entry.title)
    others = [Match(ELSEWHERE * found.score, ()) for name in entry.also if (found := match(query, name)) is not None]
    return max((item for item in (own, *others) if item is not None), key=lambda item: item.score, default=None)
