"""Painter of a scene at any zoom: full boxes, plain boxes, lines or dots, limited to the visible part."""

from __future__ import annotations

from collections.abc import Iterable

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPainterPath, QPen, QPolygonF

from decodescope.app.theme.theme import Theme, blend
from decodescope.app.widgets.tree_canvas.geometry import READABLE_ZOOM, Camera, TreeMetrics
from decodescope.app.widgets.tree_canvas.node_painting import NodeBoxCache, NodePainter
from decodescope.app.widgets.tree_canvas.tree_scene import TITLE_ROWS, WEIGHT_CLASSES, TreeScene
from decodescope.app.widgets.tree_canvas.tree_style import (
    CUT,
    DASHED,
    DIMMED,
    PAINT_ORDER,
    PILLS,
    TreeStyle,
    dashed_pen,
    edge_width,
    node_outline,
)
from decodescope.resources.language import tr

BOX_ZOOM, LINE_ZOOM = 0.22, 0.045
"""Zooms from which boxes have outlines, and from which they have a height."""
MAX_DASHED_LENGTH = 400
"""Length in pixels above which an edge is not dashed."""


def detail_level(zoom: float) -> str:
    """Return the level of detail at a zoom: full, boxes, lines or dots."""
    if zoom >= READABLE_ZOOM:
        return "full"
    return "boxes" if zoom >= BOX_ZOOM else "lines" if zoom >= LINE_ZOOM else "dots"


