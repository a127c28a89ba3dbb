"""The values of a figure as pyqtgraph's items: areas, lines, dots, bars. Imports pyqtgraph: only a drawn plot may."""

from __future__ import annotations

import pyqtgraph
from PySide6.QtCore import Qt
from PySide6.QtGui import QPen

from app.theme.theme import Theme
from app.widgets.plots.plot_items import AreaItem, cosmetic_pen
from app.widgets.plots.plot_spec import PlotBars, PlotSpec

_VERTICAL_BAR_FRACTION, _HORIZONTAL_BAR_FRACTION = 0.8, 0.6
"""How much of the way from bar to bar the bars take, standing and lying."""
_SHAPES = {"dot": ("o", 6, 1.2), "stroke": ("|", 20, 0.0), "diamond": ("d", 10, 1.6)}
"""pyqtgraph's symbol, pixels across at 100 %, width of its pen."""


class PlotSeries:
    """An item for everything in the figure, made anew only where its kinds or colours are others."""

    def __init__(self, box: pyqtgraph.ViewBox, theme: Theme) -> None:
        self._box, self._theme, self._figure = box, theme, PlotSpec()
        self.items: list[pyqtgraph.GraphicsObject] = []
        self._item_key: object = None

    def show_figure(self, figure: PlotSpec, theme: Theme) -> None:
        """Have an item for everything in it; `set_visible_values` gives them their values."""
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
            item.setZValue(1)  # a bar would cover it
            self.items.append(item)
        self.items += [pyqtgraph.BarGraphItem(x0=[], y0=[], width=0, height=0, pen=None) for _ in self._figure.bars]
        for item in self.items:
            self._box.addItem(item, ignoreBounds=True)

    def set_visible_values(self, seen: tuple[float, float] | None) -> None:
        """The values within `seen`, None for all: a picture as SVG has no clipping, so nothing may reach beyond it."""
        figure, items = self._figure, iter(self.items)
        if seen is not None and not figure.count:
            figure = figure.between(*seen)
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
            next(items).setOpts(**self._bar_options(number, seen))

    def _bar_options(self, number: int, seen: tuple[float, float] | None) -> dict[str, object]:
        """Where a set of bars stands, as pyqtgraph asks for it."""
        figure, bars = self._figure, self._figure.bars[number]
        sets_per_position = 1 if figure.is_stacked else len(figure.bars)
        fraction = _HORIZONTAL_BAR_FRACTION if figure.is_horizontal else _VERTICAL_BAR_FRACTION
        thick = fraction / sets_per_position
        starts = [n - fraction / 2 + number % sets_per_position * thick for n in range(len(bars.values))]
        low, high = seen or (-1.0, float(figure.count))
        values = [value if low <= n <= high else 0.0 for n, value in enumerate(bars.values)]
        looks = {"brush": self._theme.color(bars.colour), "pens": [self._outline(bars, n) for n in range(len(values))]}
        if figure.is_horizontal:  # the first one uppermost
            starts = [figure.count - 1 - start - thick for start in starts]
            return {"x0": 0.0, "y0": starts, "width": values, "height": thick, **looks}
        below = [0.0] * len(values)
        if figure.is_stacked:
            below = [
                sum(column) for column in zip(below, *(other.values for other in figure.bars[:number]), strict=True)
            ]
        return {"x0": starts, "y0": below, "width": thick, "height": values, **looks}

    def _outline(self, bars: PlotBars, index: int) -> QPen:
        """The marked one is framed: paler neighbours would be hard to see."""
        return cosmetic_pen(self._theme, "text", 2.0) if bars.marked == index else QPen(Qt.PenStyle.NoPen)
