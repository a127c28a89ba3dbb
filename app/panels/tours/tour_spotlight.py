"""A calm ring around what is spoken of. It lies over the body of the window and takes no clicks."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QObject, QPoint, QRect, QRectF, Qt, QTimer, Slot
from PySide6.QtGui import QPainter, QPainterPath, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget
from shiboken6 import isValid

from app.theme.theme import Theme, theme_for
from app.widgets.screen import visible_rect

MARGIN, WIDTH, CORNER_RADIUS = 5, 3, 9
"""Pixels at 100 %: between the target and the ring, of the ring, of its corners."""
DIM_OPACITY = {False: 0.08, True: 0.24}
"""How much everything else is dimmed, on light and on dark ground."""
_LAYOUT_EVENTS = {
    QEvent.Type.Resize,
    QEvent.Type.Move,
    QEvent.Type.Show,
    QEvent.Type.Hide,
    QEvent.Type.LayoutRequest,
    QEvent.Type.Paint,
}


FindTarget = Callable[[], tuple[QWidget, QRect] | None]
"""A widget, and the stretch of it that is meant, in its own pixels."""


class TourSpotlight(QWidget):
    """Follows its target wherever that is scrolled, moved or drawn anew."""

    def __init__(self, over: QWidget, undimmed: QWidget) -> None:
        """Over that widget; what is `undimmed` is not dimmed."""
        super().__init__(over)
        self._undimmed = undimmed
        self.setObjectName("tourSpotlight")
        self._body, self._theme = over, theme_for("light")
        self._find: FindTarget | None = None
        self._watched: list[QObject] = []
        self.target = QRect()
        """Where the ring is drawn around, in the pixels of what it lies over; empty while nothing is pointed at."""
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setAttribute(Qt.WidgetAttribute.WA_NoSystemBackground)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._update_timer = QTimer(self)
        self._update_timer.setSingleShot(True)
        self._update_timer.timeout.connect(self.update_target)
        self.hide()

    def set_theme(self, theme: Theme) -> None:
        """Colours and sizes."""
        self._theme = theme
        self.update()

    def point_at(self, find: FindTarget | None) -> None:
        """Stand around what `find` gives from now on; None: around nothing."""
        self._find = find
        self.update_target()

    @Slot()
    def update_target(self) -> None:
        """Stand where the target is now."""
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
        """The target, or something that it stands in, has changed: look again once that is done."""
        if event.type() in _LAYOUT_EVENTS:
            self._update_timer.start(0)
        return False

    def paintEvent(self, event: QPaintEvent) -> None:
        """All but the target a little dimmed, and the ring."""
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
        """Hear of whatever moves the target: of itself, and of all that it stands in."""
        chain: list[QObject] = []
        above = widget
        while above is not None and above is not self._body.window():
            chain.append(above)
            above = above.parentWidget()
        chain.append(self._body)
        if chain != self._watched:
            for each in filter(isValid, self._watched):  # a row of settings goes with its strategy
                each.removeEventFilter(self)
            for each in chain:
                each.installEventFilter(self)
            self._watched = chain
