"""The texts of tokens, each once: a page names the same few thousand of them again and again."""

from __future__ import annotations

from core.explain.words import label


class TokenTextTable:
    """Gives every token's text a number; `labels` are the texts by that number, made to be read."""

    def __init__(self) -> None:
        self.labels: list[str] = []
        self._numbers: dict[tuple[str, bool | None], int] = {}

    def __call__(self, piece: str, special: bool | None = None) -> int:
        number = self._numbers.get((piece, special))
        if number is None:
            number = self._numbers[piece, special] = len(self.labels)
            self.labels.append(label(piece, special))
        return number
