"""A bar from 0 to 100 % with the bounds of a probability."""

from __future__ import annotations

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QBrush, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from decodescope.app.theme.themed import Themed
from decodescope.core import words
from decodescope.core.likelihood import ProbabilityBounds, bounds_text
from decodescope.resources.language import tr

_HEIGHT, _BAR = 40, 16
"""Pixels at 100 %: of the widget, and of the bar in it."""


class BoundsBar(Themed, QWidget):
    """A bar filled up to the lower bound, and hatched up to the upper one."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._bounds = ProbabilityBounds(0.0, 1.0)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.show_bounds(self._bounds)

    def show_bounds(self, bounds: ProbabilityBounds) -> None:
        """Show these bounds."""
        self._bounds = bounds
        self.setAccessibleName(tr("Probability: {bounds}").format(bounds=bounds_text(bounds)))
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(self._theme.px(200), self._theme.px(_HEIGHT))

    def minimumSizeHint(self) -> QSize:
        return QSize(self._theme.px(120), self._theme.px(_HEIGHT))

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the bar and its scale."""
        painter, theme = QPainter(self), self._theme
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        width, height = self.width() - 1.0, theme.px(_BAR)
        painter.fillRect(QRectF(0, 0, width, height), theme.color("field"))
        low, high = self._bounds.lower * width, self._bounds.upper * width
        painter.fillRect(QRectF(0, 0, low, height), theme.color("kept"))
        open_part = QRectF(low, 0, high - low, height)
        painter.fillRect(open_part, theme.color("kept", 0.18))
        painter.fillRect(open_part, QBrush(theme.color("kept", 0.7), Qt.BrushStyle.BDiagPattern))
        painter.setPen(theme.color("line"))
        painter.drawRect(QRectF(0.5, 0.5, width, height - 1))
        painter.setFont(theme.font(11, tabular=True))
        painter.setPen(theme.color("muted"))
        top = height + theme.px(4)
        for share in (0.0, 0.25, 0.5, 0.75, 1.0):
            side = {0.0: Qt.AlignmentFlag.AlignLeft, 1.0: Qt.AlignmentFlag.AlignRight}.get(
                share, Qt.AlignmentFlag.AlignHCenter
            )
            left = share * width - (0 if share == 0 else theme.px(60) if share == 1 else theme.px(30))
            box = QRectF(left, top, theme.px(60), self.height() - top)
            painter.drawText(box, int(side | Qt.AlignmentFlag.AlignTop), words.percent_text(f"{100 * share:.0f}"))
        painter.end()
