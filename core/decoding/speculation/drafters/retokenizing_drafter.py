"""A draft model with its own tokenizer: its text is retokenized for the target.

Its probabilities belong to other tokens, so with sampling each draft is treated as a point mass: accepted with p(x),
else drawn from p without x. That is lossless for any draft.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, takewhile
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch

from decodescope.core.caches.prefixes.prefix_store import shared_length
from decodescope.core.decoding.speculation.drafters.base import SpeculationText
from decodescope.core.decoding.speculation.drafters.model_drafter import PassReader, read_text_in_chunks
from decodescope.core.decoding.speculation.round_plan import RoundPlan
from decodescope.core.decoding.speculation.tree import Branch
from decodescope.core.models.text import TokenSpellings
from decodescope.core.system.gpu import DeviceTimer, upload

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_WINDOW_TOKENS = 12
"""Tokens at the end of a text that are tokenized again when it has grown."""
_SKIPPED_TOKENS = 3
"""Number of leading tokens in that window to discard, because a text that begins there may be split differently."""
_PROBE = "The Fox said: “I'm 12.5 years — naïve?”\n  Was it?"
_SPECIAL_TOKEN_BYTES = b"\n"
"""Replacement of a special token, which has no text."""


class TokenSpan(NamedTuple):
    """A token, and its end offset in the text's bytes."""

    id: int
    end: int


