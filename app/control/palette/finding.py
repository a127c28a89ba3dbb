"""Finding by a few letters: in their order, anywhere in a title; beginnings of words count most.

Each letter that is found scores; more where a word begins there or where it follows the letter found before it. The
best way to lay the letters into a title is found as an alignment is, place by place (Smith and Waterman, 1981,
https://doi.org/10.1016/0022-2836(81)90087-5, without mismatches).
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

FOUND, BEGINS_WORD, BEGINS_ALL, FOLLOWS = 1.0, 8.0, 10.0, 6.0
SKIPPED, LENGTH = 0.1, 0.02
"""What each letter between two that are found costs, and each letter of the whole title."""
_NEVER = float("-inf")


class Match(NamedTuple):
    """How well a title fits, and which of its letters were found."""

    score: float
    places: tuple[int, ...]


def match(query: str, text: str) -> Match | None:
    """How `text` holds every word of `query`, each word's letters in their order; None where it does not."""
    score, places = -LENGTH * len(text), list[int]()
    for word in query.split():
        found = _match_word(_folded(word), text)
        if found is None:
            return None
        score += found.score
        places += found.places
    return Match(score, tuple(sorted(set(places))))


@lru_cache(maxsize=4096)
def _folded(text: str) -> str:
    """In small letters, each still in its place."""
    return "".join(letter.lower()[:1] or letter for letter in text)


@lru_cache(maxsize=4096)
def _worth(text: str) -> tuple[float, ...]:
    """What finding each letter is worth by itself."""
    befores = " " + text
    begins = [
        letter.isalnum() and (not before.isalnum() or not letter.isascii())  # each sign of Chinese begins a word
        for before, letter in zip(befores, text, strict=False)
    ]
    worth = [FOUND + BEGINS_WORD * is_begin for is_begin in begins]
    if worth:
        worth[0] = FOUND + BEGINS_ALL
    return tuple(worth)


def _holds(word: str, text: str) -> bool:
    place = -1
    for letter in word:
        place = text.find(letter, place + 1)
        if place < 0:
            return False
    return True


def _match_word(word: str, whole: str) -> Match | None:
    """The best places for the letters of one word."""
    text = _folded(whole)
    if not _holds(word, text):
        return None
    worth = _worth(whole)
    scores: list[float] = []
    came_from: list[list[int]] = []
    for number, letter in enumerate(word):
        scores, back = _next_row(letter, text, worth, scores if number else None)
        came_from.append(back)
    end = max(range(len(text)), key=scores.__getitem__)
    places = [end]
    for back in reversed(came_from[1:]):
        places.append(back[places[-1]])
    return Match(scores[end], tuple(reversed(places)))


def _next_row(
    letter: str, text: str, worth: tuple[float, ...], before: list[float] | None
) -> tuple[list[float], list[int]]:
    """Best scores with `letter` found at each place, and where the letter before it is then."""
    scores, back = [_NEVER] * len(text), [-1] * len(text)
    best, best_at = _NEVER, -1  # of the letters before, what skips cost by now taken off
    for place, here in enumerate(text):
        if here == letter:
            if before is None:
                scores[place] = worth[place]
            else:
                follows = before[place - 1] + FOLLOWS if place else _NEVER
                scores[place] = max(best, follows) + worth[place]
                back[place] = place - 1 if follows >= best else best_at
        if before is not None:
            best -= SKIPPED
            if place and before[place - 1] > best:
                best, best_at = before[place - 1], place - 1
    return scores, back
