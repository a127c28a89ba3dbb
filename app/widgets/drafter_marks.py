"""The mark of a drafter: a letter, a shape and a colour, the same in the picker, in trees and in legends."""

from __future__ import annotations

import math

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPainterPath, QPolygonF

from decodescope.app.theme.palettes import DRAFTERS
from decodescope.app.theme.theme import Theme

MARK_SIZE = 15.0
"""Side of a mark in pixels at 100 %."""


def drafter_letter(number: int) -> str:
    """Return A for the first drafter, B for the second, and so on."""
    return chr(ord("A") + number % 26)


def drafter_colour(theme: Theme, number: int) -> QColor:
    """Return the drafter's colour."""
    colours = DRAFTERS[theme.name]
    return QColor(colours[number % len(colours)])


def drafter_shape(number: int, box: QRectF) -> QPainterPath:
    """Return the drafter's shape, filling `box`: circle, square, diamond or hexagon."""
    path = QPainterPath()
    kind = number % 4
    if kind == 0:
        path.addEllipse(box)
    elif kind == 1:
        path.addRoundedRect(box.adjusted(0.5, 0.5, -0.5, -0.5), box.width() / 7, box.width() / 7)
    else:
        corners = 4 if kind == 2 else 6
        grown = box.width() * (0.6 if kind == 2 else 0.54)
        path.addPolygon(_polygon(box.center(), grown, corners))
    return path


def _polygon(middle: QPointF, radius: float, corners: int) -> QPolygonF:
    angles = (2 * math.pi * (n % corners) / corners for n in range(corners + 1))
    return QPolygonF([middle + QPointF(math.sin(angle), -math.cos(angle)) * radius for angle in angles])


def paint_drafter_mark(painter: QPainter, theme: Theme, number: int, box: QRectF, opacity: float = 1.0) -> None:
    """Paint the shape and its letter; lower the opacity for rejected drafts."""
    painter.save()
    painter.setOpacity(painter.opacity() * opacity)
    painter.fillPath(drafter_shape(number, box), drafter_colour(theme, number))
    font = theme.font(11, 600)
    font.setPixelSize(max(1, round(box.height() * 0.66)))
    painter.setFont(font)
    painter.setPen(theme.color("on_accent"))
    painter.drawText(box, Qt.AlignmentFlag.AlignCenter, drafter_letter(number))
    painter.restore()
