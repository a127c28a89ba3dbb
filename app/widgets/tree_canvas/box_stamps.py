"""Boxes of nodes, each kind drawn once at a zoom and stamped from then on."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QPainter, QPixmap

from app.widgets.tree_canvas.geometry import TreeMetrics
from app.widgets.tree_canvas.tree_style import PILLS, TreeStyle

MAX_STAMPS = 64
"""Kinds kept; a zoom in motion makes new ones with each frame."""
STAMP_MARGIN = 3


class NodeBoxCache:
    """Pictures of boxes by state and ground, for one zoom and density of the screen."""

    def __init__(self, metrics: TreeMetrics) -> None:
        self._metrics = metrics
        self._at = (0.0, 0.0)
        self._stamps: dict[tuple[str, str, str], QPixmap] = {}

    def clear(self) -> None:
        """Colours have changed."""
        self._stamps.clear()

    def draw(self, painter: QPainter, position: QPointF, state: str, line: str, ground: str, style: TreeStyle, zoom: float,
             ratio: float) -> None:  # fmt: skip
        """Stamp a box of `state`, outlined as `line`, filled with the theme's colour `ground`, on the widget."""
        if self._at != (zoom, ratio) or len(self._stamps) > MAX_STAMPS:
            self._at = (zoom, ratio)
            self._stamps.clear()
        key = (state, line, ground)
        if key not in self._stamps:
            self._stamps[key] = self._make(state, line, ground, style)
        x, y = (round((value - STAMP_MARGIN) * ratio) / ratio for value in (position.x(), position.y()))
        painter.drawPixmap(QPointF(x, y), self._stamps[key])

    def _make(self, state: str, line: str, ground: str, style: TreeStyle) -> QPixmap:
        zoom, ratio = self._at
        box = QRectF(0, 0, self._metrics.width, self._metrics.height)
        stamp = QPixmap(*(round((side * zoom + 2 * STAMP_MARGIN) * ratio) for side in (box.width(), box.height())))
        stamp.setDevicePixelRatio(ratio)
        stamp.fill(Qt.GlobalColor.transparent)
        painter = QPainter(stamp)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.translate(STAMP_MARGIN, STAMP_MARGIN)
        painter.scale(zoom, zoom)
        radius = box.height() / 2 if state in PILLS else style.theme.px(7)
        painter.setBrush(style.theme_colour(ground))
        painter.setPen(style.outline_pen(line, style.theme.scale))
        painter.drawRoundedRect(box, radius, radius)
        painter.end()
        return stamp
