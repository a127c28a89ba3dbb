"""What the tables beside the trees have in common."""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import QAbstractTableModel
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTableView, QWidget

from app.theme.theme import Theme


class RowsTable(QTableView):
    """Sortable rows, one of them selected; one column, of text, takes what room the others leave."""

    def __init__(self, name: str, model: QAbstractTableModel, text: int, widths: Mapping[int, int],
                 parent: QWidget | None = None) -> None:  # fmt: skip
        """`text`: the column of text; `widths`: pixels of the others at 100 %."""
        super().__init__(parent)
        self._widths = widths
        self.setObjectName(name)
        self.setModel(model)
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
