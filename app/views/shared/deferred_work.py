"""Work that waits until it is seen."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QObject
from PySide6.QtWidgets import QWidget


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
