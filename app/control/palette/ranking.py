"""Which entries fit what is typed, the best first; with nothing typed, those used last before all others,
and what can be done now before what cannot."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from app.control.palette.entry import PaletteEntry
from app.control.palette.finding import EXACT, PREFIX, SUBSTRING, WORD, TitleMatch, match, match_fuzzy

SYNONYM, EXACT_SYNONYM = 500.0, 700.0
"""The score of an entry that is found by another name than its title: by the beginning of one of its words, or by the
whole of it."""
RECENTLY_USED, UNAVAILABLE = 40.0, 150.0
"""Scores for what was used lately, and against what cannot be done now."""
MAX_ROWS = 200
"""Rows that are worth showing."""


Matcher = Callable[[str, str], TitleMatch | None]


class RankedEntry(NamedTuple):
    """An entry, and which letters of its title were typed."""

    entry: PaletteEntry
    positions: tuple[int, ...] = ()


def rank_entries(entries: Sequence[PaletteEntry], query: str, recent: Sequence[str]) -> list[RankedEntry]:
    """The entries that fit `query`, the best first; `recent` are the keys of those used last, the latest first."""
    if not query.split():
        recent_index = {key: index for index, key in enumerate(recent)}
        return [
            RankedEntry(entry)
            for entry in sorted(entries, key=lambda one: (bool(one.reason), recent_index.get(one.key, MAX_ROWS)))
        ]
    for way in (match, match_fuzzy):
        matches = [(entry, best) for entry in entries if (best := _best(query, entry, way)) is not None]
        if matches:
            break
    ranked = sorted(matches, key=lambda pair: -_score(pair[0], pair[1], recent))
    return [RankedEntry(entry, best.positions) for entry, best in ranked[:MAX_ROWS]]


def _score(entry: PaletteEntry, best: TitleMatch, recent: Sequence[str]) -> float:
    return best.score + RECENTLY_USED * (entry.key in recent) - entry.penalty - UNAVAILABLE * bool(entry.reason)


def _best(query: str, entry: PaletteEntry, matcher: Matcher) -> TitleMatch | None:
    """The better of the matches by the title and by the other names, whose letters are not to be seen."""
    own = matcher(query, entry.title)
    if own is not None and own.score > EXACT_SYNONYM:
        return own
    others = [_by_synonym(found) for name in entry.aliases if (found := matcher(query, name)) is not None]
    if own is None and not others:
        return _match_across_names(query, entry, matcher)
    return max((item for item in (own, *others) if item is not None), key=lambda item: item.score)


def _by_synonym(title_match: TitleMatch) -> TitleMatch:
    """The match by another name: it counts less than one by the title."""
    if title_match.score > PREFIX:
        return TitleMatch(EXACT_SYNONYM - (EXACT - title_match.score), ())
    if title_match.score > SUBSTRING:
        return TitleMatch(SYNONYM - (PREFIX - title_match.score) / 4, ())
    return TitleMatch(title_match.score / 2, ())


def _match_across_names(query: str, entry: PaletteEntry, matcher: Matcher) -> TitleMatch | None:
    """A query of several words of which each is found in the title or in one of the other names."""
    words = query.split()
    if len(words) < 2:
        return None
    scores = []
    for word in words:
        best = _best(word, entry, matcher)
        if best is None:
            return None
        scores.append(best.score)
    return TitleMatch(min(*scores, SYNONYM) - WORD / 4, ())
