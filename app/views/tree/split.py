"""Tree and table: beside each other where it is wide, below each other where it is narrow."""

from __future__ import annotations

from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QSplitter, QWidget

from app.theme.theme import Theme, theme_for
from app.views.tree.hypotheses import HypothesesTable

BESIDE_FROM = 1000
"""Pixels (at 100 %) of width from which the table stands beside the tree."""
TABLE_WIDTH = 400


class TreeSplit(QSplitter):
    """Gives the table a good place, until the reader has moved the handle."""

    def __init__(self, tree: QWidget, table: HypothesesTable, parent: QWidget) -> None:
        super().__init__(Qt.Orientation.Horizontal, parent, childrenCollapsible=False, handleWidth=1)
        self._table, self._moved, self._theme = table, False, theme_for("light")
        self._arranged: tuple[int, ...] = ()
        self.addWidget(tree)
        self.addWidget(table)
        self.setStretchFactor(0, 1)
        self.splitterMoved.connect(self._on_moved)

    @Slot()
    def _on_moved(self) -> None:
        self._moved = True

    def set_theme(self, theme: Theme) -> None:
        """Other sizes."""
        self._theme = theme
        self.arrange()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Find the table its place."""
        super().resizeEvent(event)
        self.arrange()

    def arrange(self) -> None:
        """Place the table in the room there is; below the tree it is no taller than its rows."""
        theme, width, height = self._theme, self.width(), self.height()
        before, self._arranged = self._arranged, (theme.px(100), width, height, self._table.full_height())
        if before == self._arranged:
            return
        beside = width >= theme.px(BESIDE_FROM)
        wanted = Qt.Orientation.Horizontal if beside else Qt.Orientation.Vertical
        if self.orientation() != wanted:
            self.setOrientation(wanted)
            self._moved = False
        if not self._moved:
            low = min(self._table.full_height(), height // 3)
            side, table = (width, theme.px(TABLE_WIDTH)) if beside else (height, low)
            self.setSizes([max(1, side - table), table])
