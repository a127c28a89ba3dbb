"""Graphics items of plots: areas, lines, dots, bars, labels and marks. Imports pyqtgraph: only drawn plots may."""

from __future__ import annotations

from collections.abc import Sequence

import pyqtgraph
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QBrush, QFontMetricsF, QPainter, QPainterPath, QPen, QPolygonF
from PySide6.QtWidgets import QGraphicsItem, QStyleOptionGraphicsItem, QWidget

from decodescope.app.theme.theme import Theme
from decodescope.app.widgets.plots.plot_spec import PlotBars, PlotLine, PlotSpec


def cosmetic_pen(theme: Theme, colour: str, width: float, dashes: Sequence[float] = ()) -> QPen:
    """Return a pen whose width in pixels does not depend on the zoom."""
    result = QPen(theme.color(colour), width * theme.scale)
    result.setCosmetic(True)
    if dashes:
        result.setDashPattern(list(dashes))
        result.setCapStyle(Qt.PenCapStyle.FlatCap)
    return result


class AreaItem(pyqtgraph.GraphicsObject):
    """A filled band between two curves, with its upper edge drawn."""

    def __init__(self) -> None:
        super().__init__()
        self._fill, self._edge = QPainterPath(), QPainterPath()
        self._brushes: tuple[QBrush, ...] = ()
        self._pen = QPen(Qt.PenStyle.NoPen)

    def set_colours(self, theme: Theme, colour: str, hatched: bool) -> None:
        """Set the colours."""
        plain = QBrush(theme.color(colour, 0.22 if hatched else 0.38))
        hatch = QBrush(theme.color(colour, 0.7), Qt.BrushStyle.BDiagPattern)
        self._brushes = (plain, hatch) if hatched else (plain,)
        self._pen = cosmetic_pen(theme, colour, 1.6)
        self.update()

    def set_data(self, xs: Sequence[float], low: Sequence[float], high: Sequence[float]) -> None:
        """Set the curves between which the band lies."""
        self.prepareGeometryChange()
        top = [QPointF(x, y) for x, y in zip(xs, high, strict=True)]
        bottom = [QPointF(x, y) for x, y in zip(xs, low, strict=True)]
        self._fill, self._edge = QPainterPath(), QPainterPath()
        self._fill.addPolygon(QPolygonF([*top, *reversed(bottom)]))
        if low != high:
            self._edge.addPolygon(QPolygonF(top))
        self.update()

    def boundingRect(self) -> QRectF:
        """Return the bounds in plot coordinates."""
        return self._fill.boundingRect()

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        """Paint fill, hatching and edge. Hatching keeps its size on the screen."""
        for brush in self._brushes:
            brush.setTransform(painter.transform().inverted()[0])
            painter.fillPath(self._fill, brush)
        painter.strokePath(self._edge, self._pen)


class PlotLabels(QGraphicsItem):
    """Text in a plot at pixel size: names at the right ends of lines, figures at the ends of bars."""

    def __init__(self, box: pyqtgraph.ViewBox, theme: Theme) -> None:
        super().__init__(box.parentItem())  # a sibling of the box, which clips its own children
        self._box, self._theme, self._figure = box, theme, PlotSpec()
        self.setZValue(20)

    def show_figure(self, figure: PlotSpec, theme: Theme) -> None:
        """Label the items of a plot."""
        self._figure, self._theme = figure, theme
        self.reposition()

    def reposition(self) -> None:
        """Update after the plot moved or its visible range changed."""
        self.setPos(self._box.pos())
        self.prepareGeometryChange()
        self.update()

    def boundingRect(self) -> QRectF:
        """Return the plot area and a margin above it."""
        return QRectF(self._box.rect()).adjusted(0, -self._theme.px(18), 0, 0)

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        """Paint the labels."""
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
        """Paint the names above the right ends of the lines, without overlaps."""
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
        """Return the rectangle of a name: above the line over the name's full width, within the visible range."""
        width, theme = metrics.horizontalAdvance(line.name), self._theme
        low, high = self._box.viewRange()[0]
        end = min(line.points[-1][0], high)
        right = self._box.mapFromView(QPointF(end, 0)).x() - theme.px(6)
        left = self._box.mapToView(QPointF(right - width - theme.px(30), 0)).x()
        inner = [x for x, _ in line.points if left <= x <= end]
        heights = [height for x in (max(left, low), *inner, end) if (height := line.height_at(x)) is not None]
        y = self._box.mapFromView(QPointF(0, max(heights, default=0.0))).y()
        return QRectF(right - width, max(y - metrics.height() - theme.px(1), -theme.px(16)), width, metrics.height())


