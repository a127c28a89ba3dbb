"""The table of a comparison."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QAbstractItemView, QFrame, QHeaderView, QTableWidget, QTableWidgetItem, QWidget

from app.theme.theme import Theme, theme_for
from app.views.compare.comparison import HEAD, Candidate, Comparison, cells, state_words

_TEXT = len(HEAD) - 1
_WIDTHS = (128, 76, 72, 84, 80)
"""Pixels of the columns before the last one."""
_LESS_BELOW, _SPARED = 560, (1, 4)
"""Pixels of width below which these columns make room for the texts; the exported table has them all."""


class ResultTable(QTableWidget):
    """A row for each run, and one with the reason for each that cannot be."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(0, len(HEAD), parent)
        self._theme = theme_for("light")
        self.setObjectName("compareTable")
        self.setAccessibleName("Comparison")
        self.setHorizontalHeaderLabels(list(HEAD))
        self.verticalHeader().hide()
        self.setShowGrid(False)
        self.setWordWrap(False)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setSelectionMode(QAbstractItemView.SelectionMode.NoSelection)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFrameShape(QFrame.Shape.NoFrame)
        header = self.horizontalHeader()
        header.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)  # reasons span columns and must not widen them
        header.setSectionResizeMode(_TEXT, QHeaderView.ResizeMode.Stretch)
        header.setMinimumSectionSize(20)
        for column in range(len(HEAD)):
            side = Qt.AlignmentFlag.AlignRight if 0 < column < _TEXT else Qt.AlignmentFlag.AlignLeft
            title = self.horizontalHeaderItem(column)
            if title is not None:
                title.setTextAlignment(side | Qt.AlignmentFlag.AlignVCenter)

    def set_theme(self, theme: Theme) -> None:
        """Other colours and sizes."""
        self._theme = theme
        self.setStyleSheet(
            "QTableWidget { border: 0; padding: 0; background: transparent; }"
            "QHeaderView, QHeaderView::section { background: transparent; }"
            f"QTableWidget::item, QHeaderView::section {{ padding: 0 {theme.px(6)}px; }}"
        )
        for column, width in enumerate(_WIDTHS):
            self.setColumnWidth(column, theme.px(width))
        self._fit()

    def show_rows(self, comparison: Comparison, refused: Sequence[Candidate]) -> None:
        """Fill it."""
        self.clearSpans()
        self.setRowCount(len(comparison.entries) + len(refused))
        for row, entry in enumerate(comparison.entries):
            self._put(row, 0, entry.candidate.title, "text", entry.candidate.summary)
            figures = cells(comparison, entry) if entry.state == "done" else ()
            if not figures:
                self._say(row, state_words(entry), "danger" if entry.state == "failed" else "muted")
            for column, text in enumerate(figures):
                self._put(row, column + 1, text, "muted" if column + 1 == _TEXT else "text", text)
        for row, candidate in enumerate(refused, len(comparison.entries)):
            self._put(row, 0, candidate.title, "faint", candidate.reason)
            self._say(row, candidate.reason, "faint")
        self._fit()

    def _say(self, row: int, words: str, colour: str) -> None:
        self._put(row, 1, words, colour, words, Qt.AlignmentFlag.AlignLeft)
        self.setSpan(row, 1, 1, len(HEAD) - 1)

    def _put(
        self, row: int, column: int, text: str, colour: str, tip: str, side: Qt.AlignmentFlag | None = None
    ) -> None:
        item = QTableWidgetItem(text)
        right = 0 < column < _TEXT
        side = side or (Qt.AlignmentFlag.AlignRight if right else Qt.AlignmentFlag.AlignLeft)
        item.setTextAlignment(side | Qt.AlignmentFlag.AlignVCenter)
        item.setForeground(self._theme.color(colour))
        item.setFont(self._theme.font(12, tabular=True))
        item.setToolTip(tip)
        self.setItem(row, column, item)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """In a narrow view fewer figures, but always how the texts compare."""
        super().resizeEvent(event)
        self._spare()

    def _spare(self) -> None:
        narrow = self.width() < self._theme.px(_LESS_BELOW)
        for column in _SPARED:
            self.setColumnHidden(column, narrow)

    def _fit(self) -> None:
        """As high as its rows: the page scrolls, not the table."""
        self._spare()
        height = self._theme.px(26)
        self.verticalHeader().setDefaultSectionSize(height)
        for row in range(self.rowCount()):
            self.setRowHeight(row, height)
        self.setFixedHeight(self.horizontalHeader().sizeHint().height() + height * self.rowCount() + 2)
