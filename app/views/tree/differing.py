"""Texts in a narrow column, shortened so that the part in which they differ stays in sight."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from PySide6.QtCore import QModelIndex, QObject, QPersistentModelIndex, Qt
from PySide6.QtGui import QFontMetrics
from PySide6.QtWidgets import QStyledItemDelegate, QStyleOptionViewItem

Index = QModelIndex | QPersistentModelIndex
DIFFERS_AT_ROLE = Qt.ItemDataRole.UserRole + 7
"""Role of the index of the first letter at which a text differs from every other one."""
CONTEXT_LENGTH = 12
"""Letters before that place that are shown where there is room."""


def first_unique_indices(texts: Sequence[str]) -> list[int]:
    """For each text the length of the longest beginning that it shares with another one.

    Of sorted texts only neighbours have to be compared, so that the cost does not grow with the square of their number.
    """
    order = sorted(range(len(texts)), key=texts.__getitem__)
    places = [0] * len(texts)
    for one, other in pairwise(order):
        shared = _shared_prefix_length(texts[one], texts[other])
        places[one], places[other] = max(places[one], shared), max(places[other], shared)
    return places


def text_start(text: str) -> int:
    """Where the words of a row begin, after a mark such as a star."""
    return 2 if text[1:2] == " " and not text[:1].isalnum() else 0


def elide_around(text: str, index: int, width: int, metrics: QFontMetrics) -> str:
    """`text` in `width` pixels: whole where it fits, else without its beginning or its end, the letters from `index` on
    kept."""
    if metrics.horizontalAdvance(text) <= width:
        return text
    tail = width - metrics.horizontalAdvance("…")
    start = max(0, min(index - CONTEXT_LENGTH, len(text)))
    while start > 0 and metrics.horizontalAdvance(text[start - 1 :]) <= tail:
        start -= 1
    start = _word_start(text, start) if start else 0
    if not start:
        return metrics.elidedText(text, Qt.TextElideMode.ElideRight, width)
    return metrics.elidedText("…" + text[start:], Qt.TextElideMode.ElideRight, width)


class DifferenceDelegate(QStyledItemDelegate):
    """Draws the texts of a column that has DIFFERS_AT so; `padding` is what a cell's style leaves at either side."""

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self.padding = 0

    def initStyleOption(self, option: QStyleOptionViewItem, index: Index) -> None:
        super().initStyleOption(option, index)
        place = index.data(DIFFERS_AT_ROLE)
        if place is None:
            return
        room = option.rect.width() - 2 * self.padding - 4
        option.text = elide_around(option.text, place, max(room, 0), QFontMetrics(option.font))
        option.textElideMode = Qt.TextElideMode.ElideRight


def _word_start(text: str, start: int) -> int:
    """The beginning of the word after `start`, where one begins nearby."""
    if text[start - 1] == " ":
        return start
    space = text.find(" ", start, start + CONTEXT_LENGTH)
    return space + 1 if space >= 0 else start


def _shared_prefix_length(one: str, other: str) -> int:
    pairs = zip(one, other, strict=False)
    return next((place for place, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))
