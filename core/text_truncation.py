"""Texts cut short between the characters that a reader sees, never inside one of them.

A family of emoji, a flag or a letter with its accents is several code points. What goes on the one before it is told by
Unicode's own data, as in its rules for grapheme clusters (UAX #29), but for the jamo of Hangul: models write syllables.
"""

from __future__ import annotations

import unicodedata

_JOINER = "\u200d"


def cut_short(text: str, most: int) -> str:
    """The text if it has at most `most` code points, else the beginning of it with an ellipsis, as long as that."""
    return text if len(text) <= most else f"{beginning(text, most - 1).rstrip()}…"


def beginning(text: str, most: int) -> str:
    """The longest beginning of at most `most` code points that ends between two characters."""
    end = min(max(most, 0), len(text))
    while 0 < end < len(text) and _continues_character(text, end):
        end -= 1
    return text[:end]


def _continues_character(text: str, place: int) -> bool:
    """Whether what stands at `place` belongs to the character before it."""
    sign, before = text[place], text[place - 1]
    if sign == _JOINER or before == _JOINER or unicodedata.category(sign) in ("Mn", "Mc", "Me"):
        return True
    if "\U0001f3fb" <= sign <= "\U0001f3ff" or "\U000e0020" <= sign <= "\U000e007f":
        return True  # the tone of a skin, the letters of a region's flag
    return _is_flag(sign) and _flag_letters_before(text, place) % 2 == 1


def _is_flag(sign: str) -> bool:
    return "\U0001f1e6" <= sign <= "\U0001f1ff"


def _flag_letters_before(text: str, place: int) -> int:
    """How many halves of flags stand right before `place`: two make one."""
    first = place
    while first > 0 and _is_flag(text[first - 1]):
        first -= 1
    return place - first
