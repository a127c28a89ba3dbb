"""What the program keeps on the disk by itself: the settings, the chat, runs."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, Signal, Slot

from app.state.conversation import Conversation
from app.storage.chat_file import ChatStore
from app.storage.files import StorageError
from app.storage.settings_file import SettingsStore
from resources.language import tr


class Keeper(QObject):
    """`refused(text, title)` when the disk does not take something; everything is still in memory then.

    Each cause is told once, for every later save would tell it again.
    """

    refused = Signal(str, str)

    def __init__(self, store: SettingsStore) -> None:
        super().__init__()
        self._store = store
        self._told: set[str] = set()

    @Slot()
    def keep_settings(self) -> None:
        """Write the settings."""
        self.keep(self._store.save)

    def keep(self, write: Callable[[], object]) -> None:
        """Call `write`, and tell what it could not."""
        try:
            write()
        except StorageError as error:
            self.tell(error)

    def tell(self, error: StorageError) -> None:
        """Tell what could not be written, if that has not been told yet."""
        if error.cause not in self._told:
            self._told.add(error.cause)
            self.refused.emit(str(error), tr(error.title))


class ChatKeeper(QObject):
    """Keeps the conversation in its file."""

    def __init__(self, turns: Conversation, store: ChatStore, keeper: Keeper) -> None:
        super().__init__(keeper)
        self._turns, self._store, self._keeper = turns, store, keeper

    @Slot()
    def keep(self) -> None:
        """Write the turns as they are."""
        self._keeper.keep(lambda: self._store.save(self._turns))
