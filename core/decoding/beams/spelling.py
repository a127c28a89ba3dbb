"""The text of many paths at once: what a token adds to the path it continues, without one decoder a path."""

from __future__ import annotations

from typing import NamedTuple

from core.models.network import Tokenizer
from core.models.text import INCOMPLETE, Decoder, Pieces

_LONGEST = 16
"""Tokens of a path's end that are kept, at most, while none of them has to be decoded."""


class PathText(NamedTuple):
    """What must be known of a path to spell its next token."""

    tail: tuple[int, ...]
    held: int
    """Tokens at its end whose character is still incomplete."""
    begun: bool
    """Whether any text stands before: some tokenizers strip the space in front of the very first word."""


class Speller:
    """Spells tokens on paths; the texts of a path and `flush` at its end add up to the decoded sequence."""

    def __init__(self, tokenizer: Tokenizer | None, pieces: Pieces, context: list[int], held: int = 0) -> None:
        """`held`: tokens at the end of `context` whose character is incomplete."""
        self._blind = tokenizer is None
        self._decode = Decoder(tokenizer)
        self._pieces = pieces
        self._plain: dict[int, bool] = {}
        tail = tuple(self._decode.tail(context))
        self.start = PathText(tail, held, bool(self._decode(tail[: len(tail) - held])))

    def push(self, path: PathText, token: int) -> tuple[str, PathText]:
        """Whole characters that `token` completes on `path`, and the path it makes."""
        if self._blind:
            return "", path
        if not path.held and path.begun:
            if token in self._pieces.special:
                return "", self._grown(path, token)
            if self._plain.get(token):
                return self._pieces[token], self._grown(path, token)
        return self._spell(path, token)

    def flush(self, path: PathText) -> str:
        """What is still held back at the end of a path, incomplete as it is."""
        if not path.held:
            return ""
        return self._decode.added(path.tail[: -path.held], path.tail)

    def _grown(self, path: PathText, token: int) -> PathText:
        tail = (*path.tail, token)
        return PathText(tail if len(tail) <= _LONGEST else tuple(self._decode.tail(tail)), 0, True)

    def _spell(self, path: PathText, token: int) -> tuple[str, PathText]:
        known = path.tail[: len(path.tail) - path.held]
        ids = (*path.tail, token)
        if self._decode(ids).endswith(INCOMPLETE):
            return "", PathText(ids, path.held + 1, path.begun)
        text = self._decode.added(known, ids)
        if path.begun and not path.held:
            # A token whose text is its own piece here has it everywhere: it need not be decoded again.
            self._plain[token] = text == self._pieces[token]
        return text, PathText(tuple(self._decode.tail(ids)), 0, path.begun or bool(text))
