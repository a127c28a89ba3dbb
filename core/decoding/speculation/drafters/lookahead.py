"""Lookahead decoding (Fu et al. 2024): the target's own passes guess n-grams far ahead, by Jacobi iteration.

A window of guesses rides along in every pass: W columns, each a short path of N − 1 tokens that starts at its own place
behind the text. The pass replaces each column's oldest guess by a new one at its end; what a column has gone through
is an n-gram that the model itself would write there, or nearly. N-grams go into a pool, and those that begin with the
text's last token are drafted.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from core.decoding.speculation.round_plan import RoundPlan
from core.decoding.speculation.speculation_text import SpeculationText
from core.decoding.speculation.tree import Branch
from core.events import NgramPool
from core.models.text import Pieces

_CONFIDENCE = 0.5
"""First guess of how often an n-gram is right; `auto` corrects it as it learns."""
Ngram = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LookaheadBranches:
    """Rows that ride along in the target's pass and never become text: they see the text, its last token, and each
    other as `sees` [n, n] says. `depths` count from 0 for that last token."""

    ids: list[int]
    depths: list[int]
    sees: npt.NDArray[np.bool_]


class LookaheadBranch(ABC):
    """A drafter that asks the target's pass for more than the scores of its drafts."""

    @abstractmethod
    def ride(self, text: SpeculationText) -> LookaheadBranches:
        """The rows for the pass behind this text."""

    @abstractmethod
    def rode(self, choices: Sequence[int]) -> None:
        """The target's first choice behind each row."""

    @abstractmethod
    def told(self, pieces: Pieces) -> NgramPool:
        """What it holds, and what the latest pass has brought."""


class NgramStore:
    """N-grams by their first token, the latest `most` of each; the newest first."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: dict[int, list[Ngram]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._known.values()))

    def behind(self, token: int) -> Sequence[Ngram]:
        """What has followed a token, without it."""
        return self._known.get(token, ())

    def add(self, ngram: Ngram) -> bool:
        """Enter one, or move it to the front; whether it is new."""
        kept = self._known.setdefault(ngram[0], [])
        is_new = ngram[1:] not in kept
        if not is_new:
            kept.remove(ngram[1:])
        kept.insert(0, ngram[1:])
        del kept[self._most :]
        return is_new


class LookaheadDrafter(LookaheadBranch):
    """Drafts from the pool, and keeps the window that fills it."""

    name = "lookahead"
    weights = 0
    first_seconds = 0.0

    def __init__(self, window: int, size: int, guesses: int, from_text: bool) -> None:
        """`size`: tokens of an n-gram; `guesses`: how many are drafted at once; `from_text`: n-grams of the text go
        into the pool too."""
        self.pool = NgramStore(guesses)
        self.found: list[Ngram] = []
        """New n-grams of the latest pass."""
        self._window, self._size, self._from_text = window, size, from_text
        self._levels: list[list[int]] = []
        self._seen = 0
        self._sees = {count: _columns(window, count) for count in range(1, size)}

    def room(self, length: int) -> int:
        """An n-gram, less the token it begins with."""
        return self._size - 1

    def propose(self, text: SpeculationText, plan: RoundPlan) -> Branch | None:
        """The n-grams behind the last token as a prefix tree, a point mass each."""
        self._read(text)
        branch, places = Branch(), dict[Ngram, int]()
        for ngram in self.pool.behind(text.ids[-1]):
            parent = 0
            for end in range(1, min(len(ngram), plan.depth) + 1):
                path = ngram[:end]
                if path not in places:
                    places[path] = branch.add(parent, ngram[end - 1], 1.0)
                    branch.confidences.append(_CONFIDENCE)
                    if plan.keep_q:
                        branch.q[parent] = None
                parent = places[path]
        return branch

    def ride(self, text: SpeculationText) -> LookaheadBranches:
        """The window behind the text, level by level: first all columns' oldest guesses."""
        if not self._levels:
            self._levels = [[text.ids[-1 - place % len(text)] for place in range(self._window)]]
        depths = [1 + column + level for level in range(len(self._levels)) for column in range(self._window)]
        ids = [token for level in self._levels for token in level]
        return LookaheadBranches(ids, depths, self._sees[len(self._levels)])

    def rode(self, choices: Sequence[int]) -> None:
        """The last level's successors go on; once the window is full, its columns are n-grams and move on a place."""
        self.found = []
        self._levels.append(list(choices[-self._window :]))
        if len(self._levels) < self._size:
            return
        self.found = [ngram for ngram in zip(*self._levels, strict=True) if self.pool.add(ngram)]
        del self._levels[0]

    def told(self, pieces: Pieces) -> NgramPool:
        """How many n-grams there are, and the new ones."""
        return NgramPool(len(self.pool), tuple(tuple(pieces[token] for token in ngram) for ngram in self.found))

    def settle(self, accepted: Sequence[int]) -> None:
        """Nothing to keep."""

    def close(self, length: int) -> None:
        """Nothing to forget."""

    def _read(self, text: SpeculationText) -> None:
        """N-grams that the text has completed since it was last read."""
        if self._from_text:
            for end in range(max(self._seen + 1, self._size), len(text) + 1):
                self.pool.add(tuple(text.ids[end - self._size : end]))
        self._seen = len(text)


def _columns(window: int, levels: int) -> npt.NDArray[np.bool_]:
    """[n, n]: a guess sees the oldest guesses of its column and of those before, and its own column's path."""
    sees = np.zeros((levels * window, levels * window), dtype=np.bool_)
    for level in range(levels):
        for column in range(window):
            row = level * window + column
            sees[row, : column + 1] = True
            sees[row, [between * window + column for between in range(level + 1)]] = True
    return sees
