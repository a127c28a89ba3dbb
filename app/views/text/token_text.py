"""Text of one column as the token view shows it: which characters belong to which token. No Qt."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from decodescope.core import words
from decodescope.resources.language import tr

if TYPE_CHECKING:
    from decodescope.core.events import PromptToken, TokenChosen

_THIN, _TIE = "\u2009", "\u202f"


def control_token_text(piece: str) -> str:
    """Return the text drawn for a control token: its name between thin spaces."""
    name = words.control_name(piece) or words.visible(piece.strip()) or tr("special")
    return f"{_THIN}{_TIE}{name.replace(' ', _TIE)}{_TIE}{_THIN}"


class TokenText:
    """A prompt, then tokens. `text` is what is drawn, and piece `n` covers `starts[n]` to `starts[n + 1]`.

    The first `input_pieces` pieces are the prompt, those up to `prompt_pieces` the answer prefix; token `i` is piece
    `prompt_pieces + i`.
    """

    def __init__(self, prompt: Sequence[PromptToken] = (), answer_prefix: Sequence[PromptToken] = ()) -> None:
        self.text = ""
        self.starts: list[int] = []
        self.originals: list[str] = []
        self.specials: set[int] = set()
        """Pieces drawn as control tokens."""
        self.tokens: list[TokenChosen] = []
        self.tail = ""
        for token in prompt:
            self._append_piece(token.text, special=bool(words.control_name(token.text, token.special)))
        self.input_pieces = len(self.starts)
        self._needs_separator = bool(prompt) and bool(words.control_name(prompt[-1].text, prompt[-1].special))
        for token in answer_prefix:
            self.text += self._take_separator()
            special = not token.text and bool(words.control_name(token.piece, token.special))
            self._append_piece(token.piece if special else token.text, special)
        self.prompt_pieces = len(self.starts)

    def append(self, tokens: Iterable[TokenChosen]) -> None:
        """Append newly chosen tokens."""
        chosen = list(tokens)
        drawn = [self.text + self._take_separator()] if chosen else [self.text]
        end = len(drawn[0])
        for token in chosen:
            drawn.append(self._add_piece(token.piece if token.special else token.text, token.special, end))
            end += len(drawn[-1])
        self.tokens += chosen
        self.text = "".join(drawn)

    def _take_separator(self) -> str:
        """Return the separator before text that follows a control token (a summary or an answer), once."""
        parting = "\n" if self._needs_separator else ""
        self._needs_separator = False
        return parting

    def finish(self, tail: str) -> None:
        """Append the characters that were held back until the end; they belong to no token."""
        self.tail = tail
        self.text += words.visible(tail)

    def _append_piece(self, text: str, special: bool) -> None:
        self.text += self._add_piece(text, special, len(self.text))

    def _add_piece(self, text: str, special: bool, start: int) -> str:
        """Add a piece at `start` and return the text drawn for it."""
        if special:
            self.specials.add(len(self.starts))
        self.starts.append(start)
        self.originals.append("" if special else text)
        return control_token_text(text) if special else words.visible(text)

    @property
    def tail_start(self) -> int:
        """Offset up to which every character belongs to a piece."""
        return len(self.text) - len(self.tail)

    @property
    def prompt_end(self) -> int:
        """Offset of the first character after the prompt."""
        return self.starts[self.input_pieces] if len(self.starts) > self.input_pieces else self.tail_start

    def piece_span(self, piece: int) -> tuple[int, int]:
        """Return the start and end of a piece in `text`."""
        last = piece + 1 >= len(self.starts)
        return self.starts[piece], self.tail_start if last else self.starts[piece + 1]

    def token_span(self, token: int) -> tuple[int, int]:
        """Return the start and end of a token in `text`; empty while its character is incomplete."""
        return self.piece_span(self.prompt_pieces + token)

    def end_of_tokens(self, count: int) -> int:
        """Return the end of the text if only the first `count` tokens are drawn."""
        if count >= len(self.tokens):
            return len(self.text)
        return self.starts[self.prompt_pieces + count]

    def token_at(self, offset: int) -> int | None:
        """Return the token that contains the character at `offset`; None in the prompt and the tail."""
        piece = bisect_right(self.starts, offset) - 1
        if piece < self.prompt_pieces or offset >= self.tail_start:
            return None
        return piece - self.prompt_pieces

    def pieces_in(self, start: int, end: int) -> range:
        """Return the pieces with a character in [start, end), and the empty pieces within it (or at the end of the
        text).
        """
        first = max(0, bisect_right(self.starts, start) - 1)
        if self.starts and self.starts[first] == start:
            first = bisect_left(self.starts, start)
        last = len(self.starts) if end >= len(self.text) else bisect_left(self.starts, end)
        return range(first, last)

    def empty_before(self, piece: int) -> int:
        """Return the number of empty pieces directly before a piece."""
        return piece - bisect_left(self.starts, self.starts[piece])

    def last_at_same_start(self, piece: int) -> int:
        """Return the last piece with the same start as a piece; only that one can have text."""
        return bisect_right(self.starts, self.starts[piece]) - 1

    def multi_token_characters(self, start: int, end: int) -> list[tuple[int, int]]:
        """Return (offset, token count) of the prompt characters in [start, end) that consist of several tokens."""
        groups, parts = [], 0
        for piece in self.pieces_in(start, end):
            if piece >= self.prompt_pieces:
                break
            first, last = self.piece_span(piece)
            if first == last:
                parts += 1
            elif parts and first >= start:
                groups.append((first, parts + 1))
            if first != last:
                parts = 0
        return groups

    def original_text(self, start: int, end: int) -> str:
        """Return the original text between two offsets, without control tokens and with control characters restored."""
        parts = []
        for piece in self.pieces_in(start, end):
            a, b = self.piece_span(piece)
            parts.append(self.originals[piece][max(0, start - a) : max(0, min(b, end) - a)])
        parts.append(self.tail[max(0, start - self.tail_start) : max(0, end - self.tail_start)])
        return "".join(parts)
