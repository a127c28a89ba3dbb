"""The mouse over a plot: go to a place, drag the cursor, zoom by wheel or by a band, see all again."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, QPointF, Qt, Signal
from PySide6.QtGui import QMouseEvent, QWheelEvent
from PySide6.QtWidgets import QWidget

from app.theme.theme import Theme
from app.widgets.plots.plot_canvas import PlotCanvas

_CURSOR_REACH, _DRAG_DISTANCE = 6, 4
"""Pixels: how near to the cursor one can take hold of it; how far a press has to move to be a drag."""
_WHEEL_NOTCH, _ZOOM_STEP = 120, 1.25
"""A wheel's notch in eighths of a degree, and how much it enlarges."""


class PlotInput(QObject):
    """Takes all of the canvas' mouse events, so that pyqtgraph's own ways with them and its menus stay out of it."""

    hovered = Signal(float)
    """The place under the mouse, -1 for none."""
    picked = Signal(int)
    """The place that was gone to."""
    zoomChanged = Signal()

    def __init__(self, canvas: PlotCanvas) -> None:
        super().__init__(canvas)
        self._canvas = canvas
        self._pressed: QPointF | None = None
        self._is_dragging_cursor = self._is_drawing_band = False
        self.cursor: float | None = None
        """The place the reader stands at; None where the plot has no cursor."""
        self.can_zoom = True
        canvas.viewport().setMouseTracking(True)
        canvas.viewport().installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Nothing of the mouse goes further but what is not wanted here."""
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
        event.ignore()  # so that the panel takes the focus
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
        """Enlarge around the place under the mouse; once all is seen, the page scrolls on."""
        notches = event.angleDelta().y() / _WHEEL_NOTCH
        if not self.can_zoom or not notches or (notches < 0 and not self._canvas.is_zoomed):
            return _pass_to_page(event)
        self.zoom(_ZOOM_STEP**-notches, self._canvas.position_at(event.position()))
        event.accept()
        return True

    def zoom(self, factor: float, around: float) -> None:
        """See `factor` times as much of the x axis, `around` staying where it is."""
        low, high = self._canvas.visible_range
        self._canvas.zoom_to(around - (around - low) * factor, around + (high - around) * factor)
        self.zoomChanged.emit()


def _pass_to_page(event: QWheelEvent) -> bool:
    """Let the page below have it: the view itself would swallow it."""
    event.ignore()
    return True


def create_canvas(parent: QWidget, theme: Theme) -> tuple[PlotCanvas, PlotInput]:
    """A new canvas that fills `parent`, below whatever lies there, and what takes its mouse."""
    canvas = PlotCanvas(theme, parent)
    canvas.setGeometry(parent.rect())
    canvas.lower()
    canvas.show()
    return canvas, PlotInput(canvas)
