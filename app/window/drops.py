"""A recorded run, a file of settings, sounds or pictures that are dropped onto the window."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Signal
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QWidget

from app.state.media import kind_by_name
from core.former_name import RUN_SUFFIXES

SETTINGS = ".json"


class Drops(QObject):
    """`fileDropped` with the path of a file whose name ends as those of recorded runs do, `settingsDropped` with that
    of a JSON file, `mediaDropped` with those of sounds and pictures; nothing else is taken."""

    fileDropped = Signal(str)
    settingsDropped = Signal(str)
    mediaDropped = Signal(list)

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
            self._take(paths)
        return True

    def _take(self, paths: list[str]) -> None:
        first = paths[0].lower()
        if first.endswith(RUN_SUFFIXES):
            self.fileDropped.emit(paths[0])
        elif first.endswith(SETTINGS):
            self.settingsDropped.emit(paths[0])
        else:
            self.mediaDropped.emit([path for path in paths if kind_by_name(path)])


def _paths(event: QDropEvent) -> list[str]:
    paths = (url.toLocalFile() for url in event.mimeData().urls())
    return [path for path in paths if path.lower().endswith((*RUN_SUFFIXES, SETTINGS)) or kind_by_name(path)]
