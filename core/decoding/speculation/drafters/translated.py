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
from core.decoding.speculation.drafters.model_drafter import PassReader, read_text_in_chunks
from core.decoding.speculation.drafters.retokenization import (
    OffsetTokenizer,
    RetokenizedText,
    TokenSpan,
    complete_length,
    retokenize,
    tokenize_continuation,
)
from core.decoding.speculation.round_plan import RoundPlan
from core.decoding.speculation.speculation_text import SpeculationText
from core.decoding.speculation.tree import Branch


@dataclass(frozen=True, slots=True)
class ModelVocabulary:
    """How one of the two writes."""

    tokenizer: OffsetTokenizer
    id_count: int
    """How many ids the model reads and scores: a tokenizer may have more tokens."""
    end_tokens: frozenset[int] = frozenset()
    """Its end tokens."""
    end_token: int | None = None
    """The one to write."""

    def can_read(self, ids: Sequence[int]) -> bool:
        """Whether the model has a row for each of these ids."""
        return max(ids, default=0) < self.id_count

    def readable_prefix(self, ids: list[int]) -> list[int]:
        """The ids before the first that the model has no row for."""
        return list(takewhile(lambda token: token < self.id_count, ids))


@dataclass(slots=True)
class _DraftTokens:
    """Draft tokens, and what they spell behind the text."""

    ids: list[int] = field(default_factory=list)
    probabilities: list[float] = field(default_factory=list)
    has_ended: bool = False


