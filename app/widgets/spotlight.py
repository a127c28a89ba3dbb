"""A spotlight: what lies around one place is dimmed, and the place has a ring."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QObject, QRect, QRectF, Qt
from PySide6.QtGui import QPainter, QPainterPath, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget

from app.theme.theme import Theme

DIM_OPACITY = 0.3
"""Share of the ground over what is not lit: words there stay readable."""
GAP, RING, CORNER_RADIUS = 4, 3, 7
"""Pixels at 100 %: from the place to the ring, the ring's width, its corners."""


class SpotlightOverlay(QWidget):
    """Lies over `target` and lets everything through; `target_rect()` tells where the light falls, in the target's pixels."""

    def __init__(self, target: QWidget, theme: Theme) -> None:
        super().__init__(target)
        self._target, self._theme = target, theme
        self.target_rect: Callable[[], QRect] = QRect
        self.setObjectName("spotlight")
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setGeometry(target.rect())
        target.installEventFilter(self)

    def set_theme(self, theme: Theme) -> None:
        """Take other colours and sizes."""
        self._theme = theme
        self.update()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Stretch with the target, and stay on top of what comes into it."""
        if watched is self._target and event.type() == QEvent.Type.Resize:
            self.setGeometry(self._target.rect())
        if watched is self._target and event.type() == QEvent.Type.ChildAdded:
            self.raise_()
        return False

    def paintEvent(self, event: QPaintEvent) -> None:
        """Dim everything but the place; nothing where there is none."""
        target = self.target_rect()
        if target.isEmpty():
            return
        theme, gap = self._theme, self._theme.px(GAP)
        hole = QRectF(target.adjusted(-gap, -gap, gap, gap))
        path = QPainterPath()
        path.addRoundedRect(hole, theme.px(CORNER_RADIUS), theme.px(CORNER_RADIUS))
        around = QPainterPath()
        around.addRect(QRectF(self.rect()))
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.fillPath(around.subtracted(path), theme.color("window", DIM_OPACITY))
        painter.setPen(QPen(theme.color("best"), theme.px(RING)))
        painter.drawPath(path)
