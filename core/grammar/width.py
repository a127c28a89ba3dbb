"""The length of the shortest text that a regular expression matches, read off its syntax."""

from __future__ import annotations

_QUANTIFIERS = {"*": 0, "+": 1, "?": 0}
_MOST = 1_000_000


def shortest_match(pattern: str) -> int:
    """Characters, or fewer where the syntax is a rarer one (flags, look-around, Unicode classes count as nothing)."""
    try:
        return min(_Reader(pattern).alternatives(), _MOST)
    except (IndexError, ValueError, RecursionError):
        return 0


class _Reader:
    """Goes through a pattern once, from left to right."""

    def __init__(self, pattern: str) -> None:
        self._pattern, self._place = pattern, 0

    def alternatives(self) -> int:
        """Up to a closing bracket or the end: the shortest of what `|` divides."""
        widths = [self._sequence()]
        while self._next() == "|":
            self._place += 1
            widths.append(self._sequence())
        return min(widths)

    def _next(self) -> str:
        return self._pattern[self._place : self._place + 1]

    def _sequence(self) -> int:
        width = 0
        while self._next() not in ("", "|", ")"):
            width += self._item() * self._times()
        return width

    def _item(self) -> int:
        sign = self._next()
        self._place += 1
        if sign == "(":
            return self._group()
        if sign == "[":
            self._skip_class()
        if sign == "\\":
            return self._escape()
        return 0 if sign in "^$" else 1

    def _group(self) -> int:
        counts = True
        if self._next() == "?":
            counts = self._pattern[self._place : self._place + 2] == "?:"
            if not counts:
                raise ValueError(self._pattern)  # flags and names: what they do is not told here
            self._place += 2
        width = self.alternatives()
        self._place += 1
        return width

    def _skip_class(self) -> None:
        self._place += self._next() == "^"
        self._place += self._next() == "]"
        while self._next() != "]":
            if self._next() == "[":
                raise ValueError(self._pattern)  # classes in classes
            self._place += 2 if self._next() == "\\" else 1
            if not self._next():
                raise ValueError(self._pattern)
        self._place += 1

    def _escape(self) -> int:
        sign = self._next()
        self._place += 1
        if sign in "pPxuUQ0123456789":
            raise ValueError(self._pattern)
        return 0 if sign in "bBAzZ" else 1

    def _times(self) -> int:
        times = 1
        while ((sign := self._next()) and sign in _QUANTIFIERS) or sign == "{":
            if sign == "{":
                end = self._pattern.index("}", self._place)
                times *= int(self._pattern[self._place + 1 : end].partition(",")[0] or 0)
                self._place = end + 1
            else:
                self._place += 1
                times *= _QUANTIFIERS[sign]
            self._place += self._next() == "?"
        return times