class PlotMarks:
    """Lines, dots and a band over the curves, all hidden at first."""

    def __init__(self, box: pyqtgraph.ViewBox, theme: Theme) -> None:
        self._theme = theme
        self._cursor = pyqtgraph.InfiniteLine(angle=90, movable=False)
        self._hover = pyqtgraph.InfiniteLine(angle=90, movable=False)
        self._band = pyqtgraph.LinearRegionItem(movable=False)
        self._dots = pyqtgraph.ScatterPlotItem()
        for item, depth in ((self._band, 5), (self._hover, 10), (self._cursor, 11), (self._dots, 12)):
            item.setZValue(depth)
            box.addItem(item, ignoreBounds=True)
            item.hide()

    def set_theme(self, theme: Theme) -> None:
        """Apply the colours and sizes of `theme`."""
        self._theme = theme
        self._cursor.setPen(cosmetic_pen(theme, "text", 1.6))
        self._hover.setPen(cosmetic_pen(theme, "faint", 1.0))
        self._band.setBrush(theme.color("accent", 0.15))
        for line in self._band.lines:
            line.setPen(cosmetic_pen(theme, "accent", 1.0))

    def set_cursor(self, x: float | None) -> None:
        """Move the cursor line to `x`; None hides it."""
        _move(self._cursor, x)

    def set_hover(self, figure: PlotSpec, x: float | None) -> None:
        """Mark the curves' values at `x`; bars have no marks."""
        _move(self._hover, None if figure.bars else x)
        marks = figure.heights_at(x) if x is not None and not figure.bars else []
        spots = [{"pos": (x, height), "brush": self._theme.color(colour)} for _, colour, height in marks]
        self._dots.setData(spots, size=self._theme.px(7), pen=cosmetic_pen(self._theme, "window", 1.2))
        self._dots.setVisible(bool(spots))

    def set_band(self, span: tuple[float, float] | None) -> None:
        """Show the range that will be zoomed to."""
        self._band.setVisible(span is not None)
        if span is not None:
            self._band.setRegion(span)


def _move(line: pyqtgraph.InfiniteLine, x: float | None) -> None:
    line.setVisible(x is not None)
    if x is not None:
        line.setPos(x)


_VERTICAL_BAR_FRACTION, _HORIZONTAL_BAR_FRACTION = 0.8, 0.6
"""Fraction of the bar distance that vertical and horizontal bars fill."""
_SHAPES = {"dot": ("o", 6, 1.2), "stroke": ("|", 20, 0.0), "diamond": ("d", 10, 1.6)}
"""pyqtgraph's symbol, its size in pixels at 100 %, its pen width."""


