"""Painting of one node in full, and cached pictures of node boxes."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QFont, QFontMetricsF, QPainter, QPainterPath, QPen, QPixmap

from decodescope.app.theme.theme import Theme
from decodescope.app.widgets.drafter_marks import MARK_SIZE, paint_drafter_mark
from decodescope.app.widgets.tree_canvas.geometry import TreeMetrics
from decodescope.app.widgets.tree_canvas.tree_model import TreeNode
from decodescope.app.widgets.tree_canvas.tree_style import (
    CUT,
    DIMMED,
    DIMMED_OPACITY,
    PILLS,
    STAR,
    STRUCK,
    TreeStyle,
    dashed_pen,
    node_outline,
)

MAX_STAMPS = 64
"""Maximum number of cached kinds; a changing zoom creates new ones with every frame."""
STAMP_MARGIN = 3


class NodeBoxCache:
    """Pictures of boxes by state, outline and background, for one zoom and pixel density."""

    def __init__(self, metrics: TreeMetrics) -> None:
        self._metrics = metrics
        self._at = (0.0, 0.0)
        self._stamps: dict[tuple[str, str, str], QPixmap] = {}

    def clear(self) -> None:
        """Clear the cache after a change of colours."""
        self._stamps.clear()

    def draw(
        self,
        painter: QPainter,
        position: QPointF,
        state: str,
        line: str,
        background: str,
        style: TreeStyle,
        zoom: float,
        ratio: float,
    ) -> None:
        """Draw a box of `state` with outline `line` and theme colour `background` at `position` on the widget."""
        if self._at != (zoom, ratio) or len(self._stamps) > MAX_STAMPS:
            self._at = (zoom, ratio)
            self._stamps.clear()
        key = (state, line, background)
        if key not in self._stamps:
            self._stamps[key] = self._make(state, line, background, style)
        x, y = (round((value - STAMP_MARGIN) * ratio) / ratio for value in (position.x(), position.y()))
        painter.drawPixmap(QPointF(x, y), self._stamps[key])

    def _make(self, state: str, line: str, background: str, style: TreeStyle) -> QPixmap:
        zoom, ratio = self._at
        box = QRectF(0, 0, self._metrics.width, self._metrics.height)
        stamp = QPixmap(*(round((side * zoom + 2 * STAMP_MARGIN) * ratio) for side in (box.width(), box.height())))
        stamp.setDevicePixelRatio(ratio)
        stamp.fill(Qt.GlobalColor.transparent)
        painter = QPainter(stamp)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.translate(STAMP_MARGIN, STAMP_MARGIN)
        painter.scale(zoom, zoom)
        painter.setBrush(style.theme_colour(background))
        pen = style.outline_pen(line, style.theme.scale)
        painter.setPen(dashed_pen(pen) if state == "stopped" else pen)
        painter.drawPath(node_outline(state, box, style.theme.px(7)))
        painter.end()
        return stamp


NOTE_MIN_ZOOM = 0.75
"""Zoom from which the second line is legible."""
MAX_DOTS = 6


class NodePainter:
    """Caches fonts, text widths and elided texts."""

    def __init__(self, theme: Theme, metrics: TreeMetrics) -> None:
        self.theme, self.metrics = theme, metrics
        self.label, self.figure, self.small = theme.font(13), theme.font(11, tabular=True), theme.font(11, 500, True)
        self.star = theme.font(13)
        self._metrics = {id(font): QFontMetricsF(font) for font in (self.label, self.figure, self.small)}
        self._widths: dict[tuple[int, str], float] = {}
        self._short: dict[tuple[str, int], str] = {}

    def text_width(self, font: QFont, text: str) -> float:
        """Return the width of `text`, cached."""
        key = (id(font), text)
        if key not in self._widths:
            self._widths[key] = self._metrics[id(font)].horizontalAdvance(text)
        return self._widths[key]

    def elide_text(self, text: str, available_width: float) -> str:
        """Return `text` elided to `available_width` pixels, cached."""
        key = (text, round(available_width))
        if key not in self._short:
            fm = self._metrics[id(self.label)]
            self._short[key] = fm.elidedText(text, Qt.TextElideMode.ElideRight, available_width)
        return self._short[key]

    def paint_content(
        self, painter: QPainter, node: TreeNode, box: QRectF, style: TreeStyle, zoom: float, best: bool
    ) -> None:
        """Paint everything in and around a box, in canvas coordinates."""
        self._label(painter, node, box, style, zoom)
        scale = self.theme.scale
        if best or node.state == "best":
            painter.setFont(self.star)
            painter.setPen(style.state_colour("best"))
            painter.drawText(QPointF(box.right() - 15 * scale, box.top() - 4 * scale), STAR)
        if node.progress is not None and zoom >= NOTE_MIN_ZOOM:
            self._progress(painter, node.progress, box, style)
        if node.drafters:
            self._drafters(painter, node, box)
        if node.badge:
            painter.setFont(self.small)
            painter.setPen(style.state_colour(node.state))
            painter.drawText(QPointF(box.left() + 4 * scale, box.bottom() + 13 * scale), node.badge)

    def _label(self, painter: QPainter, node: TreeNode, box: QRectF, style: TreeStyle, zoom: float) -> None:
        scale, two = self.theme.scale, self.metrics.tall and bool(node.note) and zoom >= NOTE_MIN_ZOOM
        inset = (13 if node.state in PILLS or node.state in CUT else 9) * scale
        base = box.top() + (17.5 * scale if two else box.height() / 2 + 4.6 * scale)
        value = self.text_width(self.figure, node.value) if node.value else 0.0
        text = self.elide_text(node.label, box.width() - 2 * inset - (value + 5 * scale if value else 0))
        left = QPointF(box.left() + inset, base)
        painter.setFont(self.label)
        painter.setPen(style.label_colour(node.state))
        painter.setLayoutDirection(Qt.LayoutDirection.LayoutDirectionAuto)  # draw each token in its own text direction
        painter.drawText(left, text)
        if node.state in STRUCK:
            middle = QPointF(0, 4.2 * scale)
            painter.setPen(QPen(style.state_colour(node.state), 1.2 * scale))
            painter.drawLine(left - middle, left - middle + QPointF(self.text_width(self.label, text), 0))
        painter.setPen(
            style.label_colour("pruned") if node.state != "root" and not two else style.theme_colour("muted")
        )
        if node.value:
            painter.setFont(self.figure)
            painter.drawText(QPointF(box.right() - inset - value, base), node.value)
        if two:
            self._note(painter, node, QPointF(left.x(), box.bottom() - 8.5 * scale), style)

    def _drafters(self, painter: QPainter, node: TreeNode, box: QRectF) -> None:
        """Paint the drafters' marks side by side at the upper left corner."""
        side, strength = MARK_SIZE * self.theme.scale, DIMMED_OPACITY if node.state in DIMMED else 1.0
        for index, number in enumerate(node.drafters):
            at = QPointF(box.left() + (index * 0.85 - 0.25) * side, box.top() - 0.6 * side)
            paint_drafter_mark(painter, self.theme, number, QRectF(at.x(), at.y(), side, side), strength)

    def _note(self, painter: QPainter, node: TreeNode, position: QPointF, style: TreeStyle) -> None:
        painter.setFont(self.small)
        painter.setPen(style.theme_colour("muted"))
        painter.drawText(position, node.note)

    def _progress(self, painter: QPainter, progress: tuple[int, int], box: QRectF, style: TreeStyle) -> None:
        """Paint progress as ●●○ at the lower right, or as numbers if there are too many."""
        met, total = progress
        scale = self.theme.scale
        right = box.right() - 9 * scale
        y = box.bottom() - 12 * scale if self.metrics.tall else box.bottom() + 8 * scale
        painter.setPen(QPen(style.state_colour("finished"), 1.2 * scale))
        if total > MAX_DOTS:
            text = f"{met}/{total}"
            painter.setFont(self.small)
            painter.drawText(QPointF(right - self.text_width(self.small, text), y + 3.5 * scale), text)
            return
        for n in range(total):
            painter.setBrush(style.state_colour("finished") if n < met else Qt.BrushStyle.NoBrush)
            painter.drawEllipse(QPointF(right - (total - 1 - n) * 8.5 * scale - 3 * scale, y), 3 * scale, 3 * scale)

    def fold_mark_rect(self, box: QRectF, text: str) -> QRectF:
        """Return the rectangle of the mark after a node: `+12` for its folded descendants."""
        scale = self.theme.scale
        width = max(18 * scale, self.text_width(self.small, text) + 10 * scale)
        tail = self.metrics.edge_start(box)
        if self.metrics.down:
            return QRectF(tail.x() - width / 2, tail.y() + 4 * scale, width, 18 * scale)
        return QRectF(tail.x() + 4 * scale, tail.y() - 9 * scale, width, 18 * scale)

    def draw_fold_mark(self, painter: QPainter, box: QRectF, text: str, style: TreeStyle) -> None:
        """Paint a small pill with the number of folded nodes, or with the fold sign."""
        mark = self.fold_mark_rect(box, text)
        painter.setBrush(style.theme_colour("tint"))
        painter.setPen(QPen(style.theme_colour("accent"), 1.1 * self.theme.scale))
        painter.drawRoundedRect(mark, mark.height() / 2, mark.height() / 2)
        painter.setFont(self.small)
        painter.setPen(style.theme_colour("text"))
        painter.drawText(mark, Qt.AlignmentFlag.AlignCenter, text)

    def selection_path(self, node: TreeNode, box: QRectF) -> QPainterPath:
        """Return the outline around the selected node."""
        gap = 4 * self.theme.scale
        outer = box.adjusted(-gap, -gap, gap, gap)
        return node_outline(node.state, outer, self.theme.px(10))
