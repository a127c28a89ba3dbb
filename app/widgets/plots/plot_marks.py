"""Marks in a plot: the cursor, the place under the mouse, what is about to be zoomed to. Imports pyqtgraph."""

from __future__ import annotations

import pyqtgraph

from app.theme.theme import Theme
from app.widgets.plots.plot_items import cosmetic_pen
from app.widgets.plots.plot_spec import PlotSpec


class PlotMarks:
    """Lines, dots and a band over the curves; none of them is seen at first."""

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
        """Take other colours and sizes."""
        self._theme = theme
        self._cursor.setPen(cosmetic_pen(theme, "text", 1.6))
        self._hover.setPen(cosmetic_pen(theme, "faint", 1.0))
        self._band.setBrush(theme.color("accent", 0.15))
        for line in self._band.lines:
            line.setPen(cosmetic_pen(theme, "accent", 1.0))

    def set_cursor(self, x: float | None) -> None:
        """Stand at `x`."""
        _move(self._cursor, x)

    def set_hover(self, figure: PlotSpec, x: float | None) -> None:
        """Mark what the figure's curves have at `x`; bars take no mark."""
        _move(self._hover, None if figure.bars else x)
        marks = figure.heights_at(x) if x is not None and not figure.bars else []
        spots = [{"pos": (x, height), "brush": self._theme.color(colour)} for _, colour, height in marks]
        self._dots.setData(spots, size=self._theme.px(7), pen=cosmetic_pen(self._theme, "window", 1.2))
        self._dots.setVisible(bool(spots))

    def set_band(self, span: tuple[float, float] | None) -> None:
        """Mark the part that is about to be zoomed to."""
        self._band.setVisible(span is not None)
        if span is not None:
            self._band.setRegion(span)


def _move(line: pyqtgraph.InfiniteLine, x: float | None) -> None:
    line.setVisible(x is not None)
    if x is not None:
        line.setPos(x)
