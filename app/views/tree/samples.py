"""The list of a chorus' texts beside their tree: sortable, linked with the shown text and the selected node."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, Qt, Signal, Slot
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QWidget

from app.state.chorus import Sample
from app.theme.theme import Theme, theme_for
from app.views.tree.rows_table import RowsTable
from app.widgets.tree_canvas.style import STAR
from core import words
from resources.language import mark, tr

NUMBER, TEXT, LENGTH, SURPRISE = range(4)
_TITLES = (mark("Seed"), mark("Text"), mark("Tokens"), mark("Bits a token"))
_WIDTHS = {NUMBER: 72, LENGTH: 62, SURPRISE: 92}
_MARK = "▸"
"""Before the texts that pass the selected node: a cue beside their weight."""
_Index = QModelIndex | QPersistentModelIndex
_NOWHERE = QModelIndex()
_KEYS: tuple[Callable[[Sample], Any], ...] = (
    lambda sample: sample.number, lambda sample: sample.text.strip().casefold(), lambda sample: sample.length,
    lambda sample: sample.surprise or 0.0,
)  # fmt: skip


class SamplesModel(QAbstractTableModel):
    """Rows in the order of the column that sorts."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[Sample] = []
        self.theme = theme_for("light")
        self._shown = self._shared = 0
        self._marked: frozenset[int] = frozenset()
        self._order = (NUMBER, Qt.SortOrder.AscendingOrder)

    def show_rows(self, rows: Sequence[Sample], shown: int) -> None:
        """Other texts; number `shown` is in the other views."""
        same = len(rows) == len(self.rows)
        self._shown = shown
        self._shared = _shared([row.text for row in rows])
        if not same:
            self.beginResetModel()
        self.rows = self._sorted(rows)
        if not same:
            self.endResetModel()
        self._tell()

    def mark(self, numbers: Sequence[int]) -> None:
        """These pass the selected node."""
        self._marked = frozenset(numbers)
        self._tell()

    def _tell(self) -> None:
        if self.rows:
            self.dataChanged.emit(self.index(0, 0), self.index(len(self.rows) - 1, SURPRISE))

    def _sorted(self, rows: Sequence[Sample]) -> list[Sample]:
        column, order = self._order
        return sorted(rows, key=_KEYS[column], reverse=order == Qt.SortOrder.DescendingOrder)

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        """Sort by a column, now and from now on."""
        self._order = (max(column, 0), order)
        self.layoutAboutToBeChanged.emit()
        self.rows = self._sorted(self.rows)
        self.layoutChanged.emit()
        self.headerDataChanged.emit(Qt.Orientation.Horizontal, 0, SURPRISE)

    def rowCount(self, parent: _Index = _NOWHERE) -> int:
        """How many texts there are."""
        return 0 if parent.isValid() else len(self.rows)

    def columnCount(self, parent: _Index = _NOWHERE) -> int:
        """Four."""
        return 0 if parent.isValid() else len(_TITLES)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Titles of the columns; texts without seeds of their own are numbered."""
        if orientation != Qt.Orientation.Horizontal:
            return None
        if role == Qt.ItemDataRole.DisplayRole:
            title = tr("Text no.") if section == NUMBER and self._has_no_seeds else tr(_TITLES[section])
            sign = "↓" if self._order[1] == Qt.SortOrder.DescendingOrder else "↑"
            return f"{title} {sign}" if section == self._order[0] else title
        return _side(section) if role == Qt.ItemDataRole.TextAlignmentRole else None

    @property
    def _has_no_seeds(self) -> bool:
        return any(sample.seed is None for sample in self.rows[:1])

    def data(self, index: _Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """A cell."""
        sample, column = self.rows[index.row()], index.column()
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return self._words(sample, column)
            case Qt.ItemDataRole.ToolTipRole if column == TEXT:
                return sample.text.strip()
            case Qt.ItemDataRole.TextAlignmentRole:
                return _side(column)
            case Qt.ItemDataRole.FontRole:
                strong = sample.number == self._shown or sample.number in self._marked
                return self.theme.font(12, 600 if strong and column <= TEXT else 400, tabular=column != TEXT)
            case Qt.ItemDataRole.ForegroundRole:
                passed = not self._marked or sample.number in self._marked
                return self.theme.color("text" if passed else "muted")
        return None

    def _words(self, sample: Sample, column: int) -> str:
        if column == NUMBER:
            return f"{sample.number + 1 if sample.seed is None else sample.seed}"
        if column == TEXT:
            mark = STAR if sample.number == self._shown else _MARK if sample.number in self._marked else ""
            rest = " ".join(sample.text[self._shared :].split())
            text = f"…{rest}" if self._shared else rest or tr("(nothing yet)")
            return f"{mark} {text}" if mark else text
        if column == LENGTH:
            return f"{sample.length:,}"
        return "–" if sample.surprise is None else words.decimal(sample.surprise / math.log(2))


def _shared(texts: Sequence[str]) -> int:
    """Characters of whole words that all texts begin with: the tree says them, and the list need not repeat them."""
    first, last = min(texts, default=""), max(texts, default="")
    shared = next((n for n, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))
    words = first.rfind(" ", 0, shared) + 1
    return words if len(texts) > 1 and first[:words].strip() else 0


def _side(column: int) -> Qt.AlignmentFlag:
    side = Qt.AlignmentFlag.AlignLeft if column == TEXT else Qt.AlignmentFlag.AlignRight
    return side | Qt.AlignmentFlag.AlignVCenter


class SampleTable(RowsTable):
    """`samplePicked(number)`: the user chose a text."""

    samplePicked = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        self.rows_model = SamplesModel()
        super().__init__("samples", self.rows_model, TEXT, _WIDTHS, parent)
        self.rows_model.setParent(self)
        self.setAccessibleName(tr("Texts"))
        self.setTabKeyNavigation(False)
        self.sortByColumn(NUMBER, Qt.SortOrder.AscendingOrder)
        self.clicked.connect(self._on_clicked)

    def set_theme(self, theme: Theme) -> None:
        """Other colours and sizes."""
        self.rows_model.theme = theme
        super().set_theme(theme)
        self.viewport().update()

    def show_rows(self, rows: Sequence[Sample], shown: int) -> None:
        """Other texts."""
        self.rows_model.show_rows(rows, shown)

    def mark(self, numbers: Sequence[int]) -> None:
        """These pass the selected node."""
        self.rows_model.mark(numbers)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Enter and Space choose the row."""
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space) and self.currentIndex().isValid():
            self._on_clicked(self.currentIndex())
        else:
            super().keyPressEvent(event)

    @Slot(QModelIndex)
    def _on_clicked(self, index: QModelIndex) -> None:
        self.samplePicked.emit(self.rows_model.rows[index.row()].number)
