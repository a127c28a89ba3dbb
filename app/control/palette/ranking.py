"""Which entries fit what is typed, the best first; with nothing typed, those used last before all others,
and what can be done now before what cannot."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from app.control.palette.entry import PaletteEntry
from app.control.palette.finding import EXACT, PART, PREFIX, WORD, TitleMatch, match, nearly

SYNONYM, EXACT_SYNONYM = 500.0, 700.0
"""The score of an entry that is found by another name than its title: by the beginning of one of its words, or by the
whole of it."""
USED_LATELY, CANNOT = 40.0, 150.0
"""Scores for what was used lately, and against what cannot be done now."""
MOST = 200
"""Rows that are worth showing."""


Way = Callable[[str, str], TitleMatch | None]


class RankedEntry(NamedTuple):
    """An entry, and which letters of its title were typed."""

    entry: PaletteEntry
    places: tuple[int, ...] = ()


def found(entries: Sequence[PaletteEntry], query: str, recent: Sequence[str]) -> list[RankedEntry]:
    """The entries that fit `query`, the best first; `recent` are the keys of those used last, the latest first."""
    if not query.split():
        lately = {key: place for place, key in enumerate(recent)}
        return [
            RankedEntry(entry)
            for entry in sorted(entries, key=lambda one: (bool(one.reason), lately.get(one.key, MOST)))
        ]
    for way in (match, nearly):
        fitting = [(entry, best) for entry in entries if (best := _best(query, entry, way)) is not None]
        if fitting:
            break
    ranked = sorted(fitting, key=lambda pair: -_score(pair[0], pair[1], recent))
    return [RankedEntry(entry, best.places) for entry, best in ranked[:MOST]]


def _score(entry: PaletteEntry, best: TitleMatch, recent: Sequence[str]) -> float:
    return best.score + USED_LATELY * (entry.key in recent) - entry.behind - CANNOT * bool(entry.reason)


def _best(query: str, entry: PaletteEntry, way: Way) -> TitleMatch | None:
    """The better of the matches by the title and by the other names, whose letters are not to be seen."""
    own = way(query, entry.title)
    if own is not None and own.score > EXACT_SYNONYM:
        return own
    others = [_by_synonym(found) for name in entry.also if (found := way(query, name)) is not None]
    if own is None and not others:
        return _spread(query, entry, way)
    return max((item for item in (own, *others) if item is not None), key=lambda item: item.score)


def _by_synonym(found: TitleMatch) -> TitleMatch:
    """The match by another name: it counts less than one by the title."""
    if found.score > PREFIX:
        return TitleMatch(EXACT_SYNONYM - (EXACT - found.score), ())
    if found.score > PART:
        return TitleMatch(SYNONYM - (PREFIX - found.score) / 4, ())
    return TitleMatch(found.score / 2, ())


def _spread(query: str, entry: PaletteEntry, way: Way) -> TitleMatch | None:
    """A query of several words of which each is found in the title or in one of the other names."""
    words = query.split()
    if len(words) < 2:
        return None
    scores = []
    for word in words:
        best = _best(word, entry, way)
        if best is None:
            return None
        scores.append(best.score)
    return TitleMatch(min(*scores, SYNONYM) - WORD / 4, ())
