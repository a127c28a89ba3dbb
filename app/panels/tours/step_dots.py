"""A dot for every step; the one that is shown is long."""

from __future__ import annotations

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.theme.theme import Theme, theme_for
from app.widgets.plain_text import tooltip
from resources.language import tr

DOT, CURRENT_DOT_WIDTH, GAP = 7, 20, 6
"""Pixels at 100 %."""


class StepDots(QWidget):
    """How far one has come."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme_for("light")
        self._index = self._count = 0
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)

    def show_step(self, index: int, count: int) -> None:
        """Step `index` (0 the first) of `count`."""
        self._index, self._count = index, count
        self.setAccessibleName(tr("Step {number} of {count}").format(number=index + 1, count=count))
        self.setToolTip(tooltip(self.accessibleName()))
        self.updateGeometry()
        self.update()

    def set_theme(self, theme: Theme) -> None:
        """Colours and sizes."""
        self._theme = theme
        self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:
        """A row of dots."""
        width = (self._count - 1) * (DOT + GAP) + CURRENT_DOT_WIDTH if self._count else 0
        return QSize(self._theme.px(width), self._theme.px(DOT + 4))

    def paintEvent(self, event: QPaintEvent) -> None:
        """The steps behind are filled, those to come pale."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        size, left = self._theme.px(DOT), 0
        top = (self.height() - size) / 2
        for number in range(self._count):
            width = self._theme.px(CURRENT_DOT_WIDTH) if number == self._index else size
            painter.setBrush(self._theme.color("accent" if number <= self._index else "line"))
            painter.drawRoundedRect(QRectF(left, top, width, size), size / 2, size / 2)
            left += width + self._theme.px(GAP)
