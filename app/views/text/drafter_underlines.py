"""Underlines that tell who proposed a token: the draft, the model against the draft, or the model on its own."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QPainter, QPen

from app.theme.theme import Theme
from resources.language import mark

ORIGIN_COLOURS = {"draft": "kept", "correction": "refused", "bonus": "finished", "target": "muted"}
ORIGIN_LEGEND = mark("━ drafted, accepted   ┅ corrected by the model   ═ bonus   ─ the model's own")


def paint_origin_underline(painter: QPainter, bar: QRectF, origin: str, theme: Theme) -> None:
    """A thick line for a drafted token, a broken one for a correction, a double one for a bonus, else a thin one."""
    colour = theme.color(ORIGIN_COLOURS.get(origin, "muted"))
    line = max(1.0, theme.scale)
    if origin == "draft":
        painter.fillRect(QRectF(bar.left(), bar.top(), bar.width(), 3 * line), colour)
    elif origin == "bonus":
        for shift in (0.0, 3 * line):
            painter.fillRect(QRectF(bar.left(), bar.top() + shift, bar.width(), 1.3 * line), colour)
    elif origin == "correction":
        pen = QPen(colour, 3 * line, Qt.PenStyle.CustomDashLine, Qt.PenCapStyle.FlatCap)
        pen.setDashPattern([1.6, 0.9])
        painter.setPen(pen)
        middle = bar.top() + 1.5 * line
        painter.drawLine(QPointF(bar.left(), middle), QPointF(bar.right(), middle))
    else:
        painter.fillRect(QRectF(bar.left(), bar.top(), bar.width(), line), colour)
