"""What is drawn in a plot beside pyqtgraph's own items. Imports pyqtgraph: only a plot that is drawn may."""

from __future__ import annotations

from collections.abc import Sequence

import pyqtgraph
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QBrush, QFontMetricsF, QPainter, QPainterPath, QPen, QPolygonF
from PySide6.QtWidgets import QGraphicsItem, QStyleOptionGraphicsItem, QWidget

from app.theme.theme import Theme
from app.widgets.plots.plot_spec import PlotLine, PlotSpec


def cosmetic_pen(theme: Theme, colour: str, width: float, dashes: Sequence[float] = ()) -> QPen:
    """A pen as wide in pixels whatever the zoom."""
    result = QPen(theme.color(colour), width * theme.scale)
    result.setCosmetic(True)
    if dashes:
        result.setDashPattern(list(dashes))
        result.setCapStyle(Qt.PenCapStyle.FlatCap)
    return result


class AreaItem(pyqtgraph.GraphicsObject):
    """A filled band between two curves, its upper edge drawn."""

    def __init__(self) -> None:
        super().__init__()
        self._fill, self._edge = QPainterPath(), QPainterPath()
        self._brushes: tuple[QBrush, ...] = ()
        self._pen = QPen(Qt.PenStyle.NoPen)

    def set_colours(self, theme: Theme, colour: str, hatched: bool) -> None:
        """Take its colours."""
        plain = QBrush(theme.color(colour, 0.22 if hatched else 0.38))
        hatch = QBrush(theme.color(colour, 0.7), Qt.BrushStyle.BDiagPattern)
        self._brushes = (plain, hatch) if hatched else (plain,)
        self._pen = cosmetic_pen(theme, colour, 1.6)
        self.update()

    def set_data(self, xs: Sequence[float], low: Sequence[float], high: Sequence[float]) -> None:
        """Lie between `low` and `high`."""
        self.prepareGeometryChange()
        top = [QPointF(x, y) for x, y in zip(xs, high, strict=True)]
        bottom = [QPointF(x, y) for x, y in zip(xs, low, strict=True)]
        self._fill, self._edge = QPainterPath(), QPainterPath()
        self._fill.addPolygon(QPolygonF([*top, *reversed(bottom)]))
        if low != high:
            self._edge.addPolygon(QPolygonF(top))
        self.update()

    def boundingRect(self) -> QRectF:
        """In the plot's own values."""
        return self._fill.boundingRect()

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        """Fill, hatch, edge; a hatch has the screen's measure, not the plot's."""
        for brush in self._brushes:
            brush.setTransform(painter.transform().inverted()[0])
            painter.fillPath(self._fill, brush)
        painter.strokePath(self._edge, self._pen)


class PlotLabels(QGraphicsItem):
    """Words in a plot, in its pixels: the lines' names at their right ends, the figures at the ends of bars."""

    def __init__(self, box: pyqtgraph.ViewBox, theme: Theme) -> None:
        super().__init__(box.parentItem())  # beside the box, which cuts off what is drawn in it
        self._box, self._theme, self._figure = box, theme, PlotSpec()
        self.setZValue(20)

    def show_figure(self, figure: PlotSpec, theme: Theme) -> None:
        """Name what is in this figure."""
        self._figure, self._theme = figure, theme
        self.reposition()

    def reposition(self) -> None:
        """The plot has moved, or shows another part."""
        self.setPos(self._box.pos())
        self.prepareGeometryChange()
        self.update()

    def boundingRect(self) -> QRectF:
        """All of the plot, and a little above it."""
        return QRectF(self._box.rect()).adjusted(0, -self._theme.px(18), 0, 0)

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        """The words."""
        painter.setFont(self._theme.font(11, tabular=True))
        if self._figure.is_horizontal:
            self._paint_figures(painter)
        else:
            self._paint_names(painter)

    def _paint_figures(self, painter: QPainter) -> None:
        theme, metrics, count = self._theme, QFontMetricsF(painter.font()), self._figure.count
        painter.setPen(theme.color("text"))
        for bars in self._figure.bars:
            for n, (value, text) in enumerate(zip(bars.values, bars.figures, strict=False)):
                marks = [x for dots in self._figure.dots for x, y in dots.points if y == count - 1 - n]
                end = self._box.mapFromView(QPointF(max([value, *marks]), count - 1 - n))
                painter.drawText(QPointF(end.x() + theme.px(6), end.y() + metrics.capHeight() / 2), text)

    def _paint_names(self, painter: QPainter) -> None:
        """Above the right ends of the lines, one never over another."""
        taken: list[QRectF] = []
        named = [line for line in self._figure.lines if line.points and line.name]
        metrics = QFontMetricsF(painter.font())
        for line in sorted(named, key=lambda line: -line.points[-1][1]):
            box = self._label_rect(line, metrics)
            while any(box.intersects(other) for other in taken):
                box.moveTop(box.top() + metrics.height())
            taken.append(box)
            if box.bottom() <= self._box.rect().bottom():
                self._paint_name(painter, line, box)

    def _paint_name(self, painter: QPainter, line: PlotLine, box: QRectF) -> None:
        painter.fillRect(box.adjusted(-3, 0, 3, 0), self._theme.color("window", 0.75))
        painter.setPen(self._theme.ink("muted" if line.colour == "faint" else line.colour))
        painter.drawText(box, int(Qt.AlignmentFlag.AlignRight), line.name)

    def _label_rect(self, line: PlotLine, metrics: QFontMetricsF) -> QRectF:
        """Above the line over the whole width of the word, whatever its slope, within what is seen."""
        width, theme = metrics.horizontalAdvance(line.name), self._theme
        low, high = self._box.viewRange()[0]
        end = min(line.points[-1][0], high)
        right = self._box.mapFromView(QPointF(end, 0)).x() - theme.px(6)
        left = self._box.mapToView(QPointF(right - width - theme.px(30), 0)).x()
        inner = [x for x, _ in line.points if left <= x <= end]
        heights = [height for x in (max(left, low), *inner, end) if (height := line.height_at(x)) is not None]
        y = self._box.mapFromView(QPointF(0, max(heights, default=0.0))).y()
        return QRectF(right - width, max(y - metrics.height() - theme.px(1), -theme.px(16)), width, metrics.height())
