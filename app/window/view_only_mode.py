"""The window cleared for one view: what lies around it is hidden, and comes back as it was."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from PySide6.QtCore import QByteArray, QEvent, QObject, QSize, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QMainWindow, QWidget

from app.widgets.screen import screen_of
from app.window.panel_layout import PanelLayout


class ViewOnlyMode(QObject):
    """`resized`: it has another size, while it is cleared."""

    resized = Signal()

    def __init__(self, window: QMainWindow, around: Sequence[QWidget], layout: PanelLayout) -> None:
        """`around`: what is hidden meanwhile, besides the panels of `layout`."""
        super().__init__(layout)
        self._window, self._around, self._layout = window, around, layout
        self._geometry = QByteArray()
        self._size = QSize()
        self._focus: QWidget | None = None

    def hide_surroundings(self) -> None:
        """Hide what is around."""
        self._geometry, self._focus = self._window.saveGeometry(), self._window.focusWidget()
        self._layout.set_hidden(True)
        for part in self._around:
            part.hide()

    def show_full_screen(self) -> bool:
        """Full screen, on the hall's where there is one: True then. A window that is larger than its screen stays as it
        is: a picture is taken of it."""
        window, hall = self._window, audience_screen(QGuiApplication.screens(), QGuiApplication.primaryScreen())
        self._size = window.size()
        window.installEventFilter(self)
        room = screen_of(window).size()
        if not window.isVisible() or window.width() > room.width() or window.height() > room.height():
            return False
        if hall is not None:
            window.setGeometry(hall.geometry())
        window.showFullScreen()
        return hall is not None

    def stop_watching(self) -> None:
        """What becomes of its size is no longer told."""
        self._window.removeEventFilter(self)

    def show_surroundings(self) -> None:
        """Show again what was hidden."""
        for part in self._around:
            part.show()
        self._layout.set_hidden(False)

    def restore(self) -> None:
        """Where it was, with the focus where that was."""
        if self._window.isFullScreen():
            self._window.restoreGeometry(self._geometry)
        if self._focus is not None:
            self._focus.setFocus()
            self._focus = None

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Tell of another size."""
        if watched is self._window and event.type() == QEvent.Type.Resize and self._window.size() != self._size:
            self._size = self._window.size()
            self.resized.emit()
        return False


S = TypeVar("S")


def audience_screen(screens: Sequence[S], own: S) -> S | None:
    """The screen that the audience sees: the first that is not the presenter's own; None where there is one alone."""
    return next((screen for screen in screens if screen != own), None)
