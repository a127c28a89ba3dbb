"""What the colours of a device's memory mean; goes on in another line where it is narrow."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget

from app.theme.theme import Theme, theme_for
from app.widgets.flow_layout import FlowRow
from core.labs import scale
from resources.language import tr

PART_COLORS = {
    "parameters": "kept",
    "gradients": "best",
    "optimizer": "accent",
    "activations": "finished",
    "buffers": "refused",
    "cache": "pruned",
}
CAPACITY, EXPECTED = "room", "expected"
"""Strokes across the bars: where a device's memory ends, and what was reckoned."""


class _LegendEntry(QWidget):
    """A swatch and a word."""

    def __init__(self, part: str, parent: QWidget) -> None:
        super().__init__(parent)
        self.part, self.theme = part, theme_for("light")

    def sizeHint(self) -> QSize:
        width = QFontMetricsF(self.theme.font(12)).horizontalAdvance(self._text)
        return QSize(round(width) + self.theme.px(19), self.theme.px(20))

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter, px = QPainter(self), self.theme.px
        if self.part in PART_COLORS:
            painter.fillRect(QRectF(0, px(5), px(10), px(10)), self.theme.color(PART_COLORS[self.part]))
        else:
            style = Qt.PenStyle.SolidLine if self.part == CAPACITY else Qt.PenStyle.DashLine
            painter.setPen(QPen(self.theme.color("text"), px(2), style))
            painter.drawLine(px(5), px(2), px(5), px(18))
        painter.setFont(self.theme.font(12))
        painter.setPen(self.theme.color("muted"))
        painter.drawText(self.rect().adjusted(px(15), 0, 0, 0), Qt.AlignmentFlag.AlignVCenter, self._text)

    @property
    def _text(self) -> str:
        strokes = {CAPACITY: tr("memory that each has"), EXPECTED: tr("reckoned")}
        return strokes.get(self.part) or tr(scale.words.PART_TITLES[self.part])


class PartLegend(FlowRow):
    """The parts that are there, each in its colour, and the strokes across them."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent, 14)
        self._names = {part: _LegendEntry(part, self) for part in (*PART_COLORS, CAPACITY, EXPECTED)}
        for name in self._names.values():
            self.flow.addWidget(name)

    def set_theme(self, theme: Theme) -> None:
        """Take other colours and sizes."""
        for name in self._names.values():
            name.theme = theme
            name.updateGeometry()
            name.update()

    def show_parts(self, parts: Sequence[str]) -> None:
        """Name these alone."""
        for part, name in self._names.items():
            name.setVisible(part in parts)
        self.setVisible(bool(parts))
