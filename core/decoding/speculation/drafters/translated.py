"""A draft model with a tokenizer of its own: it writes text, and the target's tokenizer reads it.

Its probabilities are those of other tokens, so with dice each guess is one that was made for certain: accepted with
p(x), else drawn from p without x. That is lossless however the guess was made.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import takewhile

import numpy as np
import torch

from core.caches.prefixes.prefix_store import shared_length
from core.decoding.speculation.drafters.model_drafter import PassReader, read_text
from core.decoding.speculation.drafters.retokenization import (
    RetokenizedText,
    SpellingTokenizer,
    TokenSpan,
    go_on,
    respell,
    whole_length,
)
from core.decoding.speculation.round_plan import RoundPlan
from core.decoding.speculation.speculation_text import SpeculationText
from core.decoding.speculation.tree import Branch


@dataclass(frozen=True, slots=True)
class DraftVocabulary:
    """How one of the two writes."""

    spelling: SpellingTokenizer
    ids: int
    """How many ids the model reads and scores: a tokenizer may have more tokens."""
    ends: frozenset[int] = frozenset()
    """Its end tokens."""
    end: int | None = None
    """The one to write."""

    def reads(self, ids: Sequence[int]) -> bool:
        """Whether the model has a row for each of these ids."""
        return max(ids, default=0) < self.ids

    def readable(self, ids: list[int]) -> list[int]:
        """The ids before the first that the model has no row for."""
        return list(takewhile(lambda token: token < self.ids, ids))


@dataclass(slots=True)
class _Guess:
    """Draft tokens, and what they spell behind the text."""

    ids: list[int] = field(default_factory=list)
    shares: list[float] = field(default_factory=list)
    ended: bool = False


class TranslatedDrafter:
    """Drafts chains; `own` is how the draft model writes, `theirs` how the target does."""

    def __init__(
        self, name: str, reader: PassReader, own: DraftVocabulary, theirs: DraftVocabulary, number: int,
        is_cancelled: Callable[[], bool], context: int | None, device: torch.device, weights: int = 0,
    ) -> None:  # fmt: skip
        self.name, self.reader, self.weights = name, reader, weights
        self.first_seconds = 0.0
        self._own, self._theirs, self._number, self._is_cancelled = own, theirs, number, is_cancelled
        self._context, self._device = context or 1_000_000, device
        self._start = own.spelling.start
        self._text = RetokenizedText(theirs.spelling)
        self._pieces: list[TokenSpan] = []
        """The text as the draft model reads it."""
        self._read: list[int] = []
        """Tokens in its memory that are text."""
        self._fed: list[int] = []
        """Those behind them that were guesses."""

    def room(self, length: int) -> int:
        """Its context counts other tokens: `propose` looks at it."""
        return 1_000_000

    def propose(self, text: SpeculationText, plan: RoundPlan) -> Branch | None:
        """A chain in the target's tokens; empty where the text cannot be told in the drafter's."""
        begun = time.perf_counter()
        self._text.follow(text.ids)
        whole = whole_length(self._text.data)
        pieces = respell(self._pieces, bytes(self._text.data[:whole]), self._own.spelling)
        self._pieces = pieces or []
        ids = [*self._start, *(piece.id for piece in self._pieces)]
        pace = max(len(ids) / len(text), 1 / 8)
        count = min(math.ceil(plan.depth * pace), self._context - len(ids))
        if not ids or pieces is None or count < 1 or not self._own.reads(ids):
            return Branch()
        logits = self._catch_up(ids)
        if logits is None:
            return None
        self.first_seconds = time.perf_counter() - begun
        guess = self._guess(logits, plan, count, pace)
        return None if guess is None else self._told(guess, bytes(self._text.data[whole:]), plan)

    def settle(self, accepted: Sequence[int]) -> None:
        """What of the guesses became text shows when the text is read next."""

    def close(self, length: int) -> None:
        """The memory serves no other run."""
        self.reader.crop(0)
        self._read, self._fed = [], []

    def _catch_up(self, ids: list[int]) -> torch.Tensor | None:
        """Logits [1, V] behind the text; what the memory holds of it already stays, guesses that came true too."""
        kept = shared_length(self._read, ids)
        rows = shared_length(self._fed, ids[kept:]) if kept == len(self._read) else 0
        if kept + rows == len(ids):  # the last token has to be read for what follows it
            kept, rows = (kept, rows - 1) if rows else (kept - 1, 0)
        if kept < len(self._read):
            self.reader.crop(kept)
        else:
            self.reader.settle(range(rows))
        self._read, self._fed = ids, []
        return read_text(self.reader, torch.tensor([ids[kept + rows :]], device=self._device), self._is_cancelled)

    def _guess(self, logits: torch.Tensor, plan: RoundPlan, count: int, pace: float) -> _Guess | None:
        """Its likeliest tokens, `count` at most; `pace` of them make one of the target's."""
        guess, chance = _Guess(), 1.0
        while True:
            share, token = torch.softmax(logits[0], -1).max(-1)
            guess.shares.append(float(share))
            guess.ids.append(int(token))
            guess.ended = guess.ids[-1] in self._own.ends
            chance *= self._chance(plan, guess.shares[-1]) ** min(1.0, 1 / pace)
            nodes = math.ceil(len(guess.ids) / pace)
            stays = plan.gate is None or plan.gate.goes_on((chance,), nodes)
            if guess.ended or len(guess.ids) >= count or not stays or guess.shares[-1] < plan.threshold:
                return guess
            if not self._own.reads(guess.ids[-1:]):
                return guess
            if self._is_cancelled():
                return None
            place = len(self._fed)
            logits = self.reader.nodes(token[None, None], (place,), np.ones((1, place + 1), dtype=np.bool_))
            self._fed.append(guess.ids[-1])

    def _chance(self, plan: RoundPlan, share: float) -> float:
        return plan.gate.accept(self._number, share) if plan.gate is not None else 1.0

    def _told(self, guess: _Guess, begun: bytes, plan: RoundPlan) -> Branch:
        """In the target's tokens. `begun`: bytes of a character that the text has not finished; the guess has to."""
        spelled = [self._own.spelling.bytes_of(token) or b"" for token in guess.ids]
        data = b"".join(spelled)
        data = data[: whole_length(data)]
        if not data.startswith(begun):
            return Branch()
        pieces = go_on(self._text, data[len(begun) :], self._theirs.spelling) if len(data) > len(begun) else []
        ids, shares = [piece.id for piece in pieces], _joined(pieces, spelled, guess.shares, len(begun))
        if guess.ended and self._theirs.end is not None and (pieces or data == begun):
            ids, shares = [*ids, self._theirs.end], [*shares, guess.shares[-1]]
        ids = self._theirs.readable(ids)[: plan.depth]
        return _chain(ids, shares[: len(ids)], plan.keep_q)


def _chain(ids: list[int], shares: list[float], is_thrown_for: bool) -> Branch:
    """With dice a guess counts as made for certain, however sure the drafter was of it."""
    if not is_thrown_for:
        return Branch.chain(ids, shares)
    branch = Branch.chain(ids, [1.0] * len(ids), [None] * len(ids))
    branch.confidences = shares
    return branch


def _joined(pieces: Sequence[TokenSpan], spelled: Sequence[bytes], shares: Sequence[float], begun: int) -> list[float]:
    """How likely the drafter held what each of the target's tokens spells: of its own, those that begin within it."""
    found, own, start = [], 0, -begun
    for piece in pieces:
        share = 1.0
        while own < len(spelled) and start < piece.end:
            share *= shares[own]
            start += len(spelled[own])
            own += 1
        found.append(share)
    return found
