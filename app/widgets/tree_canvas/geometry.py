"""Geometry of the tree: from columns and rows to canvas coordinates, and from there to the widget."""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property

from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QPainterPath, QTransform

MIN_ZOOM, MAX_ZOOM = 0.005, 2.5
READABLE_ZOOM = 0.6
"""Zoom from which boxes contain text."""
LINE_GAP = 0.7
"""Rows between two lines of a tree that is broken into lines."""
LINE_TURN = 12
"""Distance at 100 % from a box at which an edge turns into the space between two lines."""
MAX_WRAPPED_DEPTHS = 10_000
"""A tree in lines is small, so that every depth is considered for any rectangle."""


BezierCurve = tuple[QPointF, QPointF, QPointF, QPointF]
"""A cubic Bézier curve: start, two control points, end."""


@dataclass(frozen=True)
class TreeMetrics:
    """Sizes on the canvas in pixels at zoom 1. `down`: the tree grows top-down instead of left to right."""

    scale: float = 1.0
    down: bool = False
    tall: bool = False
    """Whether boxes have a second line of text."""
    narrow: bool = False
    """Whether boxes are narrower and closer together, for deep and thin trees."""
    columns: int = 0
    """Depths per line if the tree is broken into lines, like a long sentence; 0 for one line."""
    line_rows: tuple[float, ...] = ()
    """Rows by which each line is moved down."""
    line_tops: tuple[float, ...] = ()
    """First row of each line, after it has been moved."""

    @cached_property
    def width(self) -> float:
        """Width of a box."""
        return (90 if self.narrow else 108) * self.scale

    @cached_property
    def height(self) -> float:
        """Height of a box."""
        return (42 if self.tall else 30) * self.scale

    @cached_property
    def depth_pitch(self) -> float:
        """Distance between depths."""
        return self.height + 46 * self.scale if self.down else self.width + (30 if self.narrow else 44) * self.scale

    @cached_property
    def row_pitch(self) -> float:
        """Distance between rows, across the tree's direction."""
        return self.width + 18 * self.scale if self.down else self.height + 14 * self.scale

    def box(self, depth: int, row: float) -> QRectF:
        """Return the rectangle of a node."""
        line, column = divmod(depth, self.columns) if self.columns else (0, depth)
        down = self.line_rows[min(line, len(self.line_rows) - 1)] if self.line_rows else 0.0
        along, across = column * self.depth_pitch, (row + down) * self.row_pitch
        x, y = (across, along) if self.down else (along, across)
        return QRectF(x, y, self.width, self.height)

    def edge_start(self, box: QRectF) -> QPointF:
        """Return the start of edges to children."""
        return QPointF(box.center().x(), box.bottom()) if self.down else QPointF(box.right(), box.center().y())

    def edge_end(self, box: QRectF) -> QPointF:
        """Return the end of the edge from the parent."""
        return QPointF(box.center().x(), box.top()) if self.down else QPointF(box.left(), box.center().y())

    def control_points(self, start: QPointF, end: QPointF) -> tuple[QPointF, QPointF]:
        """Return the control points of an edge's curve."""
        if self.down:
            middle = (start.y() + end.y()) / 2
            return QPointF(start.x(), middle), QPointF(end.x(), middle)
        middle = (start.x() + end.x()) / 2
        return QPointF(middle, start.y()), QPointF(middle, end.y())

    def edge_path(self, parent: QRectF, child: QRectF, clip: QRectF | None = None) -> QPainterPath:
        """Return the edge between two boxes: a curve, or a way between two lines if the child begins the second one."""
        start, end = self.edge_start(parent), self.edge_end(child)
        path = QPainterPath(start)
        if not self.columns or end.x() > start.x():
            first, *others = self.curve(start, end, clip)
            path.moveTo(first)
            path.cubicTo(*others)
            return path
        turn = LINE_TURN * self.scale
        line = bisect_right(self.line_tops, child.top() / self.row_pitch + 1e-6) - 1
        between = LINE_GAP * self.row_pitch + self.row_pitch - self.height
        gutter = self.line_tops[max(0, line)] * self.row_pitch - between / 2
        for corner in (
            QPointF(start.x() + turn, start.y()),
            QPointF(start.x() + turn, gutter),
            QPointF(end.x() - turn, gutter),
            QPointF(end.x() - turn, end.y()),
            end,
        ):
            path.lineTo(corner)
        return path

    def curve(self, start: QPointF, end: QPointF, clip: QRectF | None = None) -> BezierCurve:
        """Return the edge between two points; if it is long, only the part inside `clip` across the tree's
        direction.
        """
        curve = (start, *self.control_points(start, end), end)
        if clip is None:
            return curve
        if self.down:
            return _clip_curve(curve, start.x(), end.x(), clip.left(), clip.right())
        return _clip_curve(curve, start.y(), end.y(), clip.top(), clip.bottom())

    def area(self, depths: tuple[int, int], rows: tuple[float, float]) -> QRectF:
        """Return the rectangle around all boxes of these depths and rows."""
        return self.box(depths[0], rows[0]).united(self.box(depths[1], rows[1]))

    def depths_in(self, rect: QRectF) -> tuple[int, int]:
        """Return the first and last depth with a box or an edge inside `rect`; may lie outside the tree."""
        if self.columns:
            return 0, MAX_WRAPPED_DEPTHS
        low, high = (rect.top(), rect.bottom()) if self.down else (rect.left(), rect.right())
        return int(low // self.depth_pitch), int(high // self.depth_pitch) + 1

    def rows_in(self, rect: QRectF) -> tuple[float, float]:
        """Return the range of rows that reach into `rect`."""
        if self.columns:
            return -math.inf, math.inf
        size = self.width if self.down else self.height
        low, high = (rect.left(), rect.right()) if self.down else (rect.top(), rect.bottom())
        return (low - size) / self.row_pitch, high / self.row_pitch


class Camera:
    """The visible part of the canvas: `x`, `y` of its corner, and the zoom."""

    def __init__(self) -> None:
        self.x = 0.0
        self.y = 0.0
        self.zoom = 1.0

    def transform(self) -> QTransform:
        """Return the transform from the canvas to the widget."""
        return QTransform(self.zoom, 0, 0, self.zoom, -self.x * self.zoom, -self.y * self.zoom)

    def to_canvas(self, point: QPointF) -> QPointF:
        """Convert a point from the widget to the canvas."""
        return QPointF(self.x + point.x() / self.zoom, self.y + point.y() / self.zoom)

    def from_canvas(self, point: QPointF) -> QPointF:
        """Convert a point from the canvas to the widget."""
        return QPointF((point.x() - self.x) * self.zoom, (point.y() - self.y) * self.zoom)

    def rect_to_canvas(self, rect: QRectF) -> QRectF:
        """Convert a rectangle from the widget to the canvas."""
        return QRectF(self.to_canvas(rect.topLeft()), self.to_canvas(rect.bottomRight()))

    def rect_from_canvas(self, rect: QRectF) -> QRectF:
        """Convert a rectangle from the canvas to the widget."""
        return self.transform().mapRect(rect)

    def zoom_at(self, point: QPointF, factor: float) -> bool:
        """Zoom and keep the canvas point at `point` in place. Returns False at either end of the range."""
        zoom = min(MAX_ZOOM, max(MIN_ZOOM, self.zoom * factor))
        if zoom == self.zoom:
            return False
        held = self.to_canvas(point)
        self.zoom = zoom
        self.x, self.y = held.x() - point.x() / zoom, held.y() - point.y() / zoom
        return True

    def show(self, rect: QRectF, width: float, height: float, max_zoom: float = 1.0) -> None:
        """Fit `rect` into a widget of the given size, at most at `max_zoom`."""
        fitting = min(width / max(1.0, rect.width()), height / max(1.0, rect.height()))
        self.zoom = min(max_zoom, MAX_ZOOM, max(MIN_ZOOM, fitting))
        self.x = rect.center().x() - width / 2 / self.zoom
        self.y = rect.center().y() - height / 2 / self.zoom

    def reveal(self, rect: QRectF, view: QRectF) -> bool:
        """Move just far enough for `rect` (canvas) to lie in `view` (widget). Returns True if the camera moved."""
        there = self.rect_from_canvas(rect)
        dx = _shift(there.left(), there.right(), view.left(), view.right())
        dy = _shift(there.top(), there.bottom(), view.top(), view.bottom())
        self.x += dx / self.zoom
        self.y += dy / self.zoom
        return bool(dx or dy)


def _shift(low: float, high: float, first: float, last: float) -> float:
    """Return the shift that moves [low, high] into [first, last]; if it does not fit, the starts are aligned."""
    if high - low > last - first or low < first:
        return low - first
    return max(0.0, high - last)


def _clip_curve(curve: BezierCurve, start: float, end: float, low: float, high: float) -> BezierCurve:
    """Return the part of an edge between two bounds of the coordinate that runs from `start` to `end`."""
    if abs(end - start) <= high - low:
        return curve
    shares = sorted(min(1.0, max(0.0, (bound - start) / (end - start))) for bound in (low, high))
    first, last = (_inverse_smoothstep(fraction) for fraction in shares)
    return _sub_curve(curve, first, last)


def _inverse_smoothstep(fraction: float) -> float:
    """Return t with 3t² − 2t³ = `fraction`, the curve of the edge's coordinate across the tree."""
    return 0.5 - math.sin(math.asin(1.0 - 2.0 * fraction) / 3.0)


def _sub_curve(curve: BezierCurve, first: float, last: float) -> BezierCurve:
    """Return the part of a curve between two parameters (de Casteljau)."""
    tail = _curve_after(curve, first)
    share = (last - first) / (1.0 - first) if first < 1.0 else 0.0
    backwards = _curve_after((tail[3], tail[2], tail[1], tail[0]), 1.0 - share)
    return backwards[3], backwards[2], backwards[1], backwards[0]


def _curve_after(curve: BezierCurve, t: float) -> BezierCurve:
    a, b, c, d = curve
    ab, bc, cd = a + (b - a) * t, b + (c - b) * t, c + (d - c) * t
    abc, bcd = ab + (bc - ab) * t, bc + (cd - bc) * t
    return abc + (bcd - abc) * t, bcd, cd, d
