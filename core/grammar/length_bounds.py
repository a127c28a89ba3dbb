"""What every text of a grammar holds at least: sums over its parts, the lesser of alternatives, the greater of
conditions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

ByteSet = frozenset[int] | None
"""Every byte that a part of a text may be made of; None: any."""


class LowerBound(NamedTuple):
    """A lower bound, in two measures that are kept apart since they add up differently."""

    bytes: float = 0
    inner_tokens: float = 0
    """Tokens that begin inside the parts whose bytes are known, and not at their first byte: neighbours share the token
    over that one at most. Infinite, as `bytes` is then, where there is no text at all."""

    def followed_by(self, other: LowerBound) -> LowerBound:
        """Both, one behind the other."""
        return LowerBound(self.bytes + other.bytes, self.inner_tokens + other.inner_tokens)

    def repeated(self, count: int) -> LowerBound:
        """So many, one behind the other."""
        return LowerBound(self.bytes * count, self.inner_tokens * count) if count else NOTHING


NOTHING, NEVER = LowerBound(), LowerBound(float("inf"), float("inf"))


def sum_bounds(parts: Iterable[LowerBound]) -> LowerBound:
    """All of them, one behind the other."""
    whole = NOTHING
    for part in parts:
        whole = whole.followed_by(part)
    return whole


def min_bound(alternatives: Iterable[LowerBound]) -> LowerBound:
    """One of them; no text at all where there is none."""
    whole = NEVER
    for way in alternatives:
        whole = LowerBound(min(whole.bytes, way.bytes), min(whole.inner_tokens, way.inner_tokens))
    return whole


def max_bound(conditions: Iterable[LowerBound]) -> LowerBound:
    """A text that meets all of them."""
    whole = NOTHING
    for one in conditions:
        whole = LowerBound(max(whole.bytes, one.bytes), max(whole.inner_tokens, one.inner_tokens))
    return whole


@dataclass(frozen=True, slots=True)
class BoundMeasures:
    """What parts of a text hold."""

    of_bytes: Callable[[bytes], LowerBound]
    """Of bytes that stand there as they are."""
    of_letters: Callable[[int, ByteSet], LowerBound]
    """Of so many bytes, none of them another than these."""

    def of_any(self, count: int) -> LowerBound:
        """Of so many bytes of any kind."""
        return self.of_letters(count, None)


BYTE_MEASURES = BoundMeasures(lambda part: LowerBound(len(part)), lambda count, _: LowerBound(count))
"""Bytes alone."""