class RetokenizingDrafter:
    """Drafts chains; `draft_vocabulary` is how the draft model writes, `target_vocabulary` how the target does."""

    def __init__(
        self, name: str, reader: PassReader, draft_vocabulary: ModelVocabulary, target_vocabulary: ModelVocabulary, index: int,
        is_cancelled: Callable[[], bool], context: int | None, device: torch.device, weights: int = 0,
    ) -> None:  # fmt: skip
        self.name, self.reader, self.parameter_count = name, reader, weights
        self.first_token_seconds = 0.0
        self._draft_vocabulary, self._target_vocabulary, self._index, self._is_cancelled = (
            draft_vocabulary,
            target_vocabulary,
            index,
            is_cancelled,
        )
        self._context, self._device = context or 1_000_000, device
        self._start = draft_vocabulary.tokenizer.start_ids
        self._text = RetokenizedText(target_vocabulary.tokenizer)
        self._pieces: list[TokenSpan] = []
        """The text as the draft model reads it."""
        self._cached_ids: list[int] = []
        """Tokens in its memory that are text."""
        self._cached_drafts: list[int] = []
        """Those behind them that were guesses."""

    def max_length(self, length: int) -> int:
        """Its context counts other tokens: `propose` looks at it."""
        return 1_000_000

    def propose(self, text: SpeculationText, plan: RoundPlan) -> Branch | None:
        """A chain in the target's tokens; empty where the text cannot be told in the drafter's."""
        begun = time.perf_counter()
        self._text.append_new(text.ids)
        whole = complete_length(self._text.data)
        pieces = retokenize(self._pieces, bytes(self._text.data[:whole]), self._draft_vocabulary.tokenizer)
        self._pieces = pieces or []
        ids = [*self._start, *(piece.id for piece in self._pieces)]
        pace = max(len(ids) / len(text), 1 / 8)
        count = min(math.ceil(plan.depth * pace), self._context - len(ids))
        if not ids or pieces is None or count < 1 or not self._draft_vocabulary.can_read(ids):
            return Branch()
        logits = self._catch_up(ids)
        if logits is None:
            return None
        self.first_token_seconds = time.perf_counter() - begun
        guess = self._draft_tokens(logits, plan, count, pace)
        return None if guess is None else self._to_target_branch(guess, bytes(self._text.data[whole:]), plan)

    def commit(self, accepted: Sequence[int]) -> None:
        """What of the guesses became text shows when the text is read next."""

    def finish(self, length: int) -> None:
        """The memory serves no other run."""
        self.reader.crop(0)
        self._cached_ids, self._cached_drafts = [], []

    def _catch_up(self, ids: list[int]) -> torch.Tensor | None:
        """Logits [1, V] behind the text; what the memory holds of it already stays, guesses that came true too."""
        kept = shared_length(self._cached_ids, ids)
        rows = shared_length(self._cached_drafts, ids[kept:]) if kept == len(self._cached_ids) else 0
        if kept + rows == len(ids):  # the last token has to be read for what follows it
            kept, rows = (kept, rows - 1) if rows else (kept - 1, 0)
        if kept < len(self._cached_ids):
            self.reader.crop(kept)
        else:
            self.reader.commit(range(rows))
        self._cached_ids, self._cached_drafts = ids, []
        return read_text_in_chunks(
            self.reader, torch.tensor([ids[kept + rows :]], device=self._device), self._is_cancelled
        )

    def _draft_tokens(self, logits: torch.Tensor, plan: RoundPlan, count: int, pace: float) -> _DraftTokens | None:
        """Its likeliest tokens, `count` at most; `pace` of them make one of the target's."""
        guess, chance = _DraftTokens(), 1.0
        while True:
            share, token = torch.softmax(logits[0], -1).max(-1)
            guess.probabilities.append(float(share))
            guess.ids.append(int(token))
            guess.has_ended = guess.ids[-1] in self._draft_vocabulary.end_tokens
            chance *= self._acceptance(plan, guess.probabilities[-1]) ** min(1.0, 1 / pace)
            nodes = math.ceil(len(guess.ids) / pace)
            stays = plan.gate is None or plan.gate.should_extend((chance,), nodes)
            if guess.has_ended or len(guess.ids) >= count or not stays or guess.probabilities[-1] < plan.threshold:
                return guess
            if not self._draft_vocabulary.can_read(guess.ids[-1:]):
                return guess
            if self._is_cancelled():
                return None
            place = len(self._cached_drafts)
            logits = self.reader.read_nodes(token[None, None], (place,), np.ones((1, place + 1), dtype=np.bool_))
            self._cached_drafts.append(guess.ids[-1])

    def _acceptance(self, plan: RoundPlan, share: float) -> float:
        return plan.gate.acceptance(self._index, share) if plan.gate is not None else 1.0

    def _to_target_branch(self, guess: _DraftTokens, begun: bytes, plan: RoundPlan) -> Branch:
        """In the target's tokens. `begun`: bytes of a character that the text has not finished; the guess has to."""
        spelled = [self._draft_vocabulary.tokenizer.token_bytes(token) or b"" for token in guess.ids]
        data = b"".join(spelled)
        data = data[: complete_length(data)]
        if not data.startswith(begun):
            return Branch()
        pieces = (
            tokenize_continuation(self._text, data[len(begun) :], self._target_vocabulary.tokenizer)
            if len(data) > len(begun)
            else []
        )
        ids, shares = (
            [piece.id for piece in pieces],
            _target_token_probabilities(pieces, spelled, guess.probabilities, len(begun)),
        )
        if guess.has_ended and self._target_vocabulary.end_token is not None and (pieces or data == begun):
            ids, shares = [*ids, self._target_vocabulary.end_token], [*shares, guess.probabilities[-1]]
        ids = self._target_vocabulary.readable_prefix(ids)[: plan.depth]
        return _build_chain(ids, shares[: len(ids)], plan.keeps_q)


def _build_chain(ids: list[int], shares: list[float], is_sampled: bool) -> Branch:
    """With dice a guess counts as made for certain, however sure the drafter was of it."""
    if not is_sampled:
        return Branch.chain(ids, shares)
    branch = Branch.chain(ids, [1.0] * len(ids), [None] * len(ids))
    branch.confidences = shares
    return branch


def _target_token_probabilities(
    pieces: Sequence[TokenSpan], spelled: Sequence[bytes], shares: Sequence[float], begun: int
) -> list[float]:
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
