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


class Saver(QObject):
    """Calls `save` once, `DELAY_MS` after the first of several calls of `later`."""

    def __init__(self, save: Callable[[], object], parent: QObject) -> None:
        super().__init__(parent)
        self._save, self._timer = save, 0

    @property
    def is_due(self) -> bool:
        """Whether something is still to be saved."""
        return self._timer != 0

    def later(self) -> None:
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
    """`refused(text, title)` when the disk does not take something; everything is still in memory then.

    Each cause is told once, for every later save would tell it again.
    """

    refused = Signal(str, str)

    def __init__(self, store: SettingsStore) -> None:
        super().__init__()
        self._store = store
        self._told: dict[str, str] = {}
        self._remembered: Callable[[], AbstractContextManager[object]] = nullcontext
        self._is_held: Callable[[], bool] = _never
        self._is_live = False
        self._saver = Saver(self._keep_changes, self)

    def remember_with(
        self, remembered: Callable[[], AbstractContextManager[object]], is_held: Callable[[], bool]
    ) -> None:
        """Put what is set into the settings with `remembered` whenever they are written.

        While `is_held`, nothing is written by itself: a tour sets things that are not the reader's own.
        """
        self._remembered, self._is_held, self._is_live = remembered, is_held, True

    @Slot()
    def keep_settings(self) -> None:
        """Write the settings, with everything as it is set now."""
        self._saver.cancel()
        if self._is_held():
            self._saver.later()
            return
        with self._remembered():
            self.keep(self._store.save)

    @Slot()
    def keep_soon(self) -> None:
        """Write the settings a little later, once for all changes until then."""
        if self._is_live:
            self._saver.later()

    def stop(self) -> None:
        """Write nothing by itself any more: the window closes, or its parts are replaced."""
        self._saver.cancel()
        self._remembered, self._is_held, self._is_live = nullcontext, _never, False

    def keep(self, write: Callable[[], object]) -> None:
        """Call `write`, and tell what it could not."""
        try:
            write()
        except StorageError as error:
            self.tell(error)

    def tell(self, error: StorageError) -> None:
        """Tell what could not be written, if that has not been told yet, with what has been: it may
        not have been read."""
        if error.cause not in self._told:
            self._told[error.cause] = str(error)
            self.refused.emit("\n".join(reversed(self._told.values())), tr(error.title))

    def _keep_changes(self) -> None:
        if self._is_held():
            self._saver.later()
            return
        with self._remembered():
            self.keep(self._store.save_changes)


class ChatSaver(QObject):
    """Keeps the conversation in its file."""

    def __init__(self, turns: Conversation, store: ChatStore, keeper: SettingsSaver) -> None:
        super().__init__(keeper)
        self._turns, self._store, self._keeper = turns, store, keeper
        self._saver = Saver(self.keep, self)

    @Slot()
    def keep(self) -> None:
        """Write the turns as they are, an answer that is still being written as far as it is."""
        self._saver.cancel()
        self._keeper.keep(lambda: self._store.save(self._turns))

    @Slot()
    def keep_soon(self) -> None:
        """Write the turns a little later: an answer grows word by word."""
        if self._turns.is_open:
            self._saver.later()

    def keep_due(self) -> None:
        """Write now what is due."""
        if self._saver.is_due:
            self.keep()

    def stop(self) -> None:
        """Write what is due, and let other windows have the file."""
        self.keep_due()
        self._store.release()


def _never() -> bool:
    return False
