"""The text of many paths at once: what a token adds to the path it continues, without one decoder a path."""

from __future__ import annotations

from typing import Any, NamedTuple

from core.models.text import Pieces

_INCOMPLETE = "\ufffd"
_WINDOW = 6
"""Tokens before a new one that its spelling may depend on."""


class PathText(NamedTuple):
    """What must be known of a path to spell its next token."""

    tail: tuple[int, ...]
    held: int
    """Tokens at its end whose character is still incomplete."""
    begun: bool
    """Whether any text stands before: some tokenizers strip the space in front of the very first word."""


class Speller:
    """Spells tokens on paths; the texts of a path and `flush` at its end add up to the decoded sequence."""

    def __init__(self, tokenizer: Any, pieces: Pieces, context: list[int]) -> None:
        self._tokenizer = tokenizer
        self._pieces = pieces
        self._plain: dict[int, bool] = {}
        tail = tuple(context[-_WINDOW:])
        self.start = PathText(tail, 0, bool(self._decode(tail)))

    def push(self, path: PathText, token: int) -> tuple[str, PathText]:
        """Whole characters that `token` completes on `path`, and the path it makes."""
        if self._tokenizer is None:
            return "", path
        if not path.held and path.begun:
            if token in self._pieces.special:
                return "", PathText((*path.tail[1 - _WINDOW :], token), 0, True)
            if self._plain.get(token):
                return self._pieces[token], PathText((*path.tail[1 - _WINDOW :], token), 0, True)
        return self._spell(path, token)

    def flush(self, path: PathText) -> str:
        """What is still held back at the end of a path, incomplete as it is."""
        if not path.held:
            return ""
        return self._decode(path.tail)[len(self._decode(path.tail[: -path.held])) :]

    def _spell(self, path: PathText, token: int) -> tuple[str, PathText]:
        known = path.tail[: len(path.tail) - path.held]
        ids = (*path.tail, token)
        before, after = self._decode(known), self._decode(ids)
        if after.endswith(_INCOMPLETE):
            return "", PathText(ids, path.held + 1, path.begun)
        text = after[len(before) :]
        if path.begun and not path.held:
            # A token whose text is its own piece here has it everywhere: it need not be decoded again.
            self._plain[token] = text == self._pieces[token]
        return text, PathText(ids[-_WINDOW:], 0, path.begun or bool(text))

    def _decode(self, ids: tuple[int, ...]) -> str:
        if self._tokenizer is None or not ids:
            return ""
        text: str = self._tokenizer.decode(list(ids), skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return text
