"""Minimap: the whole tree at the side of the canvas, with a frame around the visible part that can be dragged."""

from __future__ import annotations

from PySide6.QtCore import QMargins, QPointF, QRect, QRectF, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QMouseEvent, QPainter, QPaintEvent, QPen, QPixmap, QPolygonF, QShowEvent, QTransform
from PySide6.QtWidgets import QWidget

from decodescope.app.widgets.accessibility import AccessibleWidget
from decodescope.app.widgets.tree_canvas.tree_scene import TreeScene
from decodescope.app.widgets.tree_canvas.tree_style import DIMMED, PAINT_ORDER, TreeStyle
from decodescope.resources.language import tr

REFRESH_MS = 150
"""Minimum interval between redraws of a growing tree, in milliseconds."""
THICKNESS = 60
"""Height of the map below a tree, or its width at the side of one that grows downwards, in pixels at 100 %."""
MIN_CANVAS_SIZE = (360, 280)
"""Minimum canvas size for showing the map."""
MAX_BOXES = 800
"""Maximum number of nodes drawn as boxes; larger trees are drawn as dots."""


class Minimap(QWidget, AccessibleWidget):
    """Emits `moved(point)` to centre the canvas on a point."""

    moved = Signal(QPointF)

    def __init__(self, scene: TreeScene, style: TreeStyle, parent: QWidget) -> None:
        super().__init__(parent)
        self._scene, self._style, self._canvas = scene, style, parent
        self._frame = QRectF()
        self._picture = QPixmap()
        self._stale = True
        self._timer = QTimer(self, singleShot=True, interval=REFRESH_MS)
        self._timer.timeout.connect(self._redraw)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setAccessibleName(tr("Overview of the tree"))
        self.hide()

    def set_frame(self, frame: QRectF) -> None:
        """Set the visible part of the canvas. Hides the map if everything is visible, and while presenting."""
        self._frame = frame
        bounds = self._scene.bounds()
        roomy = (
            not self._style.theme.min_font_pixels
            and self._canvas.width() >= MIN_CANVAS_SIZE[0]
            and self._canvas.height() >= MIN_CANVAS_SIZE[1]
        )
        self.setVisible(roomy and not bounds.isEmpty() and not frame.contains(bounds))
        self.update()

    def tree_changed(self, at_once: bool = False) -> None:
        """Redraw the tree, soon or at once."""
        if not self.isVisible():
            self._stale = True
        elif at_once:
            self._timer.stop()
            self._redraw()
        elif not self._timer.isActive():
            self._timer.start()

    @property
    def margins(self) -> QMargins:
        """The room that the canvas leaves free for the map: below a tree that grows to the right, else at its right."""
        if self.isHidden():
            return QMargins()
        thickness = self._style.theme.px(THICKNESS)
        return QMargins(0, 0, thickness, 0) if self._scene.metrics.down else QMargins(0, 0, 0, thickness)

    def fit_into(self, width: int, height: int) -> None:
        """Take the side of the canvas that is left free."""
        thickness = self._style.theme.px(THICKNESS)
        place = QRect(0, height - thickness, width, thickness)
        if self._scene.metrics.down:
            place = QRect(width - thickness, 0, thickness, height)
        if place != self.geometry():
            self.setGeometry(place)
            self.tree_changed(at_once=True)

    def _transform(self) -> QTransform:
        """Return the transform from the canvas to the map. Each direction has its own scale, because trees are long and
        thin.
        """
        bounds, inset = self._scene.bounds(), 5.0
        sx = (self.width() - 2 * inset) / max(1.0, bounds.width())
        sy = (self.height() - 2 * inset) / max(1.0, bounds.height())
        return QTransform(sx, 0, 0, sy, inset - bounds.left() * sx, inset - bounds.top() * sy)

    def showEvent(self, event: QShowEvent) -> None:
        """Draw changes made while hidden."""
        super().showEvent(event)
        if self._stale:
            self._redraw()

    @Slot()
    def _redraw(self) -> None:
        self._stale = False
        ratio = self.devicePixelRatioF()
        self._picture = QPixmap(self.size() * ratio)
        self._picture.setDevicePixelRatio(ratio)
        self._picture.fill(self._style.theme.color("panel"))
        painter = QPainter(self._picture)
        painter.setTransform(self._transform(), True)
        blocks = list(self._scene.blocks(self._scene.bounds()))
        few = len(self._scene.model) <= MAX_BOXES
        for state in PAINT_ORDER:
            colour = self._style.state_colour(state, 0.5 if state in DIMMED else 0.9)
            pen = QPen(colour, 1.4)
            pen.setCosmetic(True)
            painter.setPen(Qt.PenStyle.NoPen if few else pen)
            painter.setBrush(colour)
            for block in blocks:
                if few:
                    painter.drawRects(block.boxes.get(state, []))
                elif state in block.centers:
                    painter.drawPoints(block.centers[state])
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        self._path(painter, self._style.selected_path, "accent")
        self._path(painter, self._style.best_path, "best")
        painter.end()
        self.update()

    def _path(self, painter: QPainter, path: list[int], colour: str) -> None:
        pen = QPen(self._style.theme.color(colour), 1.6)
        pen.setCosmetic(True)
        painter.setPen(pen)
        shown = [node for node in path if self._scene.is_shown(node)]
        painter.drawPolyline(QPolygonF([self._scene.box(node).center() for node in shown]))

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the picture with the frame."""
        painter = QPainter(self)
        painter.drawPixmap(0, 0, self._picture)
        painter.setPen(QPen(self._style.theme.color("line"), 1))
        painter.drawRect(self.rect().adjusted(0, 0, -1, -1))
        frame = self._transform().mapRect(self._frame).intersected(QRectF(self.rect()).adjusted(1, 1, -2, -2))
        painter.setPen(QPen(self._style.theme.color("accent"), 1.4))
        painter.setBrush(self._style.theme.color("accent", 0.12))
        painter.drawRect(frame)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Move the canvas to the pressed point."""
        if event.button() == Qt.MouseButton.LeftButton:
            self._move_canvas_to(event.position())

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Drag the frame."""
        if event.buttons() & Qt.MouseButton.LeftButton:
            self._move_canvas_to(event.position())

    def _move_canvas_to(self, point: QPointF) -> None:
        back, possible = self._transform().inverted()
        if possible:
            self.moved.emit(back.map(point))
