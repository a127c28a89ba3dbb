"""How many tokens it takes to write some bytes, by which tokens a model has."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cached_property

from core.grammar.length_bounds import ByteSet


class TokenCoverage:
    """A vocabulary, asked for the fewest tokens."""

    def __init__(self, tokens: Iterable[bytes | None]) -> None:
        self._tokens = {token for token in tokens if token}
        self.longest = max(map(len, self._tokens), default=1)
        """Bytes of the longest token."""
        self._rows: dict[frozenset[int], int] = {}

    @cached_property
    def _beginnings(self) -> set[bytes]:
        return {token[:end] for token in self._tokens for end in range(1, len(token) + 1)}

    @cached_property
    def _endings(self) -> set[bytes]:
        return {token[start:] for token in self._tokens for start in range(len(token))}

    @cached_property
    def _joined(self) -> bytes:
        return b"\0".join(self._tokens)

    def min_for_any(self, count: int) -> int:
        """Over so many bytes, whatever they are."""
        return -(-count // self.longest)

    def min_for_letters(self, count: int, letters: ByteSet) -> int:
        """Over so many bytes of these alone: no token covers more of them than the longest row of them in any."""
        if not letters:
            return self.min_for_any(count)
        if letters not in self._rows:
            row = re.compile(b"[%s]+" % b"".join(b"\\x%02x" % one for one in sorted(letters)))
            found = (part for token in self._tokens for part in row.findall(token))
            self._rows[letters] = max(map(len, found), default=1)
        return -(-count // self._rows[letters])

    def min_covering(self, part: bytes) -> int:
        """Over `part` of a text; the first may begin before it, and the last may end behind it."""
        size = len(part)
        if part in self._joined:
            return 1
        fewest = [0] + [1 if part[:end] in self._endings else size for end in range(1, size + 1)]
        for end in range(1, size + 1):
            known = self._tokens if end < size else self._beginnings
            ways = (fewest[start] + 1 for start in range(end) if part[start:end] in known)
            fewest[end] = min(fewest[end], min(ways, default=size))
        return min(fewest[size], size)

    def min_spelling(self, word: bytes) -> int:
        """Fewest that spell exactly `word`; its length where none do."""
        fewest = [0] + [len(word)] * len(word)
        for end in range(1, len(word) + 1):
            parts = (fewest[start] + 1 for start in range(end) if word[start:end] in self._tokens)
            fewest[end] = min(parts, default=len(word))
        return fewest[-1]
