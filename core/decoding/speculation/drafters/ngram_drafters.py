"""Lookahead decoding (Fu et al. 2024): the target's own passes guess n-grams by Jacobi iteration.

A window of guesses is added to every pass: W columns, each a path of N − 1 tokens that starts at its own position after
the text. A pass replaces each column's oldest guess by a new one at its end; the tokens of a column form an n-gram that
the model would generate there, or nearly. N-grams go into a pool, and those that begin with the text's last token are
drafted.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from core.decoding.speculation.drafters.base import SpeculationText
from core.decoding.speculation.round_plan import RoundPlan
from core.decoding.speculation.tree import Branch
from core.events import NgramPool
from core.models.text import TokenSpellings

_NGRAM_CONFIDENCE = 0.5
"""Prior acceptance of an n-gram; `auto` corrects it as it learns."""
Ngram = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LookaheadRows:
    """Extra rows in the target's pass that never become text.

    They see the text, its last token, and each other by `sees` [n, n]; `depths` count from 0 for that last token.
    """

    ids: list[int]
    depths: list[int]
    sees: npt.NDArray[np.bool_]


class ExtraRowsDrafter(ABC):
    """A drafter that adds rows to the target's pass."""

    @abstractmethod
    def extra_rows(self, text: SpeculationText) -> LookaheadRows:
        """Return the rows to add to the pass after this text."""

    @abstractmethod
    def update_rows(self, choices: Sequence[int]) -> None:
        """Update the window with the target's argmax after each row."""

    @abstractmethod
    def ngram_pool(self, pieces: TokenSpellings) -> NgramPool:
        """Return the pool and the n-grams of the latest pass for events."""


class NgramStore:
    """N-grams by first token; at most the `max_per_token` latest of each, newest first."""

    def __init__(self, max_per_token: int) -> None:
        self._max_per_token = max_per_token
        self._continuations: dict[int, list[Ngram]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._continuations.values()))

    def continuations(self, token: int) -> Sequence[Ngram]:
        """Return the continuations of a token."""
        return self._continuations.get(token, ())

    def add(self, ngram: Ngram) -> bool:
        """Add an n-gram, or move it to the front; return whether it is new."""
        kept = self._continuations.setdefault(ngram[0], [])
        is_new = ngram[1:] not in kept
        if not is_new:
            kept.remove(ngram[1:])
        kept.insert(0, ngram[1:])
        del kept[self._max_per_token :]
        return is_new


class LookaheadDrafter(ExtraRowsDrafter):
    """Drafts from the n-gram pool, and maintains the window that fills it."""

    name = "lookahead"
    parameter_count = 0
    first_token_seconds = 0.0

    def __init__(self, window: int, size: int, guesses: int, from_text: bool) -> None:
        """Initialize the window.

        `size`: tokens of an n-gram; `guesses`: number of n-grams drafted at once; `from_text`: add n-grams of the text
        to the pool.
        """
        self.pool = NgramStore(guesses)
        self.new_ngrams: list[Ngram] = []
        """New n-grams of the latest pass."""
        self._window, self._size, self._from_text = window, size, from_text
        self._levels: list[list[int]] = []
        self._text_length = 0
        self._masks = {count: _window_mask(window, count) for count in range(1, size)}

    def max_length(self, length: int) -> int:
        """Return the length of an n-gram without its first token."""
        return self._size - 1

    def propose(self, text: SpeculationText, plan: RoundPlan) -> Branch | None:
        """Propose the n-grams after the last token as a prefix tree; each is a point mass."""
        self._add_text_ngrams(text)
        branch, places = Branch(), dict[Ngram, int]()
        for ngram in self.pool.continuations(text.ids[-1]):
            parent = 0
            for end in range(1, min(len(ngram), plan.depth) + 1):
                path = ngram[:end]
                if path not in places:
                    places[path] = branch.add(parent, ngram[end - 1], 1.0)
                    branch.confidences.append(_NGRAM_CONFIDENCE)
                    if plan.keeps_q:
                        branch.q[parent] = None
                parent = places[path]
        return branch

    def extra_rows(self, text: SpeculationText) -> LookaheadRows:
        """Return the window after the text, level by level, starting with the oldest guesses."""
        if not self._levels:
            self._levels = [[text.ids[-1 - place % len(text)] for place in range(self._window)]]
        depths = [1 + column + level for level in range(len(self._levels)) for column in range(self._window)]
        ids = [token for level in self._levels for token in level]
        return LookaheadRows(ids, depths, self._masks[len(self._levels)])

    def update_rows(self, choices: Sequence[int]) -> None:
        """Append a level; once the window is full, its columns become n-grams and it moves by one position."""
        self.new_ngrams = []
        self._levels.append(list(choices[-self._window :]))
        if len(self._levels) < self._size:
            return
        self.new_ngrams = [ngram for ngram in zip(*self._levels, strict=True) if self.pool.add(ngram)]
        del self._levels[0]

    def ngram_pool(self, pieces: TokenSpellings) -> NgramPool:
        """Return the pool's size and its new n-grams."""
        return NgramPool(len(self.pool), tuple(tuple(pieces[token] for token in ngram) for ngram in self.new_ngrams))

    def commit(self, accepted: Sequence[int]) -> None:
        """Do nothing: no cache to keep."""

    def finish(self, length: int) -> None:
        """Do nothing: no cache to drop."""

    def _add_text_ngrams(self, text: SpeculationText) -> None:
        """Add the text's new n-grams to the pool."""
        if self._from_text:
            for end in range(max(self._text_length + 1, self._size), len(text) + 1):
                self.pool.add(tuple(text.ids[end - self._size : end]))
        self._text_length = len(text)


