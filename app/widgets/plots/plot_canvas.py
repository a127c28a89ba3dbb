"""A plot drawn by pyqtgraph, saved as a picture or a table. Imports pyqtgraph: only drawn plots may."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyqtgraph
from PySide6.QtCore import QEvent, QObject, QPoint, QPointF, QRectF, Qt, Signal, Slot
from PySide6.QtGui import QColor, QFontMetricsF, QMouseEvent, QWheelEvent
from PySide6.QtWidgets import QGraphicsView, QWidget

from decodescope.app.state.text_formats import to_csv
from decodescope.app.theme.theme import Theme
from decodescope.app.theme.themed import Themed
from decodescope.app.widgets.plots.plot_axes import TickAxis
from decodescope.app.widgets.plots.plot_descriptions import plot_table
from decodescope.app.widgets.plots.plot_items import PlotLabels, PlotMarks, PlotSeries
from decodescope.app.widgets.plots.plot_spec import PlotSpec
from decodescope.app.widgets.widget_pictures import SUFFIXES, save_picture

# Disable pyqtgraph's cleanup at exit: it walks all objects after Qt has freed its own.
pyqtgraph.setConfigOption("exitCleanup", False)

_MAX_BAR_PITCH = 44
"""Maximum distance between bars in pixels at 100 %."""
_MIN_VISIBLE_SPAN = 4.0
"""Minimum number of visible positions when zoomed in."""


class PlotCanvas(Themed, pyqtgraph.GraphicsView):
    """Axes, plotted items and the visible range. Handles no input itself."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent, background=None)  # type: ignore[call-arg]  # QWidget's, for mypy
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
        """The drawn plot."""
        return self._figure

    def restyle(self, theme: Theme) -> None:
        self.setBackgroundBrush(theme.color("window"))
        for axis in (self._left, self._bottom):
            axis.set_theme(theme)
        self.marks.set_theme(theme)
        self.show_figure(self._figure)

    def show_figure(self, figure: PlotSpec) -> None:
        """Draw a plot; the zoom is kept."""
        self._figure = figure
        self.series.show_figure(figure, self._theme)
        self._labels.show_figure(figure, self._theme)
        self._fit()

    @Slot()
    def _on_resized(self) -> None:
        self._fit()

    # Visible range

    def _fit(self) -> None:
        """Update the axes and the visible range, with room above the curves for their names."""
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
        """(left, right) of the x axis without zoom."""
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
        """Whether only a part is visible."""
        return self._zoom is not None

    @property
    def visible_range(self) -> tuple[float, float]:
        """(left, right) of the visible range."""
        low, high = self.box.viewRange()[0]
        return low, high

    def zoom_to(self, low: float, high: float) -> None:
        """Show a range of the x axis, at least `_MIN_VISIBLE_SPAN` wide; the full range resets the zoom."""
        left, right = self.full_range
        span = max(high - low, min(_MIN_VISIBLE_SPAN, right - left))
        low = min(max(low, left), right - span)
        self._zoom = (low, low + span) if span < (right - left) * (1 - 1e-9) else None
        self._fit()

    def reset_zoom(self) -> None:
        """Show the full range."""
        self._zoom = None
        self._fit()

    # Coordinates

    def area(self) -> QRectF:
        """Return the plot area in pixels."""
        return self.box.sceneBoundingRect()

    def pixel(self, x: float, y: float) -> QPoint:
        """Return the pixel of a value."""
        return self.mapFromScene(self.box.mapViewToScene(QPointF(x, y)))

    def position_at(self, pixel: QPointF) -> float:
        """Return the position at a pixel: an x value, or a bar's index, or -1 without a bar."""
        value, figure = self.box.mapSceneToView(QPointF(pixel)), self._figure
        if not figure.count:
            low, high = self.visible_range
            return float(min(max(value.x(), low), high))
        index = round(figure.count - 1 - value.y()) if figure.is_horizontal else round(value.x())
        return float(index) if 0 <= index < figure.count else -1.0


_PNG_SCALE = 2
"""Scale of PNG files, for printing."""


def save_plot(canvas: PlotCanvas, path: Path, background: QColor) -> None:
    """Write the plot as svg, png or csv, by the suffix of `path`. Raises OSError."""
    if path.suffix.lower() in SUFFIXES:
        save_picture(canvas, path, background, _PNG_SCALE)
        return
    path.write_text(to_csv(plot_table(canvas.figure)), encoding="utf-8", errors="replace", newline="")


