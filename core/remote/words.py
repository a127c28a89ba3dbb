"""Tokens as an engine tells them: texts, and ids where it tells those."""

from __future__ import annotations

from core.remote.messages import Joiner


class Words:
    """Each token's number and text. One whose id the engine does not tell has a negative number, which only tells it
    from others."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._pieces: dict[int, str] = {}

    def number(self, piece: str, told: int | None = None) -> int:
        """The id that was told, else a number of ours, always the same for the same text."""
        if told is not None:
            self._pieces.setdefault(told, piece)
            self._numbers.setdefault(piece, told)
            return told
        found = self._numbers.get(piece)
        if found is None:
            found = self._numbers[piece] = -1 - len(self._numbers)
            self._pieces[found] = piece
        return found

    def piece(self, number: int) -> str | None:
        """The text of a token that has been told; None for any other."""
        return self._pieces.get(number)


def shown(piece: str, data: object) -> str:
    """A token's own text; from its bytes, where the engine tells them and they are no whole characters: ⟨E2⟩."""
    if not (isinstance(data, list) and data and all(isinstance(one, int) and 0 <= one < 256 for one in data)):
        return whole(piece)
    text = bytes(data).decode("utf-8", "surrogateescape")
    return "".join(f"⟨{ord(char) - 0xDC00:02X}⟩" if "\udc80" <= char <= "\udcff" else char for char in text)


def whole(text: str) -> str:
    """Whole characters only: what is half has the mark of a broken one."""
    joiner = Joiner()
    return joiner.push(text) + joiner.flush()