class OffsetTokenizer:
    """A tokenizer with byte offsets."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase, pieces: TokenSpellings) -> None:
        self._tokenizer, self._pieces = tokenizer, pieces

    def token_bytes(self, token: int) -> bytes | None:
        """Return the bytes of a token; None for a special one."""
        return self._pieces.data(token)

    def tokenize(self, data: bytes, exactly: bool = False) -> list[TokenSpan] | None:
        """Tokenize complete characters; None where the tokens would decode to something else.

        A tokenizer's leading space is tolerated unless `exactly` is set.
        """
        ids = self._tokenizer.encode(data.decode("utf-8", "replace"), add_special_tokens=False)
        token_bytes = [self._pieces.data(token) or b"" for token in ids]
        whole = b"".join(token_bytes)
        surplus = int(whole == b" " + data)
        if (not surplus and whole != data) or (surplus and exactly):
            return None
        ends = accumulate(len(part) for part in token_bytes)
        return [TokenSpan(token, end - surplus) for token, end in zip(ids, ends, strict=True)]

    @property
    def is_exact(self) -> bool:
        """Whether it decodes to the same text; a lowercasing tokenizer does not."""
        return self.tokenize(_PROBE.encode()) is not None

    @property
    def start_ids(self) -> list[int]:
        """Special tokens that it puts before a text."""
        plain, whole = (self._tokenizer.encode("a", add_special_tokens=special) for special in (False, True))
        places = [place for place in range(len(whole)) if whole[place : place + len(plain)] == plain]
        return list(whole[: places[0]]) if places else []


class RetokenizedText:
    """A growing text as bytes, with token offsets."""

    def __init__(self, tokenizer: OffsetTokenizer) -> None:
        self._tokenizer = tokenizer
        self.data = bytearray()
        self.ends: list[int] = []
        self.last_special_end = 0
        """Start of the text after the last special token."""

    def append_new(self, ids: Sequence[int]) -> None:
        """Append what is new in `ids`, all ids of the text."""
        for token in ids[len(self.ends) :]:
            token_bytes = self._tokenizer.token_bytes(token)
            if token_bytes is None:
                self.data += _SPECIAL_TOKEN_BYTES if self.data else b""
                self.last_special_end = len(self.data)
            else:
                self.data += token_bytes
            self.ends.append(len(self.data))

    def window_start(self) -> int:
        """Return the start of the window to retokenize: at a complete character, after the last special token."""
        start = self.ends[-_WINDOW_TOKENS] if len(self.ends) > _WINDOW_TOKENS else 0
        return max(next_character_start(self.data, start), self.last_special_end)


def complete_length(data: bytes | bytearray) -> int:
    """Return the number of bytes up to the last complete character."""
    for cut in range(1, min(4, len(data)) + 1):
        lead = data[-cut]
        if lead & 0xC0 != 0x80:
            needed = 1 if lead < 0x80 else 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
            return len(data) - cut if needed > cut else len(data)
    return len(data)


def next_character_start(data: bytes | bytearray, start: int) -> int:
    """Return the first offset from `start` on where a character begins."""
    while start < len(data) and data[start] & 0xC0 == 0x80:
        start += 1
    return start


def retokenize(previous: Sequence[TokenSpan], data: bytes, tokenizer: OffsetTokenizer) -> list[TokenSpan] | None:
    """Tokenize `data`, whose beginning is already tokenized as `previous`; None if that is impossible.

    Only the end is tokenized again and joined to `previous` where both have a token boundary.
    """
    first = max(0, len(previous) - _WINDOW_TOKENS)
    start = previous[first - 1].end if first else 0
    if start != next_character_start(data, start):
        first, start = 0, 0
    fresh = tokenizer.tokenize(data[start:])
    if fresh is None or not first:
        return fresh
    places = {start + piece.end: place for place, piece in enumerate(fresh)}
    for place in range(first + _SKIPPED_TOKENS, len(previous)):
        if (found := places.get(previous[place].end)) is not None:
            return [*previous[: place + 1], *(TokenSpan(piece.id, start + piece.end) for piece in fresh[found + 1 :])]
    return tokenizer.tokenize(data)


def tokenize_continuation(text: RetokenizedText, drafted: bytes, tokenizer: OffsetTokenizer) -> list[TokenSpan]:
    """Return tokens after a text that encode `drafted`, with ends relative to `drafted`; empty if there are none.

    Tokenize it together with the text's end if a token ends at the seam, else alone, so that existing text stays.
    """
    start = text.window_start()
    fresh = tokenizer.tokenize(bytes(text.data[start:]) + drafted) or []
    seam = len(text.data) - start
    place = bisect_left(fresh, seam, key=lambda piece: piece.end)
    if seam == 0 or (place < len(fresh) and fresh[place].end == seam):
        following = fresh[place + 1 :] if seam else fresh
        return [TokenSpan(piece.id, piece.end - seam) for piece in following]
    return tokenizer.tokenize(drafted, exactly=True) or []


@dataclass(frozen=True, slots=True)
class ModelVocabulary:
    """Tokenizer and ids of one of the two models."""

    tokenizer: OffsetTokenizer
    id_count: int
    """Number of ids that the model can read and score; a tokenizer may have more tokens."""
    end_tokens: frozenset[int] = frozenset()
    """Its end tokens."""
    end_token: int | None = None
    """The end token to emit."""

    def can_read(self, ids: Sequence[int]) -> bool:
        """Return whether the model has a row for each of these ids."""
        return max(ids, default=0) < self.id_count

    def readable_prefix(self, ids: list[int]) -> list[int]:
        """Return the ids before the first one that the model has no row for."""
        return list(takewhile(lambda token: token < self.id_count, ids))


@dataclass(slots=True)
class _DraftTokens:
    """Draft tokens with their probabilities."""

    ids: list[int] = field(default_factory=list)
    probabilities: list[float] = field(default_factory=list)
    has_ended: bool = False


class RetokenizingDrafter:
    """Drafts chains; `draft_vocabulary` is the draft model's vocabulary, `target_vocabulary` the target's."""

    def __init__(
        self,
        name: str,
        reader: PassReader,
        draft_vocabulary: ModelVocabulary,
        target_vocabulary: ModelVocabulary,
        index: int,
        is_cancelled: Callable[[], bool],
        context: int | None,
        device: torch.device,
        weights: int = 0,
    ) -> None:
        self.name, self.reader, self.parameter_count = name, reader, weights
        self._first_token: DeviceTimer | None = None
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
        """The text in the draft model's tokens."""
        self._cached_ids: list[int] = []
        """Cached tokens that are text."""
        self._cached_drafts: list[int] = []
        """Cached tokens after them that were guesses."""

    @property
    def first_token_seconds(self) -> float:
        """Seconds of the latest proposal up to its first token; on a GPU, of its work and not of its launches."""
        return self._first_token.seconds if self._first_token is not None else 0.0

    def max_length(self, length: int) -> int:
        """Return no limit: its context counts other tokens, and `propose` checks it."""
        return 1_000_000

    def propose(self, text: SpeculationText, plan: RoundPlan) -> Branch | None:
        """Propose a chain in the target's tokens; empty where the text cannot be retokenized."""
        timer = DeviceTimer(self._device)
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
        timer.stop()
        self._first_token = timer
        guess = self._draft_tokens(logits, plan, count, pace)
        return None if guess is None else self._to_target_branch(guess, bytes(self._text.data[whole:]), plan)

    def commit(self, accepted: Sequence[int]) -> None:
        """Do nothing: accepted tokens are found when the text is read next."""

    def finish(self, length: int) -> None:
        """Reset the cache, because no other run can use it."""
        self.reader.crop(0)
        self._cached_ids, self._cached_drafts = [], []

    def _catch_up(self, ids: list[int]) -> torch.Tensor | None:
        """Return logits [1, V] after the text; reuse cached tokens, including guesses that were accepted."""
        cached_count = shared_length(self._cached_ids, ids)
        rows = shared_length(self._cached_drafts, ids[cached_count:]) if cached_count == len(self._cached_ids) else 0
        if cached_count + rows == len(ids):  # the last token has to be read again to get its logits
            cached_count, rows = (cached_count, rows - 1) if rows else (cached_count - 1, 0)
        if cached_count < len(self._cached_ids):
            self.reader.crop(cached_count)
        else:
            self.reader.commit(range(rows))
        self._cached_ids, self._cached_drafts = ids, []
        return read_text_in_chunks(self.reader, upload([ids[cached_count + rows :]], self._device), self._is_cancelled)

    def _draft_tokens(self, logits: torch.Tensor, plan: RoundPlan, count: int, pace: float) -> _DraftTokens | None:
        """Draft the most likely tokens, at most `count`; `pace` of them correspond to one target token."""
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

    def _to_target_branch(self, guess: _DraftTokens, partial_token: bytes, plan: RoundPlan) -> Branch:
        """Convert a draft to the target's tokens. `partial_token`: bytes of an incomplete character in the text, which
        the draft must complete.
        """
        token_bytes = [self._draft_vocabulary.tokenizer.token_bytes(token) or b"" for token in guess.ids]
        data = b"".join(token_bytes)
        data = data[: complete_length(data)]
        if not data.startswith(partial_token):
            return Branch()
        pieces = (
            tokenize_continuation(self._text, data[len(partial_token) :], self._target_vocabulary.tokenizer)
            if len(data) > len(partial_token)
            else []
        )
        ids, shares = (
            [piece.id for piece in pieces],
            _target_token_probabilities(pieces, token_bytes, guess.probabilities, len(partial_token)),
        )
        if guess.has_ended and self._target_vocabulary.end_token is not None and (pieces or data == partial_token):
            ids, shares = [*ids, self._target_vocabulary.end_token], [*shares, guess.probabilities[-1]]
        ids = self._target_vocabulary.readable_prefix(ids)[: plan.depth]
        return _build_chain(ids, shares[: len(ids)], plan.keeps_q)


def _build_chain(ids: list[int], shares: list[float], is_sampled: bool) -> Branch:
    """Build a chain; for a sampling verifier, a draft counts as a point mass."""
    if not is_sampled:
        return Branch.chain(ids, shares)
    branch = Branch.chain(ids, [1.0] * len(ids), [None] * len(ids))
    branch.confidences = shares
    return branch


def _target_token_probabilities(
    pieces: Sequence[TokenSpan], token_bytes: Sequence[bytes], shares: Sequence[float], begun_bytes: int
) -> list[float]:
    """Return the draft probability of each target token: the product over the draft tokens that begin within it."""
    found, own, start = [], 0, -begun_bytes
    for piece in pieces:
        share = 1.0
        while own < len(token_bytes) and start < piece.end:
            share *= shares[own]
            start += len(token_bytes[own])
            own += 1
        found.append(share)
    return found
