"""The mouse over a plot: go to a place, drag the cursor, zoom by wheel or by a band, see all again."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, QPointF, Qt, Signal
from PySide6.QtGui import QMouseEvent, QWheelEvent
from PySide6.QtWidgets import QWidget

from app.theme.theme import Theme
from app.widgets.plots.plot_canvas import PlotCanvas

_GRASP, _DRAG = 6, 4
"""Pixels: how near to the cursor one can take hold of it; how far a press has to move to be a drag."""
_A_NOTCH, _STEP = 120, 1.25
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
        self._holds_cursor = self._draws_band = False
        self.cursor: float | None = None
        """The place the reader stands at; None where the plot has no cursor."""
        self.zooms = True
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
                self._canvas.show_whole()
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
        self._holds_cursor = at is not None and abs(at - event.position().x()) <= _GRASP
        event.ignore()  # so that the panel takes the focus
        return False

    def _move(self, event: QMouseEvent) -> None:
        place = self._canvas.place_at(event.position())
        self.hovered.emit(place)
        if self._pressed is None or not event.buttons() & Qt.MouseButton.LeftButton:
            return
        if self._holds_cursor:
            self._pick(place)
        elif self.zooms and abs(event.position().x() - self._pressed.x()) > _DRAG:
            self._draws_band = True
            self._canvas.marks.set_band(self._span(event.position()))

    def _span(self, end: QPointF) -> tuple[float, float]:
        assert self._pressed is not None
        one, other = self._canvas.place_at(self._pressed), self._canvas.place_at(end)
        return min(one, other), max(one, other)

    def _release(self, event: QMouseEvent) -> None:
        if self._pressed is None:
            return
        if self._draws_band:
            self._canvas.zoom_to(*self._span(event.position()))
            self.zoomChanged.emit()
        elif not self._holds_cursor:
            self._pick(self._canvas.place_at(event.position()))
        self._canvas.marks.set_band(None)
        self._pressed, self._holds_cursor, self._draws_band = None, False, False

    def _pick(self, place: float) -> None:
        if place >= 0:
            self.picked.emit(round(place))

    def _wheel(self, event: QWheelEvent) -> bool:
        """Enlarge around the place under the mouse; once all is seen, the page scrolls on."""
        notches = event.angleDelta().y() / _A_NOTCH
        if not self.zooms or not notches or (notches < 0 and not self._canvas.is_zoomed):
            return _passed_on(event)
        self.zoom(_STEP**-notches, self._canvas.place_at(event.position()))
        event.accept()
        return True

    def zoom(self, factor: float, around: float) -> None:
        """See `factor` times as much of the x axis, `around` staying where it is."""
        low, high = self._canvas.seen
        self._canvas.zoom_to(around - (around - low) * factor, around + (high - around) * factor)
        self.zoomChanged.emit()


def _passed_on(event: QWheelEvent) -> bool:
    """Let the page below have it: the view itself would swallow it."""
    event.ignore()
    return True


def drawing(over: QWidget, theme: Theme) -> tuple[PlotCanvas, PlotInput]:
    """A new canvas that fills `over`, below whatever lies there, and what takes its mouse."""
    canvas = PlotCanvas(theme, over)
    canvas.setGeometry(over.rect())
    canvas.lower()
    canvas.show()
    return canvas, PlotInput(canvas)
