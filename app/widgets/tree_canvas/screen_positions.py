"""What stands where on the widget: nodes and fold marks, by a point of it and the other way round."""

from __future__ import annotations

from PySide6.QtCore import QPoint, QPointF, QRect, QRectF

from app.widgets.tree_canvas.geometry import READABLE_ZOOM, Camera
from app.widgets.tree_canvas.tree_painter import TreePainter, fold_text
from app.widgets.tree_canvas.tree_scene import TreeScene

FOLD_MARK_REACH = 60
"""Pixels at 100 % around a point in which the box of a fold mark there may stand."""


class ScreenPositions:
    """A scene as a camera sees it."""

    def __init__(self, scene: TreeScene, camera: Camera, painter: TreePainter) -> None:
        self._scene, self._camera, self._painter = scene, camera, painter

    def node_at(self, point: QPoint | QPointF) -> int | None:
        """The node drawn at a point of the widget."""
        return self._scene.node_at(self._camera.to_canvas(QPointF(point)))

    def node_rect(self, node: int) -> QRect:
        """Where a node is drawn in the widget; empty when it is not shown."""
        if not self._scene.is_shown(node):
            return QRect()
        return self._camera.rect_from_canvas(self._scene.box(node)).toAlignedRect()

    def fold_mark_at(self, point: QPointF) -> int | None:
        """The node whose fold mark is drawn at a point of the widget."""
        if self._camera.zoom < READABLE_ZOOM:
            return None
        canvas_point, style = self._camera.to_canvas(point), self._painter.style
        reach = FOLD_MARK_REACH * style.theme.scale
        for node in self._scene.nodes_in(
            QRectF(canvas_point.x() - reach, canvas_point.y() - reach, reach * 2, reach * 2)
        ):
            text = fold_text(self._scene, style, node)
            if text and self._painter.nodes.fold_mark_rect(self._scene.box(node), text).contains(canvas_point):
                return node
        return None
