"""A plot axis with the theme's colours and the program's number formats. Imports pyqtgraph: only drawn plots may."""

from __future__ import annotations

import math

import pyqtgraph
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QFont, QFontMetricsF, QPen

from decodescope.app.theme.theme import Theme
from decodescope.app.widgets.plots.plot_spec import PLAIN, PlotAxis


def round_step(span: float, max_steps: int, integers_only: bool = False) -> float:
    """Return the smallest of 1, 2 or 5 times a power of ten that divides `span` into at most `max_steps` parts."""
    min_step = span / max(max_steps, 1)
    power = 10 ** math.floor(math.log10(min_step)) if min_step > 0 else 1
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= min_step * (1 - 1e-9))
    return max(1.0, step) if integers_only else step


def tick_values(axis: PlotAxis, low: float, high: float, top: float, max_ticks: int) -> list[float]:
    """Return at most `max_ticks` + 1 tick values between `low` and `high`. `top`: the axis' end, which determines the
    unit.
    """
    if axis.labels:
        every = max(1, math.ceil((high - low) / max(max_ticks, 1)))
        return [float(n) for n in range(0, len(axis.labels), every) if low <= n <= high]
    size, _ = axis.unit(top)
    step = round_step((high - low) / size, max_ticks, axis.integers_only) * size
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [n * step for n in range(first, last + 1)]


def tick_text(axis: PlotAxis, value: float, top: float) -> str:
    """Return the label of a tick."""
    if axis.labels:
        position = round(value)
        return axis.labels[position] if 0 <= position < len(axis.labels) else ""
    shown = value / axis.unit(top)[0]
    return axis.format_value(value) if axis.units == PLAIN else f"{shown:g}"


_LINES_PER_TICK = 2.0
"""Minimum distance between ticks, in line heights."""
_FONT_SIZE = 11
_MAX_TICKS = 8
"""Maximum number of ticks on a numeric axis."""
_EDGE_MARGIN = 3
"""Extra pixels: pyqtgraph omits labels too close to the edge."""


class TickAxis(pyqtgraph.AxisItem):
    """An axis with one level of round ticks. The vertical axis has grid lines and no axis line."""

    def __init__(self, side: str) -> None:
        super().__init__(side)
        self._axis, self._top = PlotAxis(), 1.0
        self.min_tick_distance = 40.0
        """Minimum distance between ticks in pixels."""
        self._is_upright = side == "left"
        self._font_metrics = QFontMetricsF(QFont())
        self.setStyle(tickLength=0, tickTextOffset=4, hideOverlappingLabels=16)
        self.setZValue(-1000)

    def set_theme(self, theme: Theme) -> None:
        """Apply the colours and sizes of `theme`."""
        font = theme.font(_FONT_SIZE, tabular=True)
        metrics = QFontMetricsF(font)
        self.setTickFont(font)
        self.setTextPen(QPen(theme.color("muted")))
        self.setPen(QPen(Qt.PenStyle.NoPen) if self._is_upright else QPen(theme.color("line"), 1))
        self.setTickPen(QPen(theme.color("line"), 1))
        self.setStyle(tickTextHeight=round(metrics.height()), tickTextOffset=theme.px(4))
        self._font_metrics = metrics
        self._update_size()

    def set_axis(self, axis: PlotAxis, top: float, grid: bool) -> None:
        """Show ticks for `axis`, which ends at `top`."""
        if (axis, top) == (self._axis, self._top) and bool(self.grid) == grid:
            return
        self._axis, self._top = axis, top
        self.setGrid(255 if grid else False)
        self._update_size()

    def _update_size(self) -> None:
        """Compute the minimum tick distance and redraw."""
        metrics = self._font_metrics
        longest = max((metrics.horizontalAdvance(text) for text in self._widest_texts()), default=0.0)
        self.min_tick_distance = (
            metrics.height() * _LINES_PER_TICK if self._is_upright else longest + metrics.averageCharWidth()
        )
        if self._axis.labels and self._is_upright:
            self.min_tick_distance = metrics.height()
        self.setVisible(self._axis.is_visible)
        if self._is_upright:
            self.setWidth(longest + self.style["tickTextOffset"][0] + _EDGE_MARGIN if self._axis.is_visible else 0)
        else:
            self.setHeight(metrics.height() + self.style["tickTextOffset"][1] + 1 if self._axis.is_visible else 0)
        self.picture = None
        self.update()

    def _widest_texts(self) -> list[str]:
        """Return the widest labels that can occur."""
        if self._axis.labels:
            return list(self._axis.labels)
        steps = (tick_values(self._axis, 0, self._top, self._top, max_ticks) for max_ticks in (3, 5, _MAX_TICKS))
        return [tick_text(self._axis, value, self._top) for values in steps for value in values]

    def boundingRect(self) -> QRectF:
        """Extend the bounds, because labels at the ends reach beyond the axis."""
        over = self._font_metrics.height()
        return super().boundingRect().adjusted(-over, -over, over, over)

    def tickValues(self, minVal: float, maxVal: float, size: float) -> list[tuple[float, list[float]]]:
        """Return one level of ticks."""
        max_ticks = max(1, int(size / self.min_tick_distance))
        if not self._axis.labels:
            max_ticks = min(_MAX_TICKS, max_ticks)
        values = tick_values(self._axis, minVal, maxVal, self._top, max_ticks)
        return [(1.0, values)]

    def tickStrings(self, values: list[float], scale: float, spacing: float) -> list[str]:
        """Return the tick labels in the program's formats."""
        return [tick_text(self._axis, value, self._top) for value in values]
