"""What the tables beside the trees have in common."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QPersistentModelIndex, Qt
from PySide6.QtGui import QFontMetrics
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHeaderView,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTableView,
    QWidget,
)

from app.theme.theme import Theme
from resources.language import tr

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


_NO_PARENT = QModelIndex()


class SortedRowsModel(QAbstractTableModel):
    """Rows in the order of the column that sorts. One says what that goes by (`sort_key`) and what a cell is (`data`)."""

    def __init__(
        self, titles: Sequence[str], numbers: Collection[int], order: tuple[int, Qt.SortOrder],
        parent: QObject | None = None,
    ) -> None:  # fmt: skip
        """`titles`: marked, of the columns; `numbers`: the columns that stand to the right; `order`: which sorts."""
        super().__init__(parent)
        self.rows: list[Any] = []
        self._titles, self._right_aligned, self._order = titles, numbers, order
        self._unique_indices: list[int] = []

    def sort_key(self, row: Any, column: int) -> Any:
        """What that column sorts by."""
        raise NotImplementedError

    def column_title(self, column: int) -> str:
        """What stands above a column."""
        return tr(self._titles[column])

    def alignment(self, column: int) -> Qt.AlignmentFlag:
        """Where its cells stand."""
        side = Qt.AlignmentFlag.AlignRight if column in self._right_aligned else Qt.AlignmentFlag.AlignLeft
        return side | Qt.AlignmentFlag.AlignVCenter

    def show_sorted(self, rows: Iterable[Any]) -> None:
        """Other rows."""
        ordered = self._sorted(rows)
        same = len(ordered) == len(self.rows)
        if not same:
            self.beginResetModel()
        self.rows = ordered
        if not same:
            self.endResetModel()
        self.refresh_cells()

    def first_unique_index(self, row: int, text: int) -> int:
        """The first letter of a row's text, in column `text`, at which it differs from every other row's."""
        if len(self._unique_indices) != len(self.rows):
            texts = [str(self.index(place, text).data()) for place in range(len(self.rows))]
            starts = [text_start(one) for one in texts]
            bare = [one[start:] for one, start in zip(texts, starts, strict=True)]
            self._unique_indices = [
                place + start for place, start in zip(first_unique_indices(bare), starts, strict=True)
            ]
        return self._unique_indices[row]

    def refresh_cells(self) -> None:
        """Every cell may be another."""
        self._unique_indices = []
        if self.rows:
            self.dataChanged.emit(self.index(0, 0), self.index(len(self.rows) - 1, len(self._titles) - 1))

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        """Sort by a column, now and from now on."""
        self._order = (max(column, 0), order)
        self.layoutAboutToBeChanged.emit()
        self.rows, self._unique_indices = self._sorted(self.rows), []
        self.layoutChanged.emit()
        self.headerDataChanged.emit(Qt.Orientation.Horizontal, 0, len(self._titles) - 1)

    def rowCount(self, parent: Index = _NO_PARENT) -> int:
        """How many there are."""
        return 0 if parent.isValid() else len(self.rows)

    def columnCount(self, parent: Index = _NO_PARENT) -> int:
        """As many as there are titles."""
        return 0 if parent.isValid() else len(self._titles)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Titles of the columns, and a sign at the one that sorts."""
        if orientation != Qt.Orientation.Horizontal:
            return None
        if role == Qt.ItemDataRole.DisplayRole:
            sign = "↓" if self._order[1] == Qt.SortOrder.DescendingOrder else "↑"
            return f"{self.column_title(section)} {sign}" if section == self._order[0] else self.column_title(section)
        return self.alignment(section) if role == Qt.ItemDataRole.TextAlignmentRole else None

    def _sorted(self, rows: Iterable[Any]) -> list[Any]:
        column, order = self._order
        return sorted(rows, key=lambda row: self.sort_key(row, column), reverse=order == Qt.SortOrder.DescendingOrder)


class SortableTable(QTableView):
    """Sortable rows, one of them selected; one column, of text, takes what room the others leave."""

    def __init__(self, name: str, model: QAbstractTableModel, text: int, widths: Mapping[int, int],
                 parent: QWidget | None = None) -> None:  # fmt: skip
        """`text`: the column of text; `widths`: pixels of the others at 100 %."""
        super().__init__(parent)
        self._widths = widths
        self._delegate = DifferenceDelegate(self)
        self.setObjectName(name)
        self.setModel(model)
        self.setItemDelegateForColumn(text, self._delegate)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setShowGrid(False)
        self.setWordWrap(False)
        self.verticalHeader().hide()
        head = self.horizontalHeader()
        head.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        head.setSectionResizeMode(text, QHeaderView.ResizeMode.Stretch)
        head.setHighlightSections(False)
        head.setMinimumSectionSize(34)
        self.setSortingEnabled(True)

    def set_theme(self, theme: Theme) -> None:
        """Other colours and sizes."""
        self.verticalHeader().setDefaultSectionSize(theme.px(27))
        self._delegate.padding = theme.px(6)
        for column, width in self._widths.items():
            self.setColumnWidth(column, theme.px(width))
        self.setStyleSheet(
            f"QTableView {{ background: {theme.panel}; border: 0; padding: 0; }}"
            f"QTableView::item {{ padding: 0 {theme.px(6)}px; border: 0; border-bottom: 1px solid {theme.line}; }}"
            f"QHeaderView::section {{ padding: {theme.px(5)}px {theme.px(6)}px; }}"
            f"QHeaderView::down-arrow, QHeaderView::up-arrow {{ image: none; width: 0; height: 0; }}"
            f"QTableView::item:selected {{ background: {theme.tint}; color: {theme.text}; }}"
        )

    def full_height(self) -> int:
        """Pixels that all rows and the head take."""
        row = self.verticalHeader().defaultSectionSize()
        return self.horizontalHeader().sizeHint().height() + row * max(2, self.model().rowCount()) + 2
