"""Text between two tokenizers: one's tokens as bytes, bytes as the other's tokens, and the seam where text goes on.

What a tokenizer makes of a text depends on what stands before and behind it, so a text that grows cannot be told in
another tokenizer's words by adding to its end alone: the last of them may be read anew (Timor et al. 2025).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from core.models.text import TokenSpellings

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_WINDOW_TOKENS = 12
"""Tokens at the end of a text that are read anew when it has grown."""
_SKIPPED_TOKENS = 3
"""The first of them are not believed: a text that begins there may be cut otherwise."""
_PROBE = "The Fox said: “I'm 12.5 years — naïve?”\n  Was it?"
_SPECIAL_TOKEN_BYTES = b"\n"
"""What stands for a special token, which is no text."""


class TokenSpan(NamedTuple):
    """A token, and where in the text's bytes it ends."""

    id: int
    end: int


class OffsetTokenizer:
    """A tokenizer as one that spells."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase, pieces: TokenSpellings) -> None:
        self._tokenizer, self._pieces = tokenizer, pieces

    def token_bytes(self, token: int) -> bytes | None:
        """What a token spells; None for a special one."""
        return self._pieces.data(token)

    def tokenize(self, data: bytes, exactly: bool = False) -> list[TokenSpan] | None:
        """Tokens of whole characters; None where they would spell something else.

        Tokenizers that put a blank before every text may do so, unless it has to be read `exactly`.
        """
        ids = self._tokenizer.encode(data.decode("utf-8", "replace"), add_special_tokens=False)
        spelled = [self._pieces.data(token) or b"" for token in ids]
        whole = b"".join(spelled)
        surplus = int(whole == b" " + data)
        if (not surplus and whole != data) or (surplus and exactly):
            return None
        ends = accumulate(len(part) for part in spelled)
        return [TokenSpan(token, end - surplus) for token, end in zip(ids, ends, strict=True)]

    @property
    def is_exact(self) -> bool:
        """Whether it gives a text back as it was: one that writes everything small does not."""
        return self.tokenize(_PROBE.encode()) is not None

    @property
    def start_ids(self) -> list[int]:
        """Special tokens that it puts before a text."""
        plain, whole = (self._tokenizer.encode("a", add_special_tokens=special) for special in (False, True))
        places = [place for place in range(len(whole)) if whole[place : place + len(plain)] == plain]
        return list(whole[: places[0]]) if places else []


class RetokenizedText:
    """A text that grows token by token, as bytes."""

    def __init__(self, tokenizer: OffsetTokenizer) -> None:
        self._tokenizer = tokenizer
        self.data = bytearray()
        self.ends: list[int] = []
        self.last_special_end = 0
        """Where the text behind the last special token begins."""

    def append_new(self, ids: Sequence[int]) -> None:
        """All ids of the text; what is new of them is spelled."""
        for token in ids[len(self.ends) :]:
            spelled = self._tokenizer.token_bytes(token)
            if spelled is None:
                self.data += _SPECIAL_TOKEN_BYTES if self.data else b""
                self.last_special_end = len(self.data)
            else:
                self.data += spelled
            self.ends.append(len(self.data))

    def window_start(self) -> int:
        """Where the window begins that the seam is read in: at a whole character, behind the last special token."""
        start = self.ends[-_WINDOW_TOKENS] if len(self.ends) > _WINDOW_TOKENS else 0
        return max(next_character_start(self.data, start), self.last_special_end)


def complete_length(data: bytes | bytearray) -> int:
    """Bytes up to the last whole character."""
    for cut in range(1, min(4, len(data)) + 1):
        lead = data[-cut]
        if lead & 0xC0 != 0x80:
            needed = 1 if lead < 0x80 else 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
            return len(data) - cut if needed > cut else len(data)
    return len(data)


def next_character_start(data: bytes | bytearray, start: int) -> int:
    """The first place from `start` on where a character begins."""
    while start < len(data) and data[start] & 0xC0 == 0x80:
        start += 1
    return start


def retokenize(previous: Sequence[TokenSpan], data: bytes, tokenizer: OffsetTokenizer) -> list[TokenSpan] | None:
    """The text `data`, whose beginning `previous` spells, in tokens: only its end is read anew, and joined to `previous` where
    both have a token ending. None where it cannot be spelled."""
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
    """Tokens behind a text that spell `drafted`, ends counted in `drafted`; empty where there are none.

    Read together with the text's end where a token ends at the seam, else alone: what is written already stays.
    """
    start = text.window_start()
    fresh = tokenizer.tokenize(bytes(text.data[start:]) + drafted) or []
    seam = len(text.data) - start
    place = bisect_left(fresh, seam, key=lambda piece: piece.end)
    if seam == 0 or (place < len(fresh) and fresh[place].end == seam):
        behind = fresh[place + 1 :] if seam else fresh
        return [TokenSpan(piece.id, piece.end - seam) for piece in behind]
    return tokenizer.tokenize(drafted, exactly=True) or []