class TreePainter:
    """Paints one scene in one style."""

    def __init__(self, scene: TreeScene, style: TreeStyle) -> None:
        self.scene, self.style = scene, style
        self.nodes, self.boxes = NodePainter(style.theme, scene.metrics), NodeBoxCache(scene.metrics)

    def restyle(self, theme: Theme, metrics: TreeMetrics) -> None:
        """Apply other colours or sizes."""
        self.style.set_theme(theme)
        self.nodes, self.boxes = NodePainter(theme, metrics), NodeBoxCache(metrics)

    def paint(self, painter: QPainter, camera: Camera, area: QRectF) -> None:
        """Paint everything inside `area` (widget coordinates)."""
        rect = camera.rect_to_canvas(area)
        self._lanes(painter, camera, area)
        if detail_level(camera.zoom) == "full":
            self._paint_full(painter, camera, rect)
            return
        painter.save()
        painter.setTransform(camera.transform(), True)
        draw = {"boxes": self._boxes, "lines": self._lines, "dots": self._dots}
        draw[detail_level(camera.zoom)](painter, camera.zoom, rect)
        painter.restore()

    # Legible zoom

    def _paint_full(self, painter: QPainter, camera: Camera, rect: QRectF) -> None:
        """Paint edges, then boxes, then the text in the boxes."""
        scene, style = self.scene, self.style
        reach = 24 * style.theme.scale
        around = rect.adjusted(-scene.metrics.depth_pitch, -reach, reach, reach)
        nodes = [(node, scene.box(node)) for node in scene.nodes_in(around)]
        best = set(style.best_path)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.save()
        painter.setTransform(camera.transform(), True)
        self._edges(painter, around, best)
        painter.restore()
        self._paint_boxes_from_cache(painter, camera, nodes, best)
        painter.save()
        painter.setTransform(camera.transform(), True)
        for node, box in nodes:
            spec = scene.model.nodes[node]
            self.nodes.paint_content(painter, spec, box, style, camera.zoom, node in best and spec.parent is not None)
            self._fold_mark(painter, node, box)
        if style.selected is not None and scene.is_shown(style.selected):
            self._ring(painter, style.selected)
        painter.restore()

    def _paint_boxes_from_cache(
        self, painter: QPainter, camera: Camera, nodes: list[tuple[int, QRectF]], best: set[int]
    ) -> None:
        style, ratio = self.style, painter.device().devicePixelRatioF()
        for node, box in nodes:
            spec = self.scene.model.nodes[node]
            line = "best" if node in best and spec.parent is not None else spec.state
            ground = "tint" if node in style.search_matches else "hover" if style.hovered == node else "panel"
            place = camera.from_canvas(box.topLeft())
            self.boxes.draw(painter, place, spec.state, line, ground, style, camera.zoom, ratio)

    def _edges(self, painter: QPainter, rect: QRectF, best: set[int]) -> None:
        """Paint the edges, faint ones first. Each curve is a call: Qt is ten times slower with many curves in one
        path.
        """
        scene, trail = self.scene, set(self.style.selected_path)
        edges: dict[str, list[tuple[float, QPainterPath]]] = {}
        painter.setBrush(Qt.BrushStyle.NoBrush)
        for parent, child in scene.edges_in(rect):
            spec = scene.model.nodes[child]
            path = self._curve(parent, child, rect)
            edges.setdefault("best" if child in best else spec.state, []).append((edge_width(spec.weight), path))
            if child in trail:
                painter.strokePath(path, self._halo())
        for state in PAINT_ORDER:
            for width, path in edges.get(state, ()):
                painter.strokePath(path, self._edge_pen(state, width, path))

    def _edge_pen(self, state: str, width: float, path: QPainterPath) -> QPen:
        """Return the pen of an edge. Long dashed edges become hairlines, because dashes take long to draw."""
        if state not in DASHED:
            pen = QPen(self.style.state_colour(state, 0.85), width * self.style.theme.scale)
            pen.setCapStyle(Qt.PenCapStyle.FlatCap)
            return pen
        ends = path.controlPointRect()
        if max(ends.width(), ends.height()) > MAX_DASHED_LENGTH:
            return _hairline(self.style.state_colour(state, 0.6))
        return dashed_pen(QPen(self.style.state_colour(state, 0.85), width * self.style.theme.scale))

    def _curve(self, parent: int, child: int, clip: QRectF) -> QPainterPath:
        return self.scene.metrics.edge_path(self.scene.box(parent), self.scene.box(child), clip)

    def _halo(self) -> QPen:
        """Return the pen under the path to the selected node."""
        style = self.style
        pen = QPen(blend(style.theme_colour("accent"), style.theme_colour("window"), 0.38), 11 * style.theme.scale)
        pen.setCapStyle(Qt.PenCapStyle.RoundCap)
        return pen

    def _ring(self, painter: QPainter, node: int) -> None:
        theme = self.style.theme
        pen = QPen(theme.color("accent"), (2.4 if self.style.focused else 1.8) * theme.scale)
        painter.strokePath(self.nodes.selection_path(self.scene.model.nodes[node], self.scene.box(node)), pen)

    def _fold_mark(self, painter: QPainter, node: int, box: QRectF) -> None:
        text = fold_text(self.scene, self.style, node)
        if text:
            self.nodes.draw_fold_mark(painter, box, text, self.style)

    # Boxes

    def _boxes(self, painter: QPainter, zoom: float, rect: QRectF) -> None:
        blocks = list(self.scene.blocks(rect))
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        for state in PAINT_ORDER:
            for thick in range(WEIGHT_CLASSES):
                pen = _hairline(self.style.state_colour(state, 0.45 + 0.5 * thick / (WEIGHT_CLASSES - 1)))
                _stroke(painter, pen, (block.curves.get((state, thick)) for block in blocks))
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
        for state in PAINT_ORDER:
            self._some_boxes(painter, state, (block.boxes.get(state) for block in blocks))
        self._paths(painter, rect, 2.0)

    def _some_boxes(self, painter: QPainter, state: str, boxes: Iterable[list[QRectF] | None]) -> None:
        """Paint boxes: dashed states hollow, ends in their own shapes."""
        hollow = state in DASHED
        painter.setPen(_hairline(self.style.state_colour(state), hollow))
        painter.setBrush(self.style.theme.color("window") if hollow else self.style.state_colour(state, 0.35))
        for some in boxes:
            if some and (state in PILLS or state in CUT):
                for box in some:
                    painter.drawPath(node_outline(state, box, 0.0))
            elif some:
                painter.drawRects(some)

    # Lines and dots

    def _lines(self, painter: QPainter, zoom: float, rect: QRectF) -> None:
        blocks = list(self.scene.blocks(rect))
        for state in PAINT_ORDER:
            share = 0.4 if state in DIMMED else 0.6
            _stroke(
                painter, _hairline(self.style.state_colour(state, share)), (block.lines.get(state) for block in blocks)
            )
        painter.setPen(Qt.PenStyle.NoPen)
        for state in PAINT_ORDER:
            painter.setBrush(self.style.state_colour(state, 0.6 if state in DIMMED else 0.9))
            for block in blocks:
                if state in block.boxes:
                    painter.drawRects(block.boxes[state])
        self._paths(painter, rect, 2.0)

    def _dots(self, painter: QPainter, zoom: float, rect: QRectF) -> None:
        blocks = list(self.scene.blocks(rect))
        size = max(1.2, min(self.scene.metrics.width, self.scene.metrics.height * 2) * zoom)
        for state in PAINT_ORDER:
            if state not in DIMMED:
                pen = _hairline(self.style.state_colour(state, 0.5))
                _stroke(painter, pen, (block.lines.get(state) for block in blocks))
        for state in PAINT_ORDER:
            pen = QPen(self.style.state_colour(state, 0.7 if state in DIMMED else 1.0), size)
            pen.setCosmetic(True)
            painter.setPen(pen)
            for block in blocks:
                if state in block.centers:
                    painter.drawPoints(block.centers[state])
        self._paths(painter, rect, 1.6)

    # Best path, selected path and search matches, over the shapes drawn in bulk

    def _paths(self, painter: QPainter, rect: QRectF, width: float) -> None:
        theme = self.style.theme
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        self._highlight(painter, self.style.selected_path, theme.color("accent"), 2 * width, rect)
        self._highlight(painter, self.style.best_path, theme.color("best"), width, rect, filled=True)
        matches = [self.scene.box(node) for node in self.style.search_matches if self.scene.is_shown(node)]
        self._outline_boxes(painter, matches, theme.color("accent"), width)
        selected = self.style.selected
        if selected is not None and self.scene.is_shown(selected):
            self._outline_boxes(painter, [self.scene.box(selected)], theme.color("accent"), 1.5 * width)

    def _highlight(
        self, painter: QPainter, path: list[int], colour: QColor, width: float, rect: QRectF, filled: bool = False
    ) -> None:
        depths = self.scene.depths_in(rect)
        seen = [node for node in path if self.scene.is_shown(node) and self.scene.model.depth[node] in depths]
        boxes = [self.scene.box(node) for node in seen]
        line = QPolygonF()
        for box in boxes:
            line.append([self.scene.metrics.edge_end(box), self.scene.metrics.edge_start(box)])
        pen = QPen(colour, width)
        pen.setCosmetic(True)
        pen.setCapStyle(Qt.PenCapStyle.RoundCap)
        painter.setPen(pen)
        painter.drawPolyline(line)
        if filled and boxes:
            painter.setBrush(blend(colour, self.style.theme_colour("window"), 0.6))
            painter.drawRects(boxes[1 if seen[0] == path[0] else 0 :])

    def _outline_boxes(self, painter: QPainter, boxes: list[QRectF], colour: QColor, width: float) -> None:
        pen = QPen(colour, width)
        pen.setCosmetic(True)
        painter.setPen(pen)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        if boxes:
            painter.drawRects(boxes)

    # Lanes

    def _lanes(self, painter: QPainter, camera: Camera, area: QRectF) -> None:
        """Paint a band behind every second lane, and the lane titles, in widget coordinates."""
        lanes = self.scene.layout.lanes()
        if len(lanes) < 2:
            return
        theme, metrics = self.style.theme, self.scene.metrics
        ground = blend(theme.color("hover"), theme.color("window"), 0.5)
        painter.setFont(theme.font(11, 600))
        for number, (lane, first, last) in enumerate(lanes):
            rows = camera.rect_from_canvas(metrics.area((0, 0), (first - TITLE_ROWS, last + 0.2)))
            band = self._band(rows, area)
            if number % 2 == 0:
                painter.fillRect(band, ground)
            painter.setPen(theme.color("muted"))
            spot = band.intersected(area).adjusted(theme.px(10), theme.px(5), 0, 0)
            if spot.height() > theme.px(16):
                title = self.style.lane_titles.get(lane, tr("Group {number}").format(number=lane + 1))
                painter.drawText(spot, Qt.AlignmentFlag.AlignLeft, title)

    def _band(self, rows: QRectF, area: QRectF) -> QRectF:
        if self.scene.metrics.down:
            return QRectF(rows.left(), area.top(), rows.width(), area.height())
        return QRectF(area.left(), rows.top(), area.width(), rows.height())


def fold_text(scene: TreeScene, style: TreeStyle, node: int) -> str:
    """Return the fold mark's text: `+12` for a folded node, `−` for the hovered one, otherwise empty."""
    if node in scene.model.folded:
        return f"+{scene.model.count_below(node, scene.max_depth):,}"
    below = scene.model.children.get(node)
    return "−" if below and node == style.hovered and scene.is_shown(below[0]) else ""


def _hairline(colour: QColor, dotted: bool = False) -> QPen:
    pen = QPen(colour, 1)
    pen.setCosmetic(True)
    if dotted:
        pen.setStyle(Qt.PenStyle.DotLine)
    return pen


def _stroke(painter: QPainter, pen: QPen, paths: Iterable[QPainterPath | None]) -> None:
    painter.setPen(pen)
    painter.setBrush(Qt.BrushStyle.NoBrush)
    for path in paths:
        if path is not None:
            painter.drawPath(path)
