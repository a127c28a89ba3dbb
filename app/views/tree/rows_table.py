"""The model and view shared by the tables beside the trees."""

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

from decodescope.app.theme.theme import Theme
from decodescope.app.theme.themed import Themed
from decodescope.resources.language import tr

Index = QModelIndex | QPersistentModelIndex
DIFFERS_AT_ROLE = Qt.ItemDataRole.UserRole + 7
"""Item data role: index of the first character at which a text differs from all others."""
CONTEXT_LENGTH = 12
"""Number of characters shown before that index, if there is room."""


def first_unique_indices(texts: Sequence[str]) -> list[int]:
    """Return, for each text, the length of the longest prefix that it shares with another one.

    After sorting, only neighbours are compared, so the cost is not quadratic.
    """
    order = sorted(range(len(texts)), key=texts.__getitem__)
    places = [0] * len(texts)
    for one, other in pairwise(order):
        shared = _shared_prefix_length(texts[one], texts[other])
        places[one], places[other] = max(places[one], shared), max(places[other], shared)
    return places


def text_start(text: str) -> int:
    """Return the index at which a row's text starts, after a mark such as a star."""
    return 2 if text[1:2] == " " and not text[:1].isalnum() else 0


def elide_around(text: str, index: int, width: int, metrics: QFontMetrics) -> str:
    """Return `text` fitted into `width` pixels: unchanged if it fits, else elided at its start or end so that the
    characters from `index` on stay visible.
    """
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
    """Elide the texts of a column that provides DIFFERS_AT; `padding` is the cell's horizontal padding."""

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
    """Return the start of the next word after `start`, if there is one nearby."""
    if text[start - 1] == " ":
        return start
    space = text.find(" ", start, start + CONTEXT_LENGTH)
    return space + 1 if space >= 0 else start


def _shared_prefix_length(one: str, other: str) -> int:
    pairs = zip(one, other, strict=False)
    return next((place for place, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


_NO_PARENT = QModelIndex()


class SortedRowsModel(QAbstractTableModel):
    """Table model with rows in sort order. Subclasses define the sort key (`sort_key`) and the cells (`data`)."""

    def __init__(
        self, titles: Sequence[str], numbers: Collection[int], order: tuple[int, Qt.SortOrder],
        parent: QObject | None = None,
    ) -> None:  # fmt: skip
        """Create the model. `titles`: column titles marked for translation; `numbers`: right-aligned columns; `order`:
        the sort column and order.
        """
        super().__init__(parent)
        self.rows: list[Any] = []
        self._titles, self._right_aligned, self._order = titles, numbers, order
        self._unique_indices: list[int] = []

    def sort_key(self, row: Any, column: int) -> Any:
        """Return the sort key of a column."""
        raise NotImplementedError

    def column_title(self, column: int) -> str:
        """Return the title of a column."""
        return tr(self._titles[column])

    def alignment(self, column: int) -> Qt.AlignmentFlag:
        """Return the alignment of a column."""
        side = Qt.AlignmentFlag.AlignRight if column in self._right_aligned else Qt.AlignmentFlag.AlignLeft
        return side | Qt.AlignmentFlag.AlignVCenter

    def show_sorted(self, rows: Iterable[Any]) -> None:
        """Replace the rows."""
        ordered = self._sorted(rows)
        same = len(ordered) == len(self.rows)
        if not same:
            self.beginResetModel()
        self.rows = ordered
        if not same:
            self.endResetModel()
        self.refresh_cells()

    def first_unique_index(self, row: int, text: int) -> int:
        """Return the index of the first character at which a row's text, in column `text`, differs from all other
        rows.
        """
        if len(self._unique_indices) != len(self.rows):
            texts = [str(self.index(place, text).data()) for place in range(len(self.rows))]
            starts = [text_start(one) for one in texts]
            bare = [one[start:] for one, start in zip(texts, starts, strict=True)]
            self._unique_indices = [
                place + start for place, start in zip(first_unique_indices(bare), starts, strict=True)
            ]
        return self._unique_indices[row]

    def refresh_cells(self) -> None:
        """Notify the views that all cells may have changed."""
        self._unique_indices = []
        if self.rows:
            self.dataChanged.emit(self.index(0, 0), self.index(len(self.rows) - 1, len(self._titles) - 1))

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        """Sort by a column and keep that order for later rows."""
        self._order = (max(column, 0), order)
        self.layoutAboutToBeChanged.emit()
        self.rows, self._unique_indices = self._sorted(self.rows), []
        self.layoutChanged.emit()
        self.headerDataChanged.emit(Qt.Orientation.Horizontal, 0, len(self._titles) - 1)

    def rowCount(self, parent: Index = _NO_PARENT) -> int:
        """Return the number of rows."""
        return 0 if parent.isValid() else len(self.rows)

    def columnCount(self, parent: Index = _NO_PARENT) -> int:
        """Return the number of columns."""
        return 0 if parent.isValid() else len(self._titles)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Return the column titles, with an arrow on the sorted one."""
        if orientation != Qt.Orientation.Horizontal:
            return None
        if role == Qt.ItemDataRole.DisplayRole:
            sign = "↓" if self._order[1] == Qt.SortOrder.DescendingOrder else "↑"
            return f"{self.column_title(section)} {sign}" if section == self._order[0] else self.column_title(section)
        return self.alignment(section) if role == Qt.ItemDataRole.TextAlignmentRole else None

    def _sorted(self, rows: Iterable[Any]) -> list[Any]:
        column, order = self._order
        return sorted(rows, key=lambda row: self.sort_key(row, column), reverse=order == Qt.SortOrder.DescendingOrder)


class SortableTable(Themed, QTableView):
    """A table with sortable, selectable rows; its text column takes the remaining width."""

    def __init__(self, name: str, model: QAbstractTableModel, text: int, widths: Mapping[int, int],
                 parent: QWidget | None = None) -> None:  # fmt: skip
        """Create the table; `text` is the text column, `widths` the other columns' widths in pixels at 100 %."""
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

    def restyle(self, theme: Theme) -> None:
        self.verticalHeader().setDefaultSectionSize(theme.px(27))
        self._delegate.padding = theme.px(6)
        self.setStyleSheet(
            f"QTableView {{ background: {theme.panel}; border: 0; padding: 0; }}"
            f"QTableView::item {{ padding: 0 {theme.px(6)}px; border: 0; border-bottom: 1px solid {theme.line}; }}"
            f"QHeaderView::section {{ padding: {theme.px(5)}px {theme.px(6)}px; }}"
            f"QHeaderView::down-arrow, QHeaderView::up-arrow {{ image: none; width: 0; height: 0; }}"
            f"QTableView::item:selected {{ background: {theme.tint}; color: {theme.text}; }}"
        )
        head = self.horizontalHeader()
        head.ensurePolished()
        for column, width in self._widths.items():
            title = str(self.model().headerData(column, Qt.Orientation.Horizontal)).rstrip("↓↑ ")
            needed = head.fontMetrics().horizontalAdvance(f"{title} ↓") + 2 * theme.px(6) + 2
            self.setColumnWidth(column, max(theme.px(width), needed))

    def full_height(self) -> int:
        """Return the height in pixels of the header and all rows."""
        row = self.verticalHeader().defaultSectionSize()
        return self.horizontalHeader().sizeHint().height() + row * max(2, self.model().rowCount()) + 2
