"""Tokens as text: one token's own piece, and the exact text a growing sequence of tokens spells."""

from __future__ import annotations

import codecs
import copy
import re
from collections.abc import Sequence
from functools import cache

from core.models.network import Tokenizer

BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2})>")
INCOMPLETE = "\ufffd"
_WINDOW = 6
"""Tokens before a new one that its spelling may depend on."""
_LONGEST = 24
"""Tokens that are decoded again for each new one, at most."""


@cache
def byte_alphabet() -> dict[str, int]:
    """Byte-level BPE's printable stand-ins: character → byte (Radford et al. 2019)."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [b for b in range(256) if b not in set(printable)]
    return {chr(b): b for b in printable} | {chr(256 + i): b for i, b in enumerate(others)}


_Utf8 = codecs.getincrementaldecoder("utf-8")


def shown_bytes(text: str) -> str:
    """Decoded with surrogateescape: every byte that belongs to no whole character is written as ⟨E2⟩."""
    return "".join(f"⟨{ord(char) - 0xDC00:02X}⟩" if 0xDC80 <= ord(char) <= 0xDCFF else char for char in text)


def _append(texts: list[str], rest: str) -> None:
    """Bytes that nothing completed any more belong to the last token before."""
    if rest and texts:
        texts[-1] += shown_bytes(rest)


class Pieces:
    """What single token ids stand for, remembered."""

    def __init__(self, tokenizer: Tokenizer | None) -> None:
        self._tokenizer = tokenizer
        self._known: dict[int, str] = {}
        self._spelled: dict[int, bytes | None] = {}
        self.special: frozenset[int] = frozenset(tokenizer.all_special_ids) if tokenizer is not None else frozenset()
        self._byte_level = _is_byte_level(tokenizer)

    def __getitem__(self, token: int) -> str:
        piece = self._known.get(token)
        if piece is None:
            piece = self._known[token] = self._spell(token)
        return piece

    def texts(self, ids: Sequence[int]) -> list[str]:
        """What each of `ids` adds to the text that they spell. A character made of several tokens comes with the last
        of them, bytes that belong to no whole character as ⟨E2⟩, and special tokens as they are."""
        found: list[str] = []
        decoder = _Utf8("surrogateescape")
        for token in ids:
            data = self.data(token)
            if data is None:
                _append(found, decoder.decode(b"", final=True))
            found.append(self[token] if data is None else shown_bytes(decoder.decode(data)))
        _append(found, decoder.decode(b"", final=True))
        return found

    def _spell(self, token: int) -> str:
        data = self.data(token)
        if data is not None:
            return shown_bytes(data.decode("utf-8", "surrogateescape"))
        raw = self._raw(token)
        return f"⟨{token}⟩" if raw is None else raw

    def _raw(self, token: int) -> str | None:
        raw = self._tokenizer.convert_ids_to_tokens(token) if self._tokenizer is not None else None
        return None if raw is None else str(raw)

    def data(self, token: int) -> bytes | None:
        """The bytes that a token spells; None for special tokens, and for those that the tokenizer does not know."""
        if token not in self._spelled:
            self._spelled[token] = self._read(token)
        return self._spelled[token]

    def _read(self, token: int) -> bytes | None:
        raw = self._raw(token)
        if raw is None or token in self.special:
            return None
        if self._byte_level and all(char in byte_alphabet() for char in raw):
            return bytes(byte_alphabet()[char] for char in raw)
        if match := BYTE_TOKEN.fullmatch(raw):
            return bytes([int(match[1], 16)])
        return raw.replace("▁", " ").encode("utf-8", "surrogatepass")


def _is_byte_level(tokenizer: Tokenizer | None) -> bool:
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is not None:
        return "ByteLevel" in repr(backend.decoder)
    return hasattr(tokenizer, "byte_decoder")


class Decoder:
    """A tokenizer's decoding, special tokens left out, as texts that grow need it."""

    def __init__(self, tokenizer: Tokenizer | None) -> None:
        self._tokenizer = tokenizer

    def __call__(self, ids: Sequence[int]) -> str:
        if self._tokenizer is None or not ids:
            return ""
        return self._tokenizer.decode(list(ids), skip_special_tokens=True, clean_up_tokenization_spaces=False)

    def added(self, known: Sequence[int], ids: Sequence[int]) -> str:
        """The text that `ids` has after that of its beginning `known`, which ends with a whole character.

        Decoders with byte tokens give up a whole run of them for one byte that does not belong there; what was shown
        of it stays, and only what came since is given as it is.
        """
        before, after = self(known), self(ids)
        return after[len(before) :] if after.startswith(before) else self(ids[len(known) :])

    def tail(self, ids: Sequence[int]) -> Sequence[int]:
        """The last tokens that spelling the next one may depend on: a few, with some text, from a whole character on.

        A window that begins inside a character's bytes would spoil the whole run of them.
        """
        start = max(0, len(ids) - _WINDOW)
        while start > 0 and not self._stands_alone(ids[start:]):
            start -= 1
        return ids[start:]

    def _stands_alone(self, ids: Sequence[int]) -> bool:
        text = self(ids)
        return bool(text.strip()) and not text.startswith(INCOMPLETE)


class TextStream:
    """Spells a sequence as it grows; what `push` and `flush` return adds up to the decoded sequence.

    `context` are tokens before it: tokenizers that strip a leading space need them to get it right.
    """

    def __init__(self, tokenizer: Tokenizer | None, context: list[int]) -> None:
        self._decode = Decoder(tokenizer)
        self._blind = tokenizer is None
        self._ids = list(self._decode.tail(context))
        self._whole = len(self._ids)
        """Tokens whose characters are whole, and told."""
        self._done = self._decode(self._ids)

    def copy(self) -> TextStream:
        """Another one at the same place of the same text."""
        twin = copy.copy(self)
        twin._ids = list(self._ids)
        return twin

    @property
    def held(self) -> int:
        """Tokens at the end whose character is incomplete."""
        return len(self._ids) - self._whole

    def push(self, token: int) -> str:
        """Whole characters that `token` completes; empty while one is incomplete."""
        if self._blind:
            return ""
        self._ids.append(token)
        text = self._decode(self._ids)
        if text.endswith(INCOMPLETE):
            return ""
        new = text[len(self._done) :] if text.startswith(self._done) else self._decode(self._ids[self._whole :])
        if len(self._ids) > _LONGEST:  # decoding a short window keeps a token's cost constant
            self._ids = list(self._decode.tail(self._ids))
            text = self._decode(self._ids)
        self._whole, self._done = len(self._ids), text
        return new

    def flush(self) -> str:
        """What is still held back, incomplete as it is."""
        new = self._decode.added(self._ids[: self._whole], self._ids)
        self._whole, self._done = len(self._ids), self._decode(self._ids)
        return new
