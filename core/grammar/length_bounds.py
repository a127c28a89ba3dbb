"""What every text of a grammar holds at least: sums over its parts, the lesser of alternatives, the greater of
conditions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

Letters = frozenset[int] | None
"""Every byte that a part of a text may be made of; None: any."""


class LowerBound(NamedTuple):
    """A lower bound, in two measures that are kept apart since they add up differently."""

    bytes: float = 0
    seams: float = 0
    """Tokens that begin inside the parts whose bytes are known, and not at their first byte: neighbours share the token
    over that one at most. Infinite, as `bytes` is then, where there is no text at all."""

    def beside(self, other: LowerBound) -> LowerBound:
        """Both, one behind the other."""
        return LowerBound(self.bytes + other.bytes, self.seams + other.seams)

    def times(self, count: int) -> LowerBound:
        """So many, one behind the other."""
        return LowerBound(self.bytes * count, self.seams * count) if count else NOTHING


NOTHING, NEVER = LowerBound(), LowerBound(float("inf"), float("inf"))


def in_a_row(parts: Iterable[LowerBound]) -> LowerBound:
    """All of them, one behind the other."""
    whole = NOTHING
    for part in parts:
        whole = whole.beside(part)
    return whole


def either(ways: Iterable[LowerBound]) -> LowerBound:
    """One of them; no text at all where there is none."""
    whole = NEVER
    for way in ways:
        whole = LowerBound(min(whole.bytes, way.bytes), min(whole.seams, way.seams))
    return whole


def at_once(conditions: Iterable[LowerBound]) -> LowerBound:
    """A text that meets all of them."""
    whole = NOTHING
    for one in conditions:
        whole = LowerBound(max(whole.bytes, one.bytes), max(whole.seams, one.seams))
    return whole


@dataclass(frozen=True, slots=True)
class BoundMeasures:
    """What parts of a text hold."""

    of_bytes: Callable[[bytes], LowerBound]
    """Of bytes that stand there as they are."""
    of_letters: Callable[[int, Letters], LowerBound]
    """Of so many bytes, none of them another than these."""

    def of_any(self, count: int) -> LowerBound:
        """Of so many bytes of any kind."""
        return self.of_letters(count, None)


LENGTHS = BoundMeasures(lambda part: LowerBound(len(part)), lambda count, _: LowerBound(count))
"""Bytes alone."""
