"""The screen of a widget, what of the widget is visible, and work deferred until it is visible."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QObject, QRect
from PySide6.QtGui import QGuiApplication, QScreen
from PySide6.QtWidgets import QWidget


def visible_rect(widget: QWidget, rect: QRect, ancestor: QWidget) -> QRect:
    """The stretch `rect` of `widget` as far as it is to be seen, in the pixels of `ancestor`, which holds the widget; empty
    where it is not."""
    seen, here = rect.intersected(widget.rect()), widget
    while here is not ancestor and not seen.isEmpty():
        above = here.parentWidget()
        if above is None or not here.isVisible():
            return QRect()
        seen = seen.translated(here.pos()).intersected(above.rect())
        here = above
    return seen


def screen_of(widget: QWidget) -> QScreen:
    """The screen under the middle of the widget's window; of one not shown yet, its parent's; else the first."""
    window = widget.window()
    parent = window.parentWidget()
    shown = parent.window() if parent is not None and not window.isVisible() else window
    return QGuiApplication.screenAt(shown.geometry().center()) or QGuiApplication.primaryScreen()


def available_rect(widget: QWidget) -> QRect:
    """The part of the widget's screen that a desktop leaves to windows."""
    return screen_of(widget).availableGeometry()


class WorkWhenVisible(QObject):
    """Does `work` when `widget` is in front: a run does not wait for what nobody sees."""

    def __init__(self, widget: QWidget, work: Callable[[], None]) -> None:
        super().__init__(widget)
        self._widget, self._work = widget, work
        self._is_due = False
        widget.installEventFilter(self)

    def schedule(self) -> None:
        """Now, or when the widget comes to the front."""
        self._is_due = True
        if self._widget.isVisible():
            self._run_work()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Do what was put off."""
        if event.type() == QEvent.Type.Show and self._is_due:
            self._run_work()
        return False

    def _run_work(self) -> None:
        self._is_due = False
        self._work()
