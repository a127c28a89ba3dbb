"""Keeps the chat: what is sent joins its turns, what a run writes is the answer, and the views follow."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal, Slot

from app.panels.centre import Centre
from app.panels.prompt_panel import PromptPanel
from app.state import conversation
from app.state.run import Run
from app.state.worker_messages import ModelInfo, Prompt
from app.storage.examples import ExamplePrompt
from app.views.base import View
from resources.language import tr


class ChatController(QObject):
    """Connects prompt panel and chat views with the one conversation.

    `answerRequested(messages)`: the last answer is to be written anew; `promptRequested`: the editor is to have the cursor;
    `settled`: the conversation is as it is to be kept.
    """

    answerRequested = Signal(object)
    promptRequested = Signal()
    settled = Signal()

    def __init__(self, prompt: PromptPanel, centre: Centre, turns: conversation.Conversation) -> None:
        super().__init__(prompt)
        self._prompt, self._centre = prompt, centre
        self._run: Run | None = None
        self.conversation = turns
        """The turns so far; the prompt's editor holds the next message."""
        for view in centre.created_views:
            self.connect_view(view)
        centre.viewCreated.connect(self.connect_view)
        prompt.modeChosen.connect(self._on_mode)
        prompt.exampleChosen.connect(self._on_example)

    @property
    def problems(self) -> list[str]:
        """Why nothing can be sent, a sentence each."""
        return [tr("There is no message yet.")] if self._prompt.is_chat and not self.prompt() else []

    def prompt(self) -> Prompt:
        """The text; or the turns so far and what the editor adds to them (the worker leaves out what has no place)."""
        written = self._prompt.prompt
        return written if isinstance(written, str) else self.conversation.with_turns(written)

    @Slot(object)
    def connect_view(self, view: View) -> None:
        """Let a view show the conversation, and obey what the reader does in it."""
        view.set_conversation(self.conversation)
        view.signals.newChatRequested.connect(self.new_chat)
        view.signals.regenerateRequested.connect(self.regenerate)
        view.signals.editLastRequested.connect(self.edit_last)
        view.signals.overflowPolicyChosen.connect(self._on_when_full)

    @Slot()
    def new_chat(self) -> None:
        """Forget the turns; the editor waits for the first message."""
        if self.conversation.is_open:
            return
        self.conversation.clear()
        self._notify_views()
        self.promptRequested.emit()

    @Slot()
    def regenerate(self) -> None:
        """Write the last answer anew, with another seed."""
        if self.conversation.can_regenerate:
            self.answerRequested.emit(self.conversation.messages_before_answer())

    @Slot()
    def edit_last(self) -> None:
        """Take the user's last message back into the editor."""
        if self.conversation.can_edit:
            self._prompt.set_prompt(self.conversation.remove_last_user_turn(), is_chat=True)
            self._notify_views()
            self.promptRequested.emit()

    @Slot(object)
    def on_started(self, run: Run) -> None:
        """What was sent joins the turns."""
        self._run = run
        if isinstance(run.request.prompt, str) or run.request.scored:
            return
        new = self.conversation.start_answer(run)
        if new and self._prompt.is_chat and conversation.parse(self._prompt.editor.toPlainText()) == new:
            self._prompt.set_prompt("", is_chat=True)
        if new:
            self.settled.emit()  # what was said is kept, whatever becomes of the answer
        self._notify_views()

    @Slot(object)
    def on_trimmed(self, run: Run) -> None:
        """Not all turns had a place: those that had none are shown so."""
        self.conversation.mark_trimmed(run)
        self._notify_views()

    @Slot(object)
    def on_finished(self, _outcome: object) -> None:
        """What the run wrote is the answer."""
        if self._run is not None and self.conversation.is_open:
            self.conversation.finish_answer(self._run)
            self._notify_views()

    @Slot(object)
    def on_model(self, info: ModelInfo) -> None:
        """Another model has another context."""
        self.conversation.context = info.context
        self._notify_views()

    @Slot(bool)
    def _on_mode(self, is_chat: bool) -> None:
        """Whoever chats wants to see the chat, and whoever writes text not."""
        if is_chat:
            self._centre.show_view("chat")
        elif self._centre.columns[0].current_name == "chat":
            self._centre.show_view("tokens")

    @Slot(object)
    def _on_example(self, example: ExamplePrompt) -> None:
        """Start a new chat; an example of plain text leaves the conversation unchanged."""
        if example.is_chat and not self.conversation.is_open:
            self.conversation.clear()
            self._notify_views()
        self._centre.show_view(example.shown_in)

    @Slot(str)
    def _on_when_full(self, policy: str) -> None:
        self.conversation.when_full = policy
        self._notify_views()

    def _notify_views(self) -> None:
        """The views follow, and so does the file, but not for every answer that only begins."""
        if not self.conversation.is_open:
            self.settled.emit()
        for view in self._centre.created_views:
            view.conversation_changed()
