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
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from decodescope.core.decoding.speculation.drafters.base import DrafterKind, SpeculationText
from decodescope.core.decoding.speculation.round_plan import RoundPlan
from decodescope.core.decoding.speculation.tree import Branch
from decodescope.core.events import NgramPool
from decodescope.core.models.text import TokenSpellings

if TYPE_CHECKING:
    from decodescope.core.decoding.run import DecodingRun

_DEFAULTS = {"lookahead_window": 5, "lookahead_ngram": 3, "lookahead_guesses": 5}
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
        continuations = self._continuations.setdefault(ngram[0], [])
        is_new = ngram[1:] not in continuations
        if not is_new:
            continuations.remove(ngram[1:])
        continuations.insert(0, ngram[1:])
        del continuations[self._max_per_token :]
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


def build_lookahead_drafter(run: DecodingRun, number: int) -> LookaheadDrafter:
    """Build the drafter from the run's options."""
    options = run.settings
    window, size, guesses = (int(options.get(name) or default) for name, default in _DEFAULTS.items())
    return LookaheadDrafter(window, size, guesses, options.get("pool_from_text") is not False)


DRAFTER = DrafterKind("lookahead", build_lookahead_drafter, order=30)
