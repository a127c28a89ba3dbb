"""Saves settings, chat and runs automatically.

Settings and chat are written one second after a change, so a power cut or `kill -9` loses one second at most.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

from PySide6.QtCore import QObject, QTimerEvent, Signal, Slot

from decodescope.app.state.conversation import Conversation
from decodescope.app.storage.chat_store import ChatStore
from decodescope.app.storage.json_files import StorageError
from decodescope.app.storage.settings_file import SettingsStore
from decodescope.resources.language import tr

DELAY_MS = 1000
"""Delay from a change until it is written; further changes do not extend it."""


class DelayedSaver(QObject):
    """Calls `save` once, `DELAY_MS` after the first of several calls of `schedule`."""

    def __init__(self, save: Callable[[], object], parent: QObject) -> None:
        super().__init__(parent)
        self._save, self._timer = save, 0

    @property
    def is_pending(self) -> bool:
        """Whether a save is pending."""
        return self._timer != 0

    def schedule(self) -> None:
        """Schedule a save."""
        if not self._timer:
            self._timer = self.startTimer(DELAY_MS)

    def cancel(self) -> None:
        """Cancel a pending save."""
        if self._timer:
            self.killTimer(self._timer)
            self._timer = 0

    def timerEvent(self, event: QTimerEvent) -> None:
        """Save now."""
        self.cancel()
        self._save()


class SettingsSaver(QObject):
    """Saves the settings. `writeFailed(text, title)` is emitted when writing fails; everything stays in memory then.

    Each cause is reported once, as every later save would repeat it.
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
        """Update the settings with `updated_settings` whenever they are written.

        While `is_held` returns True, nothing is written automatically: the current settings are those of a tour.
        """
        self._updated_settings, self._is_held, self._is_live = updated_settings, is_held, True

    @Slot()
    def save_settings(self) -> None:
        """Write the settings now, updated from the controls."""
        self._saver.cancel()
        if self._is_held():
            self._saver.schedule()
            return
        with self._updated_settings():
            self.write(self._store.save)

    @Slot()
    def save_soon(self) -> None:
        """Schedule a write of the settings; one write for all changes until then."""
        if self._is_live:
            self._saver.schedule()

    def stop(self) -> None:
        """Stop automatic writes when the window closes or is rebuilt."""
        self._saver.cancel()
        self._updated_settings, self._is_held, self._is_live = nullcontext, _never, False

    def write(self, action: Callable[[], object]) -> None:
        """Call `action` and report a StorageError."""
        try:
            action()
        except StorageError as error:
            self.report_error(error)

    def report_error(self, error: StorageError) -> None:
        """Report a write error once, together with earlier ones, as they may not have been read yet."""
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
    """Keeps the open conversation in its file."""

    def __init__(self, store: ChatStore, keeper: SettingsSaver) -> None:
        super().__init__(keeper)
        self.store, self._settings_saver = store, keeper
        self.conversation = store.restore_last()
        """The open conversation."""
        self._saver = DelayedSaver(self.save, self)

    @Slot()
    def save(self) -> None:
        """Write the turns, including an unfinished answer."""
        self._saver.cancel()
        self._settings_saver.write(lambda: self.store.save(self.conversation))

    @Slot()
    def save_soon(self) -> None:
        """Schedule a write of the turns, as an answer grows token by token."""
        if self.conversation.is_open:
            self._saver.schedule()

    @Slot()
    def schedule(self) -> None:
        """Schedule a write after a change of the chat that is not a turn."""
        self._saver.schedule()

    def save_pending(self) -> None:
        """Write pending changes now."""
        if self._saver.is_pending:
            self.save()

    def start_new(self, chat: Conversation) -> None:
        """Make a new chat the open one, and write it so that it is open at the next start."""
        self._leave()
        self.conversation = self.store.adopt(chat)
        self.save()

    def open(self, chat: str) -> None:
        """Open a saved chat. Raises ChatUnavailableError; the current one then stays open."""
        self.save_pending()
        before = self.conversation
        opened = self.store.open(chat)
        if before.is_empty:
            self.store.remove_file(before.id)
        self.conversation = opened

    def stop(self) -> None:
        """Write pending changes and release the file for other windows."""
        self.save_pending()
        self.store.commit_deletions()
        self.store.release()

    def _leave(self) -> None:
        """Write the open chat, or remove the file of an empty one."""
        self.save_pending()
        if self.conversation.is_empty:
            self.store.remove_file(self.conversation.id)


def _never() -> bool:
    return False
