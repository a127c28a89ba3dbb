"""Matches the query with the name of an entry by word prefixes.

Each word of the query must be the whole name, a prefix of the name, a prefix of one of its words, its initials, or a
substring; the kind of match decides the score. Scattered letters do not match. Punctuation is ignored: "top p", "topp"
and "top-p" find "Top-p". Each Chinese character starts a word.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from typing import NamedTuple

from decodescope import resources
from decodescope.app.features.palette.controller.entry import PaletteEntry
from decodescope.resources.language import LANGUAGES, closest_language, translate_to

EXACT, PREFIX, WORD, INITIALS, SUBSTRING = 1000.0, 800.0, 600.0, 450.0, 300.0
LENGTH = 0.5
"""Penalty per letter of the name, up to 100 letters: on equal matches the shorter name comes first."""
FUZZY = 100.0
"""Score of a match with a spelling mistake."""
_MAX_LENGTH = 100


class TitleMatch(NamedTuple):
    """Score of a match and the positions of the matched letters."""

    score: float
    positions: tuple[int, ...]


class _NormalizedName(NamedTuple):
    """A name normalized for matching: only letters and digits, in lower case."""

    letters: str
    positions: tuple[int, ...]
    """Position of each of `letters` in the name."""
    starts: tuple[int, ...]
    """Indices into `letters` where a word starts."""
    initials: str


def match(query: str, text: str) -> TitleMatch | None:
    """Match `text` with every word of `query`; return None if one does not match."""
    words = query.split()
    name = _normalize(text)
    typed = _letters(query)
    if not words or not typed:
        index = text.find(query.strip())
        return (
            TitleMatch(SUBSTRING, tuple(range(index, index + len(query.strip()))))
            if index >= 0 and query.strip()
            else None
        )
    penalty = LENGTH * min(len(text), _MAX_LENGTH)
    if name.letters == typed:
        return TitleMatch(EXACT - penalty, name.positions)
    if name.letters.startswith(typed):
        return TitleMatch(PREFIX - penalty, name.positions[: len(typed)])
    total, positions = 0.0, set[int]()
    typed_words = [letters for word in words if (letters := _letters(word))]
    for word in typed_words:
        found = _match_word(word, name)
        if found is None:
            return None
        total += found.score
        positions.update(found.positions)
    return TitleMatch(total / len(typed_words) - penalty, tuple(sorted(positions)))


def match_fuzzy(query: str, text: str) -> TitleMatch | None:
    """Match with typing mistakes: one letter wrong, missing, extra, or swapped with the next.

    Used if the exact search has no results.
    """
    words = [letters for word in query.split() if (letters := _letters(word))]
    name = _normalize(text)
    ends = (*name.starts[1:], len(name.letters))
    parts = [name.letters[start:end] for start, end in zip(name.starts, ends, strict=True)]
    if not words or not parts:
        return None
    for word in words:
        if _match_word(word, name) is None and not any(_is_close(word, part) for part in parts):
            return None
    return TitleMatch(FUZZY - LENGTH * min(len(text), _MAX_LENGTH), ())


def _match_word(word: str, name: _NormalizedName) -> TitleMatch | None:
    for start in name.starts:
        if name.letters.startswith(word, start):
            score = PREFIX if start == 0 else WORD
            return TitleMatch(score, name.positions[start : start + len(word)])
    index = name.initials.find(word) if len(word) > 1 else -1
    if index >= 0:
        return TitleMatch(INITIALS, tuple(name.positions[start] for start in name.starts[index : index + len(word)]))
    index = name.letters.find(word) if len(word) > 1 else -1
    if index >= 0:
        return TitleMatch(SUBSTRING, name.positions[index : index + len(word)])
    return None


@lru_cache(maxsize=1024)
def _letters(text: str) -> str:
    return _normalize(text).letters


@lru_cache(maxsize=16384)
def _normalize(text: str) -> _NormalizedName:
    letters, positions, starts = list[str](), list[int](), list[int]()
    previous = " "
    for index, letter in enumerate(text):
        if letter.isalnum():
            if not previous.isalnum() or not _is_joined(previous, letter):
                starts.append(len(letters))
            letters.append(letter.lower()[:1] or letter)
            positions.append(index)
        previous = letter
    joined = "".join(letters)
    return _NormalizedName(joined, tuple(positions), tuple(starts), "".join(joined[start] for start in starts))


def _is_joined(before: str, letter: str) -> bool:
    """Return whether a letter continues the word of the previous letter; a Chinese character starts a word."""
    return not (_is_ideograph(letter) or _is_ideograph(before))


def _is_ideograph(letter: str) -> bool:
    return "\u3400" <= letter <= "\u9fff" or "\U00020000" <= letter <= "\U0003134f"


def _is_close(word: str, part: str) -> bool:
    """Return whether `part` or its beginning is one edit away from a word of at least four letters."""
    if len(word) < 4:
        return False
    return any(_one_edit(word, part[:length]) for length in (len(word) - 1, len(word), len(word) + 1))


def _one_edit(one: str, other: str) -> bool:
    """Return whether the two differ by one wrong, missing or extra letter, or by two swapped neighbours."""
    start = 0
    while start < min(len(one), len(other)) and one[start] == other[start]:
        start += 1
    rest, other_rest = one[start:], other[start:]
    is_swapped = rest[:2] == other_rest[1::-1] and rest[2:] == other_rest[2:]
    return rest[1:] == other_rest[1:] or rest[1:] == other_rest or rest == other_rest[1:] or is_swapped


SYNONYM, EXACT_SYNONYM = 500.0, 700.0
"""Scores of entries found by a synonym: by the prefix of one of its words, or by the whole synonym."""
RECENTLY_USED, UNAVAILABLE = 40.0, 150.0
"""Score bonus for recent use, and penalty for unavailable entries."""
MAX_ROWS = 200
"""Maximum number of rows."""


Matcher = Callable[[str, str], TitleMatch | None]


class RankedEntry(NamedTuple):
    """An entry and the positions of the matched letters in its title."""

    entry: PaletteEntry
    positions: tuple[int, ...] = ()


def rank_entries(entries: Sequence[PaletteEntry], query: str, recent: Sequence[str]) -> list[RankedEntry]:
    """Return the entries that match `query`, best first; `recent`: keys of recently used entries, latest first."""
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
    """Return the best match by title or synonym; letters of synonyms are not highlighted."""
    own = matcher(query, entry.title)
    if own is not None and own.score > EXACT_SYNONYM:
        return own
    others = [_by_synonym(found) for name in entry.aliases if (found := matcher(query, name)) is not None]
    if own is None and not others:
        return _match_across_names(query, entry, matcher)
    return max((item for item in (own, *others) if item is not None), key=lambda item: item.score)


def _by_synonym(title_match: TitleMatch) -> TitleMatch:
    """Convert a match by a synonym: it scores lower than a match by the title."""
    if title_match.score > PREFIX:
        return TitleMatch(EXACT_SYNONYM - (EXACT - title_match.score), ())
    if title_match.score > SUBSTRING:
        return TitleMatch(SYNONYM - (PREFIX - title_match.score) / 4, ())
    return TitleMatch(title_match.score / 2, ())


def _match_across_names(query: str, entry: PaletteEntry, matcher: Matcher) -> TitleMatch | None:
    """Match a query whose words are found in the title and synonyms together."""
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


def with_synonyms(entry: PaletteEntry) -> PaletteEntry:
    """Return the entry with its synonyms and its names in the other languages."""
    names = (entry.title, *entry.aliases)
    foreign = (translate_to(name, code) for name in names for code in LANGUAGES)
    words = table().get(entry.key, {})
    synonyms = (word for code in LANGUAGES for word in words.get(code, ()))
    return replace(entry, aliases=tuple(dict.fromkeys((*entry.aliases, *foreign, *synonyms))))


@cache
def table() -> Mapping[str, Mapping[str, tuple[str, ...]]]:
    """Return the synonyms for each entry key, by language code."""
    text = resources.path("palette", "synonyms.toml").read_text(encoding="utf-8")
    return {
        f"{kind}.{name}": {closest_language(language): _split(words) for language, words in languages.items()}
        for kind, entries in tomllib.loads(text).items()
        for name, languages in entries.items()
    }


def _split(words: str) -> tuple[str, ...]:
    return tuple(word for part in re.split(r"[,，]", words) if (word := part.strip()))