_CURSOR_REACH, _DRAG_DISTANCE = 6, 4
"""Pixels: distance within which the cursor can be grabbed; distance after which a press is a drag."""
_WHEEL_NOTCH, _ZOOM_STEP = 120, 1.25
"""Wheel units per notch, and the zoom factor per notch."""


class PlotInput(QObject):
    """Filters all mouse events of the canvas, so that pyqtgraph's own mouse handling and menus are disabled."""

    hovered = Signal(float)
    """The position under the mouse, -1 for none."""
    picked = Signal(int)
    """The position that the user chose."""
    zoomChanged = Signal()

    def __init__(self, canvas: PlotCanvas) -> None:
        super().__init__(canvas)
        self._canvas = canvas
        self._pressed: QPointF | None = None
        self._is_dragging_cursor = self._is_drawing_band = False
        self.cursor: float | None = None
        """The position of the cursor; None if the plot has no cursor."""
        self.can_zoom = True
        canvas.viewport().setMouseTracking(True)
        canvas.viewport().installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Handle the mouse events and stop those that are used here."""
        match event.type():
            case QEvent.Type.MouseMove if isinstance(event, QMouseEvent):
                self._move(event)
            case QEvent.Type.MouseButtonPress if isinstance(event, QMouseEvent):
                return self._press(event)
            case QEvent.Type.MouseButtonRelease if isinstance(event, QMouseEvent):
                self._release(event)
            case QEvent.Type.MouseButtonDblClick:
                self._canvas.reset_zoom()
                self.zoomChanged.emit()
            case QEvent.Type.Wheel if isinstance(event, QWheelEvent):
                return self._wheel(event)
            case QEvent.Type.Leave:
                self.hovered.emit(-1.0)
            case _:
                return False
        return True

    def _press(self, event: QMouseEvent) -> bool:
        if event.button() != Qt.MouseButton.LeftButton:
            return False
        self._pressed = event.position()
        at = self._canvas.pixel(self.cursor, 0).x() if self.cursor is not None else None
        self._is_dragging_cursor = at is not None and abs(at - event.position().x()) <= _CURSOR_REACH
        event.ignore()  # leave the event to the panel, which takes the focus
        return False

    def _move(self, event: QMouseEvent) -> None:
        position = self._canvas.position_at(event.position())
        self.hovered.emit(position)
        if self._pressed is None or not event.buttons() & Qt.MouseButton.LeftButton:
            return
        if self._is_dragging_cursor:
            self._pick(position)
        elif self.can_zoom and abs(event.position().x() - self._pressed.x()) > _DRAG_DISTANCE:
            self._is_drawing_band = True
            self._canvas.marks.set_band(self._span(event.position()))

    def _span(self, end: QPointF) -> tuple[float, float]:
        assert self._pressed is not None
        one, other = self._canvas.position_at(self._pressed), self._canvas.position_at(end)
        return min(one, other), max(one, other)

    def _release(self, event: QMouseEvent) -> None:
        if self._pressed is None:
            return
        if self._is_drawing_band:
            self._canvas.zoom_to(*self._span(event.position()))
            self.zoomChanged.emit()
        elif not self._is_dragging_cursor:
            self._pick(self._canvas.position_at(event.position()))
        self._canvas.marks.set_band(None)
        self._pressed, self._is_dragging_cursor, self._is_drawing_band = None, False, False

    def _pick(self, position: float) -> None:
        if position >= 0:
            self.picked.emit(round(position))

    def _wheel(self, event: QWheelEvent) -> bool:
        """Zoom around the position under the mouse. Scroll the page once everything is visible."""
        notches = event.angleDelta().y() / _WHEEL_NOTCH
        if not self.can_zoom or not notches or (notches < 0 and not self._canvas.is_zoomed):
            return _pass_to_page(event)
        self.zoom(_ZOOM_STEP**-notches, self._canvas.position_at(event.position()))
        event.accept()
        return True

    def zoom(self, factor: float, around: float) -> None:
        """Show `factor` times as much of the x axis, keeping `around` in place."""
        low, high = self._canvas.visible_range
        self._canvas.zoom_to(around - (around - low) * factor, around + (high - around) * factor)
        self.zoomChanged.emit()


def _pass_to_page(event: QWheelEvent) -> bool:
    """Pass the event to the page below, which the graphics view would not do."""
    event.ignore()
    return True


def create_canvas(parent: QWidget, theme: Theme) -> tuple[PlotCanvas, PlotInput]:
    """Return a new canvas that fills `parent` below its other children, and its mouse handler."""
    canvas = PlotCanvas(theme, parent)
    canvas.setGeometry(parent.rect())
    canvas.lower()
    canvas.show()
    return canvas, PlotInput(canvas)