def _window_mask(window: int, levels: int) -> npt.NDArray[np.bool_]:
    """Return the mask [n, n]: a guess sees the oldest guesses up to its column, and its own column's path."""
    sees = np.zeros((levels * window, levels * window), dtype=np.bool_)
    for level in range(levels):
        for column in range(window):
            row = level * window + column
            sees[row, : column + 1] = True
            sees[row, [between * window + column for between in range(level + 1)]] = True
    return sees


_MATCH_CONFIDENCES = (0.25, 0.45, 0.65, 0.85)
"""Prior acceptance by match length; `auto` corrects it as it learns."""


class PromptLookupDrafter:
    """Finds the longest n-gram at the end of the text earlier in it (or in an encoder's source) and proposes the tokens
    after it; among equal lengths the latest match wins.
    """

    name = "lookup"
    parameter_count = 0
    first_token_seconds = 0.0

    def __init__(self, source: list[int], max_ngram: int, max_length: int, number: int = 0) -> None:
        self._max_ngram = max_ngram
        self._max_length = max_length
        self._number = number
        self._next_positions: dict[tuple[int, ...], int] = {}
        self._length = 0
        self._tokens: list[int] = []
        self._index(source)

    def max_length(self, length: int) -> int:
        """Return the maximum draft length."""
        return self._max_length

    def propose(self, text: SpeculationText, plan: RoundPlan) -> Branch | None:
        """Propose a chain of point masses; empty without a match."""
        new = text.ids[self._length :]
        self._length = len(text.ids)
        self._index(new)
        begin, size = self._find()
        if begin is None:
            return Branch()
        confidence = _MATCH_CONFIDENCES[min(size, len(_MATCH_CONFIDENCES)) - 1]
        ids = self._copy(begin, plan, confidence)
        branch = Branch.chain(ids, [1.0] * len(ids), [None] * len(ids) if plan.keeps_q else ())
        branch.confidences = [confidence] * len(ids)
        return branch

    def _copy(self, begin: int, plan: RoundPlan, confidence: float) -> list[int]:
        """Copy tokens from `begin` on while they are worth verifying; past the end of the text, repeat the copied
        ones.
        """
        ids: list[int] = []
        chance = 1.0
        for place in range(begin, begin + plan.depth):
            if plan.gate is not None:
                chance *= plan.gate.acceptance(self._number, confidence)
                if not plan.gate.is_worthwhile(chance, len(ids)):
                    break
            ids.append(self._tokens[place] if place < len(self._tokens) else ids[place - len(self._tokens)])
        return ids

    def _index(self, new: Sequence[int]) -> None:
        """Index every n-gram completed by `new` with the position after it (so not the last ones)."""
        for token in new:
            end = len(self._tokens)  # the token about to be added follows the n-gram that ends here
            for size in range(1, min(self._max_ngram, end) + 1):
                self._next_positions[tuple(self._tokens[end - size : end])] = end
            self._tokens.append(token)

    def _find(self) -> tuple[int | None, int]:
        """Return the position after the longest match, and its length."""
        found, matched = None, 0
        for size in range(1, min(self._max_ngram, len(self._tokens)) + 1):
            if (place := self._next_positions.get(tuple(self._tokens[-size:]))) is None:
                break  # no longer n-gram can match if this one does not
            found, matched = place, size
        return found, matched

    def commit(self, accepted: Sequence[int]) -> None:
        """Do nothing: no cache to keep."""

    def finish(self, length: int) -> None:
        """Do nothing: no cache to drop."""
