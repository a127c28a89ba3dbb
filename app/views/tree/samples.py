"""The list of a chorus' texts beside their tree: sortable, linked with the shown text and the selected node."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from PySide6.QtCore import QModelIndex, Qt, Signal, Slot
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QWidget

from app.state.sample_tree import Sample
from app.theme.theme import Theme, theme_for
from app.views.tree.differing import DIFFERS_AT_ROLE
from app.views.tree.rows_table import Index, SortableTable, SortedRowsModel
from app.widgets.plain_text import tooltip
from app.widgets.tree_canvas.tree_style import STAR
from core import words
from resources.language import mark, tr

NUMBER, TEXT, LENGTH, SURPRISE = range(4)
_TITLES = (mark("Seed"), mark("Text"), mark("Tokens"), mark("Bits a token"))
_WIDTHS = {NUMBER: 72, LENGTH: 62, SURPRISE: 92}
_THROUGH_MARK = "▸"
"""Before the texts that pass the selected node: a cue beside their weight."""


class SamplesModel(SortedRowsModel):
    """Rows in the order of the column that sorts."""

    def __init__(self) -> None:
        super().__init__(_TITLES, (NUMBER, LENGTH, SURPRISE), (NUMBER, Qt.SortOrder.AscendingOrder))
        self.rows: list[Sample] = []
        self.theme = theme_for("light")
        self._shown = self._shared = 0
        self._marked: frozenset[int] = frozenset()

    def show_rows(self, rows: Sequence[Sample], shown: int) -> None:
        """Other texts; number `shown` is in the other views."""
        self._shown, self._shared = shown, _shared_prefix_length([row.text for row in rows])
        self.show_sorted(rows)

    def set_marked(self, numbers: Sequence[int]) -> None:
        """These pass the selected node."""
        self._marked = frozenset(numbers)
        self.refresh_cells()

    def sort_key(self, row: Sample, column: int) -> Any:
        """What that column sorts by."""
        return (row.number, row.text.strip().casefold(), row.length, row.surprise or 0.0)[column]

    def column_title(self, column: int) -> str:
        """Texts without seeds of their own are numbered."""
        return tr("Text no.") if column == NUMBER and self._has_no_seeds else super().column_title(column)

    @property
    def _has_no_seeds(self) -> bool:
        return any(sample.seed is None for sample in self.rows[:1])

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """A cell."""
        sample, column = self.rows[index.row()], index.column()
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return self._cell_text(sample, column)
            case _ if role == DIFFERS_AT_ROLE:
                return self.first_unique_index(index.row(), TEXT) if column == TEXT else None
            case Qt.ItemDataRole.ToolTipRole if column == TEXT:
                return tooltip(sample.text.strip())
            case Qt.ItemDataRole.TextAlignmentRole:
                return self.alignment(column)
            case Qt.ItemDataRole.FontRole:
                strong = sample.number == self._shown or sample.number in self._marked
                return self.theme.font(12, 600 if strong and column <= TEXT else 400, tabular=column != TEXT)
            case Qt.ItemDataRole.ForegroundRole:
                passed = not self._marked or sample.number in self._marked
                return self.theme.color("text" if passed else "muted")
        return None

    def _cell_text(self, sample: Sample, column: int) -> str:
        if column == NUMBER:
            return f"{sample.number + 1 if sample.seed is None else sample.seed}"
        if column == TEXT:
            mark = STAR if sample.number == self._shown else _THROUGH_MARK if sample.number in self._marked else ""
            rest = " ".join(sample.text[self._shared :].split())
            text = f"…{rest}" if self._shared else rest or tr("(nothing yet)")
            return f"{mark} {text}" if mark else text
        if column == LENGTH:
            return f"{sample.length:,}"
        return "–" if sample.surprise is None else words.decimal(sample.surprise / math.log(2))


def _shared_prefix_length(texts: Sequence[str]) -> int:
    """Characters of whole words that all texts begin with: the tree says them, and the list need not repeat them."""
    first, last = min(texts, default=""), max(texts, default="")
    shared = next((n for n, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))
    words = first.rfind(" ", 0, shared) + 1
    return words if len(texts) > 1 and first[:words].strip() else 0


class SampleTable(SortableTable):
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

    def set_marked(self, numbers: Sequence[int]) -> None:
        """These pass the selected node."""
        self.rows_model.set_marked(numbers)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Enter and Space choose the row."""
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space) and self.currentIndex().isValid():
            self._on_clicked(self.currentIndex())
        else:
            super().keyPressEvent(event)

    @Slot(QModelIndex)
    def _on_clicked(self, index: QModelIndex) -> None:
        self.samplePicked.emit(self.rows_model.rows[index.row()].number)
