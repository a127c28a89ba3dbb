"""What the program keeps on the disk by itself: the settings, the chat, runs.

Settings and chat are written a second after a change, so that a power cut or `kill -9` loses that second at most.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

from PySide6.QtCore import QObject, QTimerEvent, Signal, Slot

from app.state.conversation import Conversation
from app.storage.chat_file import ChatStore
from app.storage.json_files import StorageError
from app.storage.settings_file import SettingsStore
from resources.language import tr

DELAY_MS = 1000
"""From a change to its being written: a second change meanwhile does not put the first one off."""


class DelayedSaver(QObject):
    """Calls `save` once, `DELAY_MS` after the first of several calls of `schedule`."""

    def __init__(self, save: Callable[[], object], parent: QObject) -> None:
        super().__init__(parent)
        self._save, self._timer = save, 0

    @property
    def is_pending(self) -> bool:
        """Whether something is still to be saved."""
        return self._timer != 0

    def schedule(self) -> None:
        """Save soon."""
        if not self._timer:
            self._timer = self.startTimer(DELAY_MS)

    def cancel(self) -> None:
        """Save nothing any more of what was due."""
        if self._timer:
            self.killTimer(self._timer)
            self._timer = 0

    def timerEvent(self, event: QTimerEvent) -> None:
        """Save what is due."""
        self.cancel()
        self._save()


class SettingsSaver(QObject):
    """`writeFailed(text, title)` when the disk does not take something; everything is still in memory then.

    Each cause is told once, for every later save would tell it again.
    """

    writeFailed = Signal(str, str)

    def __init__(self, store: SettingsStore) -> None:
        super().__init__()
        self._store = store
        self._reported: dict[str, str] = {}
        self._updated_settings: Callable[[], AbstractContextManager[object]] = nullcontext
        self._is_held: Callable[[], bool] = _never
        self._is_live = False
        self._saver = DelayedSaver(self._save_changes, self)

    def set_update(
        self, updated_settings: Callable[[], AbstractContextManager[object]], is_held: Callable[[], bool]
    ) -> None:
        """Put what is set into the settings with `updated_settings` whenever they are written.

        While `is_held`, nothing is written by itself: a tour sets things that are not the reader's own.
        """
        self._updated_settings, self._is_held, self._is_live = updated_settings, is_held, True

    @Slot()
    def save_settings(self) -> None:
        """Write the settings, with everything as it is set now."""
        self._saver.cancel()
        if self._is_held():
            self._saver.schedule()
            return
        with self._updated_settings():
            self.write(self._store.save)

    @Slot()
    def save_soon(self) -> None:
        """Write the settings a little later, once for all changes until then."""
        if self._is_live:
            self._saver.schedule()

    def stop(self) -> None:
        """Write nothing by itself any more: the window closes, or its parts are replaced."""
        self._saver.cancel()
        self._updated_settings, self._is_held, self._is_live = nullcontext, _never, False

    def write(self, action: Callable[[], object]) -> None:
        """Call `action`, and tell what it could not."""
        try:
            action()
        except StorageError as error:
            self.report_error(error)

    def report_error(self, error: StorageError) -> None:
        """Tell what could not be written, if that has not been told yet, with what has been: it may
        not have been read."""
        if error.cause not in self._reported:
            self._reported[error.cause] = str(error)
            self.writeFailed.emit("\n".join(reversed(self._reported.values())), tr(error.title))

    def _save_changes(self) -> None:
        if self._is_held():
            self._saver.schedule()
            return
        with self._updated_settings():
            self.write(self._store.save_changes)


class ChatSaver(QObject):
    """Keeps the conversation in its file."""

    def __init__(self, turns: Conversation, store: ChatStore, keeper: SettingsSaver) -> None:
        super().__init__(keeper)
        self._turns, self._store, self._settings_saver = turns, store, keeper
        self._saver = DelayedSaver(self.save, self)

    @Slot()
    def save(self) -> None:
        """Write the turns as they are, an answer that is still being written as far as it is."""
        self._saver.cancel()
        self._settings_saver.write(lambda: self._store.save(self._turns))

    @Slot()
    def save_soon(self) -> None:
        """Write the turns a little later: an answer grows word by word."""
        if self._turns.is_open:
            self._saver.schedule()

    def save_pending(self) -> None:
        """Write now what is due."""
        if self._saver.is_pending:
            self.save()

    def stop(self) -> None:
        """Write what is due, and let other windows have the file."""
        self.save_pending()
        self._store.release()


def _never() -> bool:
    return False
