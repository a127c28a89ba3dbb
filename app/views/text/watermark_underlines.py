"""Underlines that tell what a token shows of a watermark: a solid line for the green list, a dotted one off it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QPainter, QPen

from app.theme.theme import Theme
from resources.language import mark

if TYPE_CHECKING:
    from core.events import TokenChosen, WatermarkSign

WATERMARK_LEGEND = mark("━ shows the watermark   ┅ does not   ─ not counted")


def watermark_sign(token: TokenChosen) -> WatermarkSign | None:
    """What it shows of the first watermark that was looked for; None where none was."""
    return next((detail.sign for detail in token.details if detail.sign is not None), None)


def paint_watermark_underline(painter: QPainter, bar: QRectF, sign: WatermarkSign | None, theme: Theme) -> None:
    """A thick line above what chance gives, a dotted one below, a thin one for what is not counted."""
    line = max(1.0, theme.scale)
    if sign is None or not sign.counts:
        painter.fillRect(QRectF(bar.left(), bar.top(), bar.width(), line), theme.color("muted"))
    elif sign.share > sign.expected:
        painter.fillRect(QRectF(bar.left(), bar.top(), bar.width(), 3 * line), theme.color("finished"))
    else:
        painter.setPen(QPen(theme.color("refused"), 2 * line, Qt.PenStyle.DotLine))
        middle = bar.top() + 1.5 * line
        painter.drawLine(QPointF(bar.left(), middle), QPointF(bar.right(), middle))
