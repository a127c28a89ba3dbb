"""Boxes of nodes, each kind drawn once at a zoom and stamped from then on."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QPainter, QPixmap

from app.widgets.tree_canvas.geometry import TreeMetrics
from app.widgets.tree_canvas.tree_style import PILLS, TreeStyle

MOST = 64
"""Kinds kept; a zoom in motion makes new ones with each frame."""
MARGIN = 3


class BoxStamps:
    """Pictures of boxes by state and ground, for one zoom and density of the screen."""

    def __init__(self, metrics: TreeMetrics) -> None:
        self._metrics = metrics
        self._at = (0.0, 0.0)
        self._stamps: dict[tuple[str, str, str], QPixmap] = {}

    def clear(self) -> None:
        """Colours have changed."""
        self._stamps.clear()

    def draw(self, painter: QPainter, place: QPointF, state: str, line: str, ground: str, look: TreeStyle, zoom: float,
             ratio: float) -> None:  # fmt: skip
        """Stamp a box of `state`, outlined as `line`, filled with the theme's colour `ground`, on the widget."""
        if self._at != (zoom, ratio) or len(self._stamps) > MOST:
            self._at = (zoom, ratio)
            self._stamps.clear()
        key = (state, line, ground)
        if key not in self._stamps:
            self._stamps[key] = self._make(state, line, ground, look)
        x, y = (round((value - MARGIN) * ratio) / ratio for value in (place.x(), place.y()))
        painter.drawPixmap(QPointF(x, y), self._stamps[key])

    def _make(self, state: str, line: str, ground: str, look: TreeStyle) -> QPixmap:
        zoom, ratio = self._at
        box = QRectF(0, 0, self._metrics.width, self._metrics.height)
        stamp = QPixmap(*(round((side * zoom + 2 * MARGIN) * ratio) for side in (box.width(), box.height())))
        stamp.setDevicePixelRatio(ratio)
        stamp.fill(Qt.GlobalColor.transparent)
        painter = QPainter(stamp)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.translate(MARGIN, MARGIN)
        painter.scale(zoom, zoom)
        radius = box.height() / 2 if state in PILLS else look.theme.px(7)
        painter.setBrush(look.plain(ground))
        painter.setPen(look.outline(line, look.theme.scale))
        painter.drawRoundedRect(box, radius, radius)
        painter.end()
        return stamp
