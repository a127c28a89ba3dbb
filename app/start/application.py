"""The Qt application, with the files that the system asks it to open."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent
from PySide6.QtGui import QFileOpenEvent
from PySide6.QtWidgets import QApplication


class OpenedFiles:
    """Passes the files of `QFileOpenEvent` on, and keeps those that arrive before the window can show them.

    macOS sends this event for a file that is opened in the Finder. The other systems name it on the command line.
    """

    def __init__(self) -> None:
        self._waiting: list[str] = []
        self._open: Callable[[str], object] | None = None

    def handle(self, event: QEvent) -> bool:
        """Return whether the event asks for a file, and open it."""
        if not isinstance(event, QFileOpenEvent) or not event.file():
            return False
        if self._open is None:
            self._waiting.append(event.file())
        else:
            self._open(event.file())
        return True

    def open_with(self, open_file: Callable[[str], object]) -> None:
        """Open all files with this function, those that have arrived included."""
        self._open = open_file
        waiting, self._waiting = self._waiting, []
        for path in waiting:
            open_file(path)


class Application(QApplication):
    """The application. Its own events arrive at `event`; an event filter would be called for those of all widgets."""

    def __init__(self, arguments: list[str]) -> None:
        super().__init__(arguments)
        self.opened_files = OpenedFiles()

    def event(self, event: QEvent) -> bool:
        """Open the files that the system asks for."""
        return self.opened_files.handle(event) or super().event(event)
