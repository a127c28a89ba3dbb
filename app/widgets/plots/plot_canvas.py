"""A figure drawn by pyqtgraph. Imports pyqtgraph: only a plot that is drawn may."""

from __future__ import annotations

from dataclasses import replace

import pyqtgraph
from PySide6.QtCore import QPoint, QPointF, QRectF, Qt, Slot
from PySide6.QtGui import QFontMetricsF
from PySide6.QtWidgets import QGraphicsView, QWidget

from app.theme.theme import Theme
from app.widgets.plots.plot_axes import TickAxis
from app.widgets.plots.plot_items import PlotLabels
from app.widgets.plots.plot_marks import PlotMarks
from app.widgets.plots.plot_series import PlotSeries
from app.widgets.plots.plot_spec import PlotSpec

# Its clean-up at the end walks through every object there is, and Qt has let go of everything by then.
pyqtgraph.setConfigOption("exitCleanup", False)

_MAX_BAR_PITCH = 44
"""Pixels at 100 % from bar to bar at most."""
_MIN_VISIBLE_SPAN = 4.0
"""Places that are seen at least, however far one zooms in."""


class PlotCanvas(pyqtgraph.GraphicsView):
    """Axes, what is drawn between them, and the part of it that is seen; it takes no input itself."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent, background=None)
        self._theme, self._figure = theme, PlotSpec()
        self._zoom: tuple[float, float] | None = None
        self.setCacheMode(QGraphicsView.CacheModeFlag.CacheNone)
        self.setAntialiasing(True)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.box = pyqtgraph.ViewBox(enableMouse=False, enableMenu=False)
        self._left, self._bottom = TickAxis("left"), TickAxis("bottom")
        self.series, self.marks = PlotSeries(self.box, theme), PlotMarks(self.box, theme)
        self._lay_out()
        self.set_theme(theme)

    def _lay_out(self) -> None:
        for axis, row, column in ((self._left, 0, 0), (self._bottom, 1, 1)):
            axis.linkToView(self.box)
            self.centralLayout.addItem(axis, row, column)
        self.centralLayout.addItem(self.box, 0, 1)
        self._labels = PlotLabels(self.box, self._theme)
        self.centralLayout.setSpacing(0)
        self.box.disableAutoRange()
        self.box.sigResized.connect(self._on_resized)

    @property
    def figure(self) -> PlotSpec:
        """What is drawn."""
        return self._figure

    def set_theme(self, theme: Theme) -> None:
        """Draw everything in other colours and sizes."""
        self._theme = theme
        self.setBackgroundBrush(theme.color("window"))
        for axis in (self._left, self._bottom):
            axis.set_theme(theme)
        self.marks.set_theme(theme)
        self.show_figure(self._figure)

    def show_figure(self, figure: PlotSpec) -> None:
        """Draw this; a zoom stays as it is."""
        self._figure = figure
        self.series.show_figure(figure, self._theme)
        self._labels.show_figure(figure, self._theme)
        self._fit()

    @Slot()
    def _on_resized(self) -> None:
        self._fit()

    # What is seen

    def _fit(self) -> None:
        """Axes, and the part of them that is seen; the room above the curves is for their names."""
        above = self._theme.px(16 if any(line.name for line in self._figure.lines) else 7)
        self.centralLayout.setContentsMargins(self._theme.px(2), above, self._theme.px(14), 0)
        figure, (bottom, top) = self._figure, self._y_range()
        upright = replace(figure.y, labels=figure.y.labels[::-1]) if figure.is_horizontal else figure.y
        self._bottom.set_axis(figure.x, figure.height if figure.is_horizontal else figure.end, False)
        left, right = self.full_range
        self._left.set_axis(upright, figure.height, not figure.is_horizontal)
        if self._zoom is not None:
            low, high = self._zoom
            left, right = max(left, low), min(right, high)
        self.box.setRange(xRange=(left, right), yRange=(bottom, top), padding=0, disableAutoRange=False)
        self.series.set_visible_values(self.visible_range if self._zoom is not None else None)
        self._labels.reposition()

    @property
    def full_range(self) -> tuple[float, float]:
        """(left, right) of the x axis when nothing is zoomed."""
        figure, width, theme = self._figure, max(self.box.width(), 1.0), self._theme
        if figure.is_horizontal:
            metrics = QFontMetricsF(theme.font(11, tabular=True))
            words = max((metrics.horizontalAdvance(text) for bars in figure.bars for text in bars.figures), default=0)
            return 0.0, figure.height * width / max(width - words - theme.px(8), width * 0.2)
        if figure.count:
            return -0.5, max(
                float(figure.count), width / max(theme.px(_MAX_BAR_PITCH), self._bottom.min_tick_distance)
            ) - 0.5
        if figure.x.labels:
            return -0.5, len(figure.x.labels) - 0.5
        return 0.0, figure.end

    def _y_range(self) -> tuple[float, float]:
        figure = self._figure
        return (-0.5, figure.count - 0.5) if figure.is_horizontal else (figure.lowest, figure.height)

    @property
    def is_zoomed(self) -> bool:
        """Whether only a part is seen."""
        return self._zoom is not None

    @property
    def visible_range(self) -> tuple[float, float]:
        """(left, right) of what is seen."""
        low, high = self.box.viewRange()[0]
        return low, high

    def zoom_to(self, low: float, high: float) -> None:
        """See this part of the x axis; all of it shows the whole again, and nothing is enlarged without end."""
        left, right = self.full_range
        span = max(high - low, min(_MIN_VISIBLE_SPAN, right - left))
        low = min(max(low, left), right - span)
        self._zoom = (low, low + span) if span < (right - left) * (1 - 1e-9) else None
        self._fit()

    def reset_zoom(self) -> None:
        """See everything."""
        self._zoom = None
        self._fit()

    # Places

    def area(self) -> QRectF:
        """Where the curves are, in pixels."""
        return self.box.sceneBoundingRect()

    def pixel(self, x: float, y: float) -> QPoint:
        """Where a value is."""
        return self.mapFromScene(self.box.mapViewToScene(QPointF(x, y)))

    def position_at(self, pixel: QPointF) -> float:
        """The place under a pixel: of the x axis, or the bar's number; -1 where there is no bar."""
        value, figure = self.box.mapSceneToView(QPointF(pixel)), self._figure
        if not figure.count:
            low, high = self.visible_range
            return float(min(max(value.x(), low), high))
        index = round(figure.count - 1 - value.y()) if figure.is_horizontal else round(value.x())
        return float(index) if 0 <= index < figure.count else -1.0
