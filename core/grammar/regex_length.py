"""The least that a match of a regular expression holds, read off its syntax."""

from __future__ import annotations

from typing import NamedTuple

from core.grammar.length_bounds import BYTE_MEASURES, NOTHING, BoundMeasures, ByteSet, LowerBound, min_bound, sum_bounds

_QUANTIFIERS = {"*": 0, "+": 1, "?": 0}
_MAX_LENGTH = 1_000_000
_HIGH = frozenset(range(128, 256))
"""Bytes of letters beyond ASCII."""
_DIGITS = frozenset(b"0123456789")
_CLASSES = {
    "d": _DIGITS | _HIGH,
    "w": _DIGITS | frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_") | _HIGH,
    "s": frozenset(b"\t\n\v\f\r ") | _HIGH,
}
"""Classes of letters, those of other scripts included."""
_CONTROLS = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v"}


def min_match_length(pattern: str) -> int:
    """Bytes, or fewer where the syntax is a rarer one (flags, look-around, Unicode classes count as nothing)."""
    return min(int(regex_lower_bound(pattern, BYTE_MEASURES).bytes), _MAX_LENGTH)


def regex_lower_bound(pattern: str, measures: BoundMeasures) -> LowerBound:
    """The same by any measures: letters that stand there, and rows of those that a class may be."""
    try:
        return _PatternReader(pattern, measures).alternatives()
    except (IndexError, ValueError, RecursionError):
        return NOTHING


class _ByteRun(NamedTuple):
    """So many bytes in a row, none of them another than these; or a word, whose letters are known one by one."""

    size: int = 0
    letters: ByteSet = frozenset()
    word: bytes = b""

    def measure(self, measures: BoundMeasures) -> LowerBound:
        if self.word:
            return measures.of_bytes(self.word)
        return measures.of_letters(self.size, self.letters) if self.size else NOTHING

    def join(self, other: _ByteRun) -> _ByteRun | None:
        """Both as one, where that says as much."""
        if self.word and other.word:
            return _ByteRun(word=self.word + other.word)
        alike = not self.word and not other.word and self.letters == other.letters
        return _ByteRun(self.size + other.size, self.letters) if alike else None

    def repeated(self, count: int) -> _ByteRun:
        """Repeated, so many times at least: no word any more, for what stands behind it need not follow at once."""
        letters = frozenset(self.word) if self.word else self.letters
        return _ByteRun(count * (self.size or len(self.word)), letters)


class _PatternReader:
    """Goes through a pattern once, from left to right."""

    def __init__(self, pattern: str, measures: BoundMeasures) -> None:
        self._pattern, self._position, self._measures = pattern, 0, measures

    def alternatives(self) -> LowerBound:
        """Up to a closing bracket or the end: the shortest of what `|` divides."""
        ways = [self._sequence()]
        while self._next() == "|":
            self._position += 1
            ways.append(self._sequence())
        return min_bound(ways)

    def _next(self) -> str:
        return self._pattern[self._position : self._position + 1]

    def _sequence(self) -> LowerBound:
        parts: list[LowerBound | _ByteRun] = []
        while self._next() not in ("", "|", ")"):
            part, begun = self._item(), self._position
            times = self._repetitions()
            part = part.repeated(times) if self._position > begun else part
            last = parts[-1] if parts else None
            both = last.join(part) if isinstance(last, _ByteRun) and isinstance(part, _ByteRun) else None
            parts[len(parts) - (both is not None) :] = [both or part]
        return sum_bounds(part.measure(self._measures) if isinstance(part, _ByteRun) else part for part in parts)

    def _item(self) -> LowerBound | _ByteRun:
        sign = self._next()
        self._position += 1
        if sign == "(":
            return self._group()
        if sign == "[":
            return _ByteRun(1, self._class())
        if sign == "\\":
            return self._escape()
        if sign == ".":
            return _ByteRun(1, None)
        return NOTHING if sign in "^$" else _ByteRun(word=sign.encode())

    def _group(self) -> LowerBound:
        counts = True
        if self._next() == "?":
            counts = self._pattern[self._position : self._position + 2] == "?:"
            if not counts:
                raise ValueError(self._pattern)  # flags and names: what they do is not told here
            self._position += 2
        found = self.alternatives()
        self._position += 1
        return found

    def _class(self) -> ByteSet:
        """What a class may be; None where that is not told here."""
        begun = self._position
        self._position += self._next() == "^"
        first = self._position
        self._position += self._next() == "]"
        while self._next() != "]":
            if self._next() == "[":
                raise ValueError(self._pattern)  # classes in classes
            self._position += 2 if self._next() == "\\" else 1
            if not self._next():
                raise ValueError(self._pattern)
        self._position += 1
        named = _members(self._pattern[first : self._position - 1])
        if named is None or first == begun:
            return named
        return frozenset(range(256)) - (named - _HIGH)

    def _escape(self) -> LowerBound | _ByteRun:
        sign = self._next()
        self._position += 1
        if sign in "pPxuUQ0123456789":
            raise ValueError(self._pattern)
        if sign in "bBAzZ<>":
            return NOTHING
        if sign.isalpha():
            return _ByteRun(word=_CONTROLS[sign].encode()) if sign in _CONTROLS else _ByteRun(1, _CLASSES.get(sign))
        return _ByteRun(word=sign.encode())

    def _repetitions(self) -> int:
        times = 1
        while ((sign := self._next()) and sign in _QUANTIFIERS) or sign == "{":
            if sign == "{":
                end = self._pattern.index("}", self._position)
                times *= int(self._pattern[self._position + 1 : end].partition(",")[0] or 0)
                self._position = end + 1
            else:
                self._position += 1
                times *= _QUANTIFIERS[sign]
            self._position += self._next() == "?"
        return times


def _members(inside: str) -> ByteSet:
    """The bytes of what stands between the brackets of a class, or more; None where it is put together of several."""
    if any(sign in inside for sign in ("&&", "--", "~~")):
        return None
    found, place = set[int](), 0
    while place < len(inside):
        first, place = _member(inside, place)
        if first is None:
            return None
        if inside[place : place + 1] == "-" and place + 1 < len(inside):
            last, place = _member(inside, place + 1)
            if last is None or len(first) != 1 or len(last) != 1:
                return None
            found |= set(range(min(first), max(last) + 1))
            continue
        found |= first
    return frozenset(found)


def _member(inside: str, place: int) -> tuple[ByteSet, int]:
    """(what stands there, where the next begins)."""
    sign = inside[place]
    if sign != "\\":
        return (frozenset((ord(sign),)) if sign.isascii() else _HIGH), place + 1
    sign = inside[place + 1]
    if sign.isalpha() and sign not in _CONTROLS:
        return _CLASSES.get(sign), place + 2
    return (None if sign.isdigit() else frozenset(_CONTROLS.get(sign, sign).encode())), place + 2
