"""What lies over a plot: the words for the place under the mouse, the way back from a zoom, the frame of the focus."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, QPoint, QRectF, Qt
from PySide6.QtGui import QFocusEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QToolButton, QWidget

from app.theme.theme import Theme, theme_for
from app.widgets.plain_text import PlainLabel
from resources.language import tr

_POINTER_DISTANCE = 14
"""Pixels from the mouse to the words."""
_KEYBOARD_REASONS = (Qt.FocusReason.TabFocusReason, Qt.FocusReason.BacktabFocusReason)


class HoverLabel(PlainLabel):
    """A small label beside the mouse, always within the plot."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self._ground = parent
        self.hide()

    def set_theme(self, theme: Theme) -> None:
        """Take other colours and sizes."""
        self.setStyleSheet(
            f"background: {theme.panel}; color: {theme.text}; border: 1px solid {theme.line}; border-radius: 4px;"
            f"padding: {theme.px(3)}px {theme.px(6)}px; font-size: {theme.px(12)}px;"
        )

    def show_text(self, text: str, mouse: QPoint) -> None:
        """Say this beside the mouse: at its right where there is room, else at its left."""
        self.setVisible(bool(text))
        if not text:
            return
        self.setText(text)
        self.adjustSize()
        room = self._ground.rect()
        left = mouse.x() + _POINTER_DISTANCE
        if left + self.width() > room.right():
            left = mouse.x() - _POINTER_DISTANCE - self.width()
        top = min(mouse.y() + _POINTER_DISTANCE, room.bottom() - self.height())
        self.move(max(0, left), max(0, top))
        self.raise_()


class ResetZoomButton(QToolButton):
    """“Show all”, in the upper right corner while only a part is seen."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setText(tr("Show all"))
        self._ground, self._edge = parent, 0
        self.setToolTip(tr("See the whole plot again (double click, or 0)"))
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.hide()

    def set_theme(self, theme: Theme) -> None:
        """Take other sizes."""
        self._edge = theme.px(10)
        self.setFont(theme.font(11))

    def set_shown(self, on: bool) -> None:
        """Stand there, or go."""
        self.setVisible(on)
        self.adjustSize()
        self.move(self._ground.width() - self.width() - self._edge, 0)
        self.raise_()


class FocusFrame(QWidget):
    """A frame around its parent while that has the focus by keyboard."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme_for("light")
        self._ground = parent
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.hide()
        parent.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Follow the parent's size and its focus."""
        match event.type():
            case QEvent.Type.Resize:
                self.setGeometry(self._ground.rect())
            case QEvent.Type.FocusIn if isinstance(event, QFocusEvent):
                self.setVisible(event.reason() in _KEYBOARD_REASONS)
            case QEvent.Type.FocusOut:
                self.hide()
        return False

    def set_theme(self, theme: Theme) -> None:
        """Take other colours."""
        self._theme = theme
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        """A line all around."""
        painter = QPainter(self)
        painter.setPen(QPen(self._theme.color("accent"), 1))
        painter.drawRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5))
        painter.end()
