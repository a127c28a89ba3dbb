"""The history's file as the window has it: opened when it is first asked for, and told of when it was damaged.

SQLite is imported when something is first kept or looked for.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from app.control.persistence import SettingsSaver
from app.storage.json_files import StorageError
from core.errors import DecodescopeError
from resources.language import tr

if TYPE_CHECKING:
    from app.storage.history.history_record import HistoryRecord
    from app.storage.history.store import HistoryStore

FOLDER = "history"
T = TypeVar("T")


class HistoryFile(QObject):
    """`changed` when a run is there that was not, or the other way round."""

    changed = Signal()
    opened = Signal()
    """The file is open, or cannot be: `unavailable_reason`."""
    noticed = Signal(str, str)
    """Something to know: text and title."""

    def __init__(self, parent: QObject, folder: Callable[[], Path], saver: SettingsSaver) -> None:
        super().__init__(parent)
        self._folder, self._saver = folder, saver
        self._store: HistoryStore | None = None
        self._is_closed = False
        self.unavailable_reason = ""
        """Why nothing can be kept or looked for; empty while it can."""

    @property
    def store(self) -> HistoryStore | None:
        """The kept runs; None where they cannot be had, which `unavailable_reason` explains, and once the window is closed."""
        if self._store is None and not self.unavailable_reason and not self._is_closed:
            self._open()
        return self._store

    @property
    def store_if_open(self) -> HistoryStore | None:
        """The same, without opening it now."""
        return self._store

    @Slot()
    def open_later(self) -> None:
        """Open the file as soon as there is nothing else to do."""
        QTimer.singleShot(0, self, lambda: self.store)

    def query(self, question: Callable[[HistoryStore], T], default: T) -> T:
        """What the kept runs say; `default` where they cannot be had (now), which is told."""
        try:
            return self.query_or_raise(question, default)
        except StorageError as error:
            self._saver.report_error(error)
            return default

    def query_or_raise(self, question: Callable[[HistoryStore], T], default: T) -> T:
        """The same, `default` where nothing is kept at all. Raises StorageError where the disk refuses."""
        store = self.store
        if store is None:
            return default
        try:
            return question(store)
        finally:
            if store.notices:  # a new file has begun; whoever asked may be painting
                QTimer.singleShot(0, self, self._on_repaired)

    @Slot()
    def _on_repaired(self) -> None:
        if self._emit_notices():
            self.changed.emit()

    def get(self, run: str) -> HistoryRecord | None:
        """One kept run; None where it is not there, or cannot be had now."""
        return self.query(lambda store: store.get(run), None)

    def change(self, action: Callable[[HistoryStore], object]) -> None:
        """Do something to the kept runs, and tell of it."""
        store = self.store
        if store is not None:
            self._saver.write(partial(action, store))
            self._emit_notices()
            self.changed.emit()

    def close(self) -> None:
        """Give it back; it is not opened again."""
        self._is_closed = True  # what still waits for its turn must not open the file again
        if self._store is not None:
            self._store.close()
            self._store = None

    def _open(self) -> None:
        from app.storage.history.store import HistoryStore

        try:
            self._store = HistoryStore(self._folder() / FOLDER)
        except DecodescopeError as error:
            self.unavailable_reason = str(error)
            self.noticed.emit(self.unavailable_reason, tr(error.title))
        else:
            self._emit_notices()
        self.opened.emit()

    def _emit_notices(self) -> bool:
        """Whether there was something to tell."""
        notices = self._store.notices if self._store is not None else []
        pending, notices[:] = notices[:], []
        for notice in pending:
            self.noticed.emit(notice, tr("The history was repaired"))
        return bool(pending)
