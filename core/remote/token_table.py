"""Tokens as an engine reports them: texts, and ids where the engine reports ids."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from core.remote.sse import Utf8Joiner

_MAX_ANSWERS = 64
"""Answers whose shown text is remembered."""


class AnswerText:
    """The tokens of one answer with the text that each of them adds, as it was shown."""

    def __init__(self) -> None:
        self.ids: list[int] = []
        self.texts: list[str] = []

    def add(self, number: int, text: str) -> None:
        """Append one token."""
        self.ids.append(number)
        self.texts.append(text)

    def common_prefix_length(self, ids: Sequence[object]) -> int:
        """Return how many tokens `ids` and this answer have in common from the start."""
        length = 0
        for one, other in zip(ids, self.ids, strict=False):
            if one != other:
                break
            length += 1
        return length


class TokenTable:
    """Each token's number and text. One whose id the engine does not tell has a negative number, which only tells it
    from others."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._pieces: dict[int, str] = {}
        self._data: dict[int, bytes] = {}
        self._answers: deque[AnswerText] = deque(maxlen=_MAX_ANSWERS)

    def new_answer(self) -> AnswerText:
        """Return the record of a new answer. A branch of the answer continues from the text in this record."""
        self._answers.append(AnswerText())
        return self._answers[-1]

    def shown_prefix(self, ids: Sequence[object]) -> tuple[str, int]:
        """Return the shown text of the longest start of `ids` that an answer has, and the number of its tokens."""
        found = max(self._answers, key=lambda one: one.common_prefix_length(ids), default=None)
        length = found.common_prefix_length(ids) if found is not None else 0
        return ("".join(found.texts[:length]), length) if found is not None else ("", 0)

    def bytes_of(self, number: int) -> bytes | None:
        """Return the bytes of a token, or None where its bytes are not known: it may be part of a character."""
        if number in self._data:
            return self._data[number]
        piece = self._pieces.get(number)
        return None if piece is None or "\ufffd" in piece else piece.encode("utf-8", "replace")

    def id_of(self, piece: str, reported_id: int | None = None, data: bytes | None = None) -> int:
        """The id that was told, else a number of ours, always the same for the same text. `bytes_of`: the bytes of the
        token, where the engine reports them."""
        if reported_id is not None:
            if data is not None:
                self._data.setdefault(reported_id, data)
            self._pieces.setdefault(reported_id, piece)
            self._numbers.setdefault(piece, reported_id)
            return reported_id
        found = self._numbers.get(piece)
        if found is None:
            found = self._numbers[piece] = -1 - len(self._numbers)
            self._pieces[found] = piece
        return found

    def piece_of(self, number: int) -> str | None:
        """The text of a token that has been told; None for any other."""
        return self._pieces.get(number)


def display_piece(piece: str, data: object) -> str:
    """A token's own text; from its bytes, where the engine tells them and they are no whole characters: ⟨E2⟩."""
    known = as_bytes(data)
    return display_bytes(known) if known else repair_text(piece)


def display_bytes(data: bytes) -> str:
    """Return the bytes of a token as text, with each byte that is not part of a whole character as ⟨E2⟩."""
    text = data.decode("utf-8", "surrogateescape")
    return "".join(f"⟨{ord(char) - 0xDC00:02X}⟩" if "\udc80" <= char <= "\udcff" else char for char in text)


def as_bytes(data: object) -> bytes | None:
    """Return a JSON list of byte values as bytes, or None for anything else."""
    if isinstance(data, list) and all(isinstance(one, int) and 0 <= one < 256 for one in data):
        return bytes(data)
    return None


def repair_text(text: str) -> str:
    """Whole characters only: what is half has the mark of a broken one."""
    joiner = Utf8Joiner()
    return joiner.push(text) + joiner.flush()
