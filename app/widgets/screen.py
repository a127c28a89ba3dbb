"""The screen of a widget, what of the widget is visible, and work deferred until it is visible."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QObject, QRect
from PySide6.QtGui import QGuiApplication, QScreen
from PySide6.QtWidgets import QWidget


def visible_rect(widget: QWidget, rect: QRect, ancestor: QWidget) -> QRect:
    """Return the visible part of `rect` of `widget` in the coordinates of its `ancestor`; empty if nothing is
    visible.
    """
    seen, here = rect.intersected(widget.rect()), widget
    while here is not ancestor and not seen.isEmpty():
        above = here.parentWidget()
        if above is None or not here.isVisible():
            return QRect()
        seen = seen.translated(here.pos()).intersected(above.rect())
        here = above
    return seen


def screen_of(widget: QWidget) -> QScreen:
    """Return the screen at the centre of the widget's window, or of its parent's window if it is not shown yet;
    otherwise the primary screen.
    """
    window = widget.window()
    parent = window.parentWidget()
    shown = parent.window() if parent is not None and not window.isVisible() else window
    return QGuiApplication.screenAt(shown.geometry().center()) or QGuiApplication.primaryScreen()


def available_rect(widget: QWidget) -> QRect:
    """Return the part of the widget's screen that is available to windows."""
    return screen_of(widget).availableGeometry()


class WorkWhenVisible(QObject):
    """Runs `work` as soon as `widget` is visible, so that runs do not wait for hidden views."""

    def __init__(self, widget: QWidget, work: Callable[[], None]) -> None:
        super().__init__(widget)
        self._widget, self._work = widget, work
        self._is_due = False
        widget.installEventFilter(self)

    def schedule(self) -> None:
        """Run the work now, or when the widget is next shown."""
        self._is_due = True
        if self._widget.isVisible():
            self._run_work()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Run the deferred work when the widget is shown."""
        if event.type() == QEvent.Type.Show and self._is_due:
            self._run_work()
        return False

    def _run_work(self) -> None:
        self._is_due = False
        self._work()