class PlotSeries:
    """One item per element of the plot, recreated only if kinds or colours change."""

    def __init__(self, box: pyqtgraph.ViewBox, theme: Theme) -> None:
        self._box, self._theme, self._figure = box, theme, PlotSpec()
        self.items: list[pyqtgraph.GraphicsObject] = []
        self._item_key: object = None

    def show_figure(self, figure: PlotSpec, theme: Theme) -> None:
        """Create the items for a plot; `set_visible_values` sets their values."""
        self._figure, self._theme = figure, theme
        kinds = (theme, [(a.colour, a.hatched) for a in figure.areas], [(n.colour, n.dashes) for n in figure.lines],
                 [(d.colour, d.shape) for d in figure.dots], [(b.colour, b.marked) for b in figure.bars])  # fmt: skip
        if kinds != self._item_key:
            self._item_key = kinds
            self._create_items()

    def _create_items(self) -> None:
        for item in self.items:
            self._box.removeItem(item)
        self.items = []
        for area in self._figure.areas:
            item = AreaItem()
            item.set_colours(self._theme, area.colour, area.hatched)
            self.items.append(item)
        for line in self._figure.lines:
            look = cosmetic_pen(self._theme, line.colour, 1.4, line.dashes)
            self.items.append(pyqtgraph.PlotCurveItem(pen=look, antialias=True))
        for dots in self._figure.dots:
            symbol, pixels, width = _SHAPES[dots.shape]
            look = cosmetic_pen(self._theme, dots.colour, width)
            ground = self._theme.color(dots.colour if dots.shape == "stroke" else "window")
            item = pyqtgraph.ScatterPlotItem(size=self._theme.px(pixels), pen=look, brush=ground, symbol=symbol)
            item.setZValue(1)  # above the bars
            self.items.append(item)
        self.items += [pyqtgraph.BarGraphItem(x0=[], y0=[], width=0, height=0, pen=None) for _ in self._figure.bars]
        for item in self.items:
            self._box.addItem(item, ignoreBounds=True)

    def set_visible_values(self, visible_range: tuple[float, float] | None) -> None:
        """Set the values within `visible_range`, or all for None. SVG export does not clip, so nothing may extend
        beyond it.
        """
        figure, items = self._figure, iter(self.items)
        if visible_range is not None and not figure.count:
            figure = figure.between(*visible_range)
        low = [0.0] * len(figure.xs)
        for area in figure.areas:
            high = [below + value for below, value in zip(low, area.values, strict=True)]
            next(items).set_data(figure.xs, low, high)
            low = high
        for line in figure.lines:
            next(items).setData([x for x, _ in line.points], [y for _, y in line.points])
        for dots in figure.dots:
            next(items).setData([x for x, _ in dots.points], [y for _, y in dots.points])
        for number in range(len(figure.bars)):
            next(items).setOpts(**self._bar_options(number, visible_range))

    def _bar_options(self, number: int, visible_range: tuple[float, float] | None) -> dict[str, object]:
        """Return a set of bars as options of pyqtgraph's item."""
        figure, bars = self._figure, self._figure.bars[number]
        sets_per_position = 1 if figure.is_stacked else len(figure.bars)
        fraction = _HORIZONTAL_BAR_FRACTION if figure.is_horizontal else _VERTICAL_BAR_FRACTION
        thick = fraction / sets_per_position
        starts = [n - fraction / 2 + number % sets_per_position * thick for n in range(len(bars.values))]
        low, high = visible_range or (-1.0, float(figure.count))
        values = [value if low <= n <= high else 0.0 for n, value in enumerate(bars.values)]
        looks = {"brush": self._theme.color(bars.colour), "pens": [self._outline(bars, n) for n in range(len(values))]}
        if figure.is_horizontal:  # the first bar at the top
            starts = [figure.count - 1 - start - thick for start in starts]
            return {"x0": 0.0, "y0": starts, "width": values, "height": thick, **looks}
        below = [0.0] * len(values)
        if figure.is_stacked:
            below = [
                sum(column) for column in zip(below, *(other.values for other in figure.bars[:number]), strict=True)
            ]
        return {"x0": starts, "y0": below, "width": thick, "height": values, **looks}

    def _outline(self, bars: PlotBars, index: int) -> QPen:
        """Return the pen of a bar: an outline for the marked one, because its neighbours are pale."""
        return cosmetic_pen(self._theme, "text", 2.0) if bars.marked == index else QPen(Qt.PenStyle.NoPen)
