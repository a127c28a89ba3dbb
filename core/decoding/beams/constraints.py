"""Lexical constraints: required phrases, the progress of each path, and the tokens that advance it.

A phrase is a list of alternatives, each a list of tokens; it is met when the tokens of one alternative appear
consecutively in the new text. Prompt tokens do not count. Phrases are met one after another: no token serves two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

Alternative = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ConstraintPhrase:
    """One constraint: any of its alternatives. `label` is shown to users."""

    alternatives: tuple[Alternative, ...]
    label: str = ""

    @property
    def max_length(self) -> int:
        """Number of tokens it counts for once it is met."""
        return max(map(len, self.alternatives))

    @property
    def min_length(self) -> int:
        """Minimum number of tokens that meet it."""
        return min(map(len, self.alternatives))

    def has_prefix(self, tokens: Alternative) -> bool:
        """Return whether an alternative begins with `tokens`."""
        return any(alternative[: len(tokens)] == tokens for alternative in self.alternatives)

    def remainders(self, tokens: Alternative) -> list[Alternative]:
        """Return the remaining tokens of every alternative that begins with `tokens`."""
        return [a[len(tokens) :] for a in self.alternatives if len(a) > len(tokens) and a[: len(tokens)] == tokens]


def make_phrase(alternatives: Sequence[Sequence[int]], label: str = "") -> ConstraintPhrase:
    """Make a phrase of distinct alternatives, without those that only extend a shorter one."""
    known = sorted({tuple(int(token) for token in alternative) for alternative in alternatives}, key=len)
    shortest: list[Alternative] = []
    for item in known:
        if not any(item[: len(shorter)] == shorter for shorter in shortest):
            shortest.append(item)
    order = {tuple(alternative): place for place, alternative in reversed(list(enumerate(alternatives)))}
    return ConstraintPhrase(tuple(sorted(shortest, key=lambda item: order[item])), label)


class ConstraintProgress(NamedTuple):
    """The constraints that one path of the search has met, and the phrase that it is in the middle of."""

    pending: tuple[int, ...]
    """Indices of phrases not started."""
    met: tuple[int, ...]
    """Indices of phrases met, in order."""
    current: int | None = None
    matched: Alternative = ()
    """Tokens of the current phrase at the end of the path."""

    @property
    def is_complete(self) -> bool:
        """Whether everything is met."""
        return self.current is None and not self.pending


class Constraints:
    """Automaton of all phrases. `restarts_on_break`: a token that breaks a phrase cannot begin another one
    (transformers 4).
    """

    def __init__(self, phrases: Sequence[ConstraintPhrase], forgetful: bool = False) -> None:
        self.phrases = tuple(phrases)
        self.restarts_on_break = forgetful
        self.start = ConstraintProgress(tuple(range(len(self.phrases))), ())
        self.tokens = sorted({token for phrase in self.phrases for ids in phrase.alternatives for token in ids})
        """Every token that occurs in a phrase; any other token breaks the current phrase."""

    @property
    def total_tokens(self) -> int:
        """The value of `tokens_met` when everything is met."""
        return sum(phrase.max_length for phrase in self.phrases)

    def advance(self, progress: ConstraintProgress, token: int) -> ConstraintProgress:
        """Return the progress after `token`."""
        if progress.is_complete:
            return progress
        pending, seen = progress.pending, (*progress.matched, token)
        if progress.current is not None:
            if self.phrases[progress.current].has_prefix(seen):
                return self._reach(progress.current, seen, pending, progress.met)
            pending = (*pending, progress.current)
            if self.restarts_on_break:
                return ConstraintProgress(pending, progress.met)
        return self._begin(seen, pending, progress.met)

    def _begin(self, matched_tokens: Alternative, pending: tuple[int, ...], met: tuple[int, ...]) -> ConstraintProgress:
        """Start a phrase with the longest suffix of `matched_tokens` that begins one; it may start inside a broken
        phrase.
        """
        for first in range(len(matched_tokens)):
            for number in pending:
                if self.phrases[number].has_prefix(matched_tokens[first:]):
                    rest = tuple(other for other in pending if other != number)
                    return self._reach(number, matched_tokens[first:], rest, met)
        return ConstraintProgress(pending, met)

    def _reach(
        self, number: int, matched_tokens: Alternative, pending: tuple[int, ...], met: tuple[int, ...]
    ) -> ConstraintProgress:
        if matched_tokens in self.phrases[number].alternatives:
            return ConstraintProgress(pending, (*met, number))
        return ConstraintProgress(pending, met, number, matched_tokens)

    def advancing_tokens(self, progress: ConstraintProgress) -> list[int]:
        """Return the tokens that advance a path: the next ones of the current phrase, or the first ones of those not
        started.
        """
        if progress.current is not None:
            rests = self.phrases[progress.current].remainders(progress.matched)
        else:
            rests = [rest for number in progress.pending for rest in self.phrases[number].remainders(())]
        return list(dict.fromkeys(rest[0] for rest in rests))

    def tokens_met(self, progress: ConstraintProgress) -> int:
        """Return the number of constraint tokens met; a phrase met by a short alternative counts as its longest one."""
        return sum(self.phrases[number].max_length for number in progress.met) + len(progress.matched)

    def min_remaining(self, progress: ConstraintProgress) -> int:
        """Return the minimum number of tokens that meet everything."""
        current = 0
        if progress.current is not None:
            current = min(map(len, self.phrases[progress.current].remainders(progress.matched)))
        return current + sum(self.phrases[number].min_length for number in progress.pending)

    def min_remaining_if_broken(self, progress: ConstraintProgress) -> int:
        """Return the same minimum after a token that belongs to no phrase."""
        again = self.phrases[progress.current].min_length if progress.current is not None else 0
        return again + sum(self.phrases[number].min_length for number in progress.pending)
