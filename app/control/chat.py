"""Keeps the chat: what is sent joins its turns, what a run writes is the answer, and the views follow."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Slot

from app.state import conversation
from app.state.requests import ModelInfo
from app.state.run import Run
from app.storage.chat_file import ChatStore
from app.storage.examples import Example
from app.storage.files import StorageError
from app.views.base import View

if TYPE_CHECKING:
    from app.window.main_window import MainWindow


class ChatController(QObject):
    """Connects prompt panel, session and chat views with the conversation, which is kept in a file."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._window, self.conversation = window, window.controller.chat
        self._store = ChatStore(window.store.folder)
        self._store.restore(self.conversation)
        window.store.notices += self._store.notices
        session, prompt, centre = window.session, window.setup.prompt, window.centre
        for view in centre.views:
            self.connect_view(view)
        centre.viewAdded.connect(self.connect_view)
        session.runStarted.connect(self._on_started)
        session.promptTrimmed.connect(self._on_trimmed)
        session.finished.connect(self._on_finished)
        session.modelReady.connect(self._on_model)
        prompt.modeChosen.connect(self._on_mode)
        prompt.exampleChosen.connect(self._on_example)

    @Slot(object)
    def connect_view(self, view: View) -> None:
        """Let a view show the conversation, and obey what the reader does in it."""
        view.set_conversation(self.conversation)
        view.signals.newChatWanted.connect(self.new_chat)
        view.signals.regenerateWanted.connect(self.regenerate)
        view.signals.editLastWanted.connect(self.edit_last)
        view.signals.whenFullChosen.connect(self._on_when_full)

    @Slot()
    def new_chat(self) -> None:
        """Forget the turns; the editor waits for the first message."""
        if self.conversation.is_open:
            return
        self.conversation.clear()
        self._tell()
        self._window.controller.focus_prompt()

    @Slot()
    def regenerate(self) -> None:
        """Write the last answer anew, with another seed."""
        if not self.conversation.can_regenerate or self._window.session.busy:
            return
        seed = self._window.toolbar.seed
        if seed.is_locked:
            seed.spin.setValue(seed.spin.value() + 1)
        request = self._window.controller.request()
        self._window.messages.dismiss()
        self._window.session.start(replace(request, prompt=self.conversation.without_answer()))

    @Slot()
    def edit_last(self) -> None:
        """Take the user's last message back into the editor."""
        if self.conversation.can_edit:
            self._window.setup.prompt.set_prompt(self.conversation.take_back(), is_chat=True)
            self._tell()
            self._window.controller.focus_prompt()

    @Slot(object)
    def _on_started(self, run: Run) -> None:
        if isinstance(run.request.prompt, str):
            return
        new = self.conversation.begin(run)
        prompt = self._window.setup.prompt
        if new and prompt.is_chat and conversation.parse(prompt.editor.toPlainText()) == new:
            prompt.set_prompt("", is_chat=True)
        self._tell()

    @Slot(object)
    def _on_trimmed(self, run: Run) -> None:
        """Not all turns had a place: those that had none are shown so."""
        self.conversation.settle(run)
        self._tell()

    @Slot(object)
    def _on_finished(self, _outcome: object) -> None:
        run = self._window.session.run
        if run is not None and self.conversation.is_open:
            self.conversation.finish(run)
            self._tell()

    @Slot(object)
    def _on_model(self, info: ModelInfo) -> None:
        self.conversation.context = info.context
        self._tell()

    @Slot(bool)
    def _on_mode(self, is_chat: bool) -> None:
        """Whoever chats wants to see the chat, and whoever writes text not."""
        centre = self._window.centre
        if is_chat:
            centre.show_view("chat")
        elif centre.columns[0].current == "chat":
            centre.show_view("tokens")

    @Slot(object)
    def _on_example(self, example: Example) -> None:
        if not self.conversation.is_open:
            self.conversation.clear()
            self._tell()
        self._on_mode(example.is_chat)

    @Slot(str)
    def _on_when_full(self, policy: str) -> None:
        self.conversation.when_full = policy
        self._tell()

    def _keep(self) -> None:
        """Write the turns; a disk that refuses is told."""
        try:
            self._store.save(self.conversation)
        except StorageError as error:
            self._window.messages.show_unsaved(error)

    def _tell(self) -> None:
        """The views follow, and so does the file, but not for every answer that only begins."""
        if not self.conversation.is_open:
            self._keep()
        for view in self._window.centre.views:
            view.conversation_changed()
