"""A line around what the keyboard has come to, where the widget draws none of its own."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QFocusEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget

from app.theme.theme import Theme, theme_for

_POINTER_REASONS = (Qt.FocusReason.MouseFocusReason, Qt.FocusReason.PopupFocusReason)
WIDTH = 2


class FocusRing(QWidget):
    """Lies over `target`, and is seen while that has the focus by keys: whoever clicked knows where."""

    def __init__(self, target: QWidget) -> None:
        super().__init__(target)
        self._target, self._theme = target, theme_for("light")
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.hide()
        target.installEventFilter(self)

    def set_theme(self, theme: Theme) -> None:
        """Take another colour."""
        self._theme = theme
        self.update()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Come, go and stretch with the target."""
        if watched is not self._target:
            return False
        if isinstance(event, QFocusEvent):
            self.setVisible(event.gotFocus() and event.reason() not in _POINTER_REASONS)
            self.raise_()
        if event.type() in (QEvent.Type.Resize, QEvent.Type.FocusIn):
            self.setGeometry(self._target.rect())
        return False

    def paintEvent(self, event: QPaintEvent) -> None:
        """The line, just inside the edge."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        width = WIDTH * self._theme.scale
        painter.setPen(QPen(self._theme.color("accent"), width))
        inset = round(width)
        painter.drawRoundedRect(self.rect().adjusted(inset, inset, -inset, -inset), 4, 4)
