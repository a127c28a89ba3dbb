"""A recorded run, or a file of settings, that is dropped onto the window."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Signal
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QWidget

ENDING, SETTINGS = ".tokenscope", ".json"


class Drops(QObject):
    """`fileDropped` with the path of a file whose name ends as those of recorded runs do, `settingsDropped` with that
    of a JSON file; nothing else is taken."""

    fileDropped = Signal(str)
    settingsDropped = Signal(str)

    def __init__(self, window: QWidget, parent: QObject) -> None:
        super().__init__(parent)
        window.setAcceptDrops(True)
        window.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Take what is dragged in, and open what is dropped."""
        if not isinstance(event, QDropEvent) or not (paths := _paths(event)):
            return False
        event.acceptProposedAction()
        if not isinstance(event, QDragEnterEvent) and event.type() == QEvent.Type.Drop:
            is_run = paths[0].lower().endswith(ENDING)
            (self.fileDropped if is_run else self.settingsDropped).emit(paths[0])
        return True


def _paths(event: QDropEvent) -> list[str]:
    paths = (url.toLocalFile() for url in event.mimeData().urls())
    return [path for path in paths if path.lower().endswith((ENDING, SETTINGS))]
