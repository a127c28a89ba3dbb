"""Drawing with a painter in one call each."""

from __future__ import annotations

from PySide6.QtCore import QRect, QRectF, Qt
from PySide6.QtGui import QBrush, QColor, QFont, QPainter, QPen
from PySide6.QtWidgets import QWidget

Pen = QPen | QColor | Qt.PenStyle
Brush = QBrush | QColor | Qt.BrushStyle


def smooth_painter(widget: QWidget) -> QPainter:
    """Return a painter of the widget with smooth edges."""
    painter = QPainter(widget)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    return painter


def draw_box(painter: QPainter, rect: QRect | QRectF, pen: Pen, brush: Brush, radius: float) -> None:
    """Draw a rectangle with round corners."""
    painter.setPen(pen)
    painter.setBrush(brush)
    painter.drawRoundedRect(rect, radius, radius)


def draw_text(
    painter: QPainter,
    rect: QRect | QRectF,
    flags: Qt.AlignmentFlag | Qt.TextFlag | int,
    text: str,
    font: QFont,
    pen: Pen,
) -> None:
    """Draw a text."""
    painter.setFont(font)
    painter.setPen(pen)
    painter.drawText(rect, flags, text)
