"""A figure drawn by pyqtgraph. Imports pyqtgraph: only a plot that is drawn may."""

from __future__ import annotations

from dataclasses import replace

import pyqtgraph
from PySide6.QtCore import QPoint, QPointF, QRectF, Qt, Slot
from PySide6.QtGui import QColor, QFontMetricsF
from PySide6.QtWidgets import QGraphicsView, QWidget

from app.theme.theme import Theme
from app.widgets.plots.axes import TickAxis
from app.widgets.plots.figure import Bars, Figure
from app.widgets.plots.items import AreaItem, Names, pen

# Its clean-up at the end walks through every object there is, and Qt has let go of everything by then.
pyqtgraph.setConfigOption("exitCleanup", False)

_WIDEST_BAR, _BAR_SHARE, _LYING_SHARE = 44, 0.8, 0.6
"""Pixels at 100 % from bar to bar at most; how much of that the bars take, standing and lying."""
_SMALLEST_SPAN = 4.0
"""Places that are seen at least, however far one zooms in."""


class PlotCanvas(pyqtgraph.GraphicsView):
    """Axes, curves, bars, the cursor and the mark under the mouse; it takes no input itself."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent, background=None)
        self._theme, self._figure = theme, Figure()
        self._zoom: tuple[float, float] | None = None
        self._series: list[pyqtgraph.GraphicsObject] = []
        self._drawn: object = None
        self.setCacheMode(QGraphicsView.CacheModeFlag.CacheNone)
        self.setAntialiasing(True)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.box = pyqtgraph.ViewBox(enableMouse=False, enableMenu=False)
        self._left, self._bottom = TickAxis("left"), TickAxis("bottom")
        self._cursor = pyqtgraph.InfiniteLine(angle=90, movable=False)
        self._hover = pyqtgraph.InfiniteLine(angle=90, movable=False)
        self._band = pyqtgraph.LinearRegionItem(movable=False)
        self._dots = pyqtgraph.ScatterPlotItem()
        self._lay_out()
        self.set_theme(theme)

    def _lay_out(self) -> None:
        for axis, row, column in ((self._left, 0, 0), (self._bottom, 1, 1)):
            axis.linkToView(self.box)
            self.centralLayout.addItem(axis, row, column)
        self.centralLayout.addItem(self.box, 0, 1)
        self._names = Names(self.box, self._theme)
        self.centralLayout.setSpacing(0)
        for item, depth in ((self._band, 5), (self._hover, 10), (self._cursor, 11), (self._dots, 12)):
            item.setZValue(depth)
            self.box.addItem(item, ignoreBounds=True)
            item.hide()
        self.box.disableAutoRange()
        self.box.sigResized.connect(self._on_resized)

    @property
    def figure(self) -> Figure:
        """What is drawn."""
        return self._figure

    def set_theme(self, theme: Theme) -> None:
        """Draw everything in other colours and sizes."""
        self._theme, self._drawn = theme, None
        self.setBackgroundBrush(theme.color("window"))
        for axis in (self._left, self._bottom):
            axis.set_theme(theme)
        self._cursor.setPen(pen(theme, "text", 1.6))
        self._hover.setPen(pen(theme, "faint", 1.0))
        self._band.setBrush(theme.color("accent", 0.15))
        for line in self._band.lines:
            line.setPen(pen(theme, "accent", 1.0))
        self.show_figure(self._figure)

    def show_figure(self, figure: Figure) -> None:
        """Draw this; a zoom stays as it is."""
        self._figure = figure
        kinds = ([(a.colour, a.hatched) for a in figure.areas], [(n.colour, n.dashes) for n in figure.lines],
                 [(b.colour, b.marked) for b in figure.bars])  # fmt: skip
        if kinds != self._drawn:
            self._drawn = kinds
            self._make()
        self._names.show_figure(figure, self._theme)
        self._fit()

    def _make(self) -> None:
        """An item for everything in the figure."""
        for item in self._series:
            self.box.removeItem(item)
        self._series = []
        for area in self._figure.areas:
            item = AreaItem()
            item.set_look(self._theme, area.colour, area.hatched)
            self._series.append(item)
        for line in self._figure.lines:
            look = pen(self._theme, line.colour, 1.4, line.dashes)
            self._series.append(pyqtgraph.PlotCurveItem(pen=look, antialias=True))
        self._series += [pyqtgraph.BarGraphItem(x0=[], y0=[], width=0, height=0, pen=None) for _ in self._figure.bars]
        for item in self._series:
            self.box.addItem(item, ignoreBounds=True)

    def _fill(self) -> None:
        """The values that are seen: a picture as SVG has no clipping, so nothing may reach beyond the plot."""
        figure, items = self._figure, iter(self._series)
        if self._zoom is not None and not figure.count:
            figure = figure.between(*self.seen)
        low = [0.0] * len(figure.xs)
        for area in figure.areas:
            high = [below + value for below, value in zip(low, area.values, strict=True)]
            next(items).set_data(figure.xs, low, high)
            low = high
        for line in figure.lines:
            next(items).setData([x for x, _ in line.points], [y for _, y in line.points])
        for number in range(len(figure.bars)):
            next(items).setOpts(**self._bars(number))

    @Slot()
    def _on_resized(self) -> None:
        self._fit()

    def _bars(self, number: int) -> dict[str, object]:
        """Where a set of bars stands, as pyqtgraph asks for it."""
        figure, bars = self._figure, self._figure.bars[number]
        beside = 1 if figure.stacked else len(figure.bars)
        share = _LYING_SHARE if figure.sideways else _BAR_SHARE
        thick = share / beside
        starts = [n - share / 2 + number % beside * thick for n in range(len(bars.values))]
        low, high = self.seen if self._zoom is not None else (-1.0, float(figure.count))
        values = [value if low <= n <= high else 0.0 for n, value in enumerate(bars.values)]
        brushes = [self._brush(bars, n) for n in range(len(values))]
        if figure.sideways:  # the first one uppermost
            starts = [figure.count - 1 - start - thick for start in starts]
            return {"x0": 0.0, "y0": starts, "width": values, "height": thick, "brushes": brushes}
        below = [0.0] * len(values)
        if figure.stacked:
            below = [
                sum(column) for column in zip(below, *(other.values for other in figure.bars[:number]), strict=True)
            ]
        return {"x0": starts, "y0": below, "width": thick, "height": values, "brushes": brushes}

    def _brush(self, bars: Bars, place: int) -> QColor:
        """The marked one is the strongest."""
        strength = 1.0 if bars.marked == place else 0.75 if bars.marked < 0 else 0.55
        return self._theme.color(bars.colour, strength)

    # What is seen

    def _fit(self) -> None:
        """Axes, and the part of them that is seen; the room above the curves is for their names."""
        above = self._theme.px(16 if any(line.name for line in self._figure.lines) else 7)
        self.centralLayout.setContentsMargins(self._theme.px(2), above, self._theme.px(14), 0)
        figure, (bottom, top) = self._figure, self._heights()
        upright = replace(figure.y, labels=figure.y.labels[::-1]) if figure.sideways else figure.y
        self._bottom.set_axis(figure.x, figure.height if figure.sideways else figure.end, False)
        left, right = self.whole
        self._left.set_axis(upright, figure.height, not figure.sideways)
        if self._zoom is not None:
            low, high = self._zoom
            left, right = max(left, low), min(right, high)
        self.box.setRange(xRange=(left, right), yRange=(bottom, top), padding=0, disableAutoRange=False)
        self._fill()
        self._names.follow()

    @property
    def whole(self) -> tuple[float, float]:
        """(left, right) of the x axis when nothing is zoomed."""
        figure, width, theme = self._figure, max(self.box.width(), 1.0), self._theme
        if figure.sideways:
            metrics = QFontMetricsF(theme.font(11, tabular=True))
            words = max((metrics.horizontalAdvance(text) for bars in figure.bars for text in bars.figures), default=0)
            return 0.0, figure.height * width / max(width - words - theme.px(8), width * 0.2)
        if figure.count:
            return -0.5, max(float(figure.count), width / max(theme.px(_WIDEST_BAR), self._bottom.pitch)) - 0.5
        return 0.0, figure.end

    def _heights(self) -> tuple[float, float]:
        figure = self._figure
        return (-0.5, figure.count - 0.5) if figure.sideways else (0.0, figure.height)

    @property
    def is_zoomed(self) -> bool:
        """Whether only a part is seen."""
        return self._zoom is not None

    @property
    def seen(self) -> tuple[float, float]:
        """(left, right) of what is seen."""
        low, high = self.box.viewRange()[0]
        return low, high

    def zoom_to(self, low: float, high: float) -> None:
        """See this part of the x axis; all of it shows the whole again, and nothing is enlarged without end."""
        left, right = self.whole
        span = max(high - low, min(_SMALLEST_SPAN, right - left))
        low = min(max(low, left), right - span)
        self._zoom = (low, low + span) if span < (right - left) * (1 - 1e-9) else None
        self._fit()

    def show_whole(self) -> None:
        """See everything."""
        self._zoom = None
        self._fit()

    # Marks

    def set_cursor(self, x: float | None) -> None:
        """Stand at `x`."""
        _move(self._cursor, x)

    def set_hover(self, x: float | None) -> None:
        """Mark what is at `x`."""
        bars = self._figure.bars
        _move(self._hover, None if bars else x)
        marks = self._figure.marks(x) if x is not None and not bars else []
        spots = [{"pos": (x, height), "brush": self._colour(colour)} for _, colour, height in marks]
        self._dots.setData(spots, size=self._theme.px(7), pen=pen(self._theme, "window", 1.2))
        self._dots.setVisible(bool(spots))

    def _colour(self, name: str) -> QColor:
        return self._theme.color(name)

    def set_band(self, span: tuple[float, float] | None) -> None:
        """Mark the part that is about to be zoomed to."""
        self._band.setVisible(span is not None)
        if span is not None:
            self._band.setRegion(span)

    # Places

    def area(self) -> QRectF:
        """Where the curves are, in pixels."""
        return self.box.sceneBoundingRect()

    def pixel(self, x: float, y: float) -> QPoint:
        """Where a value is."""
        return self.mapFromScene(self.box.mapViewToScene(QPointF(x, y)))

    def place_at(self, pixel: QPointF) -> float:
        """The place under a pixel: of the x axis, or the bar's number; -1 where there is no bar."""
        value, figure = self.box.mapSceneToView(QPointF(pixel)), self._figure
        if not figure.count:
            low, high = self.seen
            return float(min(max(value.x(), low), high))
        place = round(figure.count - 1 - value.y()) if figure.sideways else round(value.x())
        return float(place) if 0 <= place < figure.count else -1.0


def _move(line: pyqtgraph.InfiniteLine, x: float | None) -> None:
    line.setVisible(x is not None)
    if x is not None:
        line.setPos(x)
