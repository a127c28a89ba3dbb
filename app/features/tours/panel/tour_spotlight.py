"""Spotlight ring around a tour's target. It covers the window's body and ignores clicks."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QObject, QPoint, QRect, QRectF, Qt, QTimer, Slot
from PySide6.QtGui import QPainter, QPainterPath, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget
from shiboken6 import isValid

from decodescope.app.theme.themed import Themed
from decodescope.app.widgets.screen import visible_rect

MARGIN, WIDTH, CORNER_RADIUS = 5, 3, 9
"""Pixels at 100 %: margin around the target, ring width, corner radius."""
DIM_OPACITY = {False: 0.08, True: 0.24}
"""Opacity of the dimming, on light and on dark themes."""
_LAYOUT_EVENTS = {
    QEvent.Type.Resize,
    QEvent.Type.Move,
    QEvent.Type.Show,
    QEvent.Type.Hide,
    QEvent.Type.LayoutRequest,
    QEvent.Type.Paint,
}


FindTarget = Callable[[], tuple[QWidget, QRect] | None]
"""Finds the target: a widget and a rectangle in its coordinates."""


class TourSpotlight(Themed, QWidget):
    """Ring that follows its target when it is scrolled, moved or repainted."""

    def __init__(self, parent_window: QWidget, undimmed: QWidget) -> None:
        """Cover the widget `parent_window`; the widget `undimmed` is not dimmed."""
        super().__init__(parent_window)
        self._undimmed = undimmed
        self.setObjectName("tourSpotlight")
        self._body = parent_window
        self._find: FindTarget | None = None
        self._watched: list[QObject] = []
        self.target = QRect()
        """Rectangle of the target in the coordinates of `parent_window`; empty while there is no target."""
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setAttribute(Qt.WidgetAttribute.WA_NoSystemBackground)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._update_timer = QTimer(self)
        self._update_timer.setSingleShot(True)
        self._update_timer.timeout.connect(self.update_target)
        self.hide()

    def point_at(self, find: FindTarget | None) -> None:
        """Highlight the target returned by `find`; None hides the ring."""
        self._find = find
        self.update_target()

    @Slot()
    def update_target(self) -> None:
        """Update the position of the ring."""
        found = self._find() if self._find is not None else None
        self._watch(found[0] if found else None)
        target = visible_rect(*found, self._body) if found else QRect()
        self.setGeometry(self._body.rect())
        if target != self.target:
            self.target = target
            self.update()
        self.setVisible(self._find is not None and not target.isEmpty())
        self.raise_()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Update the ring after the target or one of its ancestors has changed."""
        if event.type() in _LAYOUT_EVENTS:
            self._update_timer.start(0)
        return False

    def paintEvent(self, event: QPaintEvent) -> None:
        """Dim everything but the target, and paint the ring."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        theme, margin = self._theme, self._theme.px(MARGIN)
        hole = QRectF(self.target).adjusted(-margin, -margin, margin, margin).intersected(QRectF(self.rect()))
        shade, ring = QPainterPath(), QPainterPath()
        shade.addRect(QRectF(self.rect()))
        ring.addRoundedRect(hole, theme.px(CORNER_RADIUS), theme.px(CORNER_RADIUS))
        spared = QRect(self._undimmed.mapTo(self._body, QPoint(0, 0)), self._undimmed.size())
        ring.addRect(QRectF(spared))
        black = theme.color("text" if not theme.is_dark else "on_accent", DIM_OPACITY[theme.is_dark])
        painter.fillPath(shade.subtracted(ring), black)
        painter.setPen(QPen(theme.color("accent"), theme.px(WIDTH)))
        painter.drawRoundedRect(hole, theme.px(CORNER_RADIUS), theme.px(CORNER_RADIUS))

    def _watch(self, widget: QWidget | None) -> None:
        """Watch the target and its ancestors for changes."""
        chain: list[QObject] = []
        above = widget
        while above is not None and above is not self._body.window():
            chain.append(above)
            above = above.parentWidget()
        chain.append(self._body)
        if chain != self._watched:
            for each in filter(isValid, self._watched):  # a parameter row is deleted with its strategy
                each.removeEventFilter(self)
            for each in chain:
                each.installEventFilter(self)
            self._watched = chain
