"""Chat controller: adds sent messages and answers to the conversation and updates the views."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal, Slot

from decodescope.app.panels.centre import Centre
from decodescope.app.panels.prompt_panel import PromptPanel
from decodescope.app.state import conversation
from decodescope.app.state.run import Run
from decodescope.app.state.worker_messages import ModelInfo, Prompt, is_turns
from decodescope.app.storage.examples import ExamplePrompt
from decodescope.app.views.base import View
from decodescope.resources.language import tr


class ChatController(QObject):
    """Connects the prompt panel and the chat views to the conversation.

    `answerRequested(messages)`: generate the last answer again; `promptRequested`: focus the editor; `settled`: the
    conversation can be saved.
    """

    answerRequested = Signal(object)
    promptRequested = Signal()
    settled = Signal()

    def __init__(self, prompt: PromptPanel, centre: Centre, turns: conversation.Conversation) -> None:
        super().__init__(prompt)
        self._prompt, self._centre = prompt, centre
        self._run: Run | None = None
        self.conversation = turns
        """The turns so far; the prompt editor holds the next message."""
        for view in centre.created_views:
            self.connect_view(view)
        centre.viewCreated.connect(self.connect_view)
        prompt.modeChosen.connect(self._on_mode)
        prompt.exampleChosen.connect(self._on_example)

    @property
    def problems(self) -> list[str]:
        """Return the reasons why nothing can be sent, a sentence each."""
        return [tr("There is no message yet.")] if self._prompt.is_chat and not self.prompt() else []

    def prompt(self) -> Prompt:
        """Return the text, or the turns so far plus the editor's message (the worker drops turns that do not fit the
        context).
        """
        written = self._prompt.prompt
        return self.conversation.with_turns(written) if is_turns(written) else written

    @Slot(object)
    def connect_view(self, view: View) -> None:
        """Show the conversation in `view` and connect its signals."""
        view.set_conversation(self.conversation)
        view.signals.newChatRequested.connect(self.new_chat)
        view.signals.regenerateRequested.connect(self.regenerate)
        view.signals.editLastRequested.connect(self.edit_last)
        view.signals.overflowPolicyChosen.connect(self._on_when_full)

    @Slot()
    def new_chat(self) -> None:
        """Clear the turns and focus the editor."""
        if self.conversation.is_open:
            return
        self.conversation.clear()
        self._notify_views()
        self.promptRequested.emit()

    @Slot()
    def regenerate(self) -> None:
        """Generate the last answer again, with another seed."""
        if self.conversation.can_regenerate:
            self.answerRequested.emit(self.conversation.messages_before_answer())

    @Slot()
    def edit_last(self) -> None:
        """Move the user's last message back into the editor."""
        if self.conversation.can_edit:
            self._prompt.set_prompt(self.conversation.remove_last_user_turn(), is_chat=True)
            self._notify_views()
            self.promptRequested.emit()

    @Slot(object)
    def on_started(self, run: Run) -> None:
        """Add the sent message to the turns."""
        self._run = run
        if not is_turns(run.request.prompt) or run.request.scored:
            return
        new = self.conversation.start_answer(run)
        if new and self._prompt.is_chat and conversation.parse(self._prompt.editor.toPlainText()) == new:
            self._prompt.set_prompt("", is_chat=True)
        if new:
            self.settled.emit()  # save the message even if the answer fails
        self._notify_views()

    @Slot(object)
    def on_trimmed(self, run: Run) -> None:
        """Mark the turns that did not fit the context."""
        self.conversation.mark_trimmed(run)
        self._notify_views()

    @Slot(object)
    def on_finished(self, _outcome: object) -> None:
        """Add the text of the run as the answer."""
        if self._run is not None and self.conversation.is_open:
            self.conversation.finish_answer(self._run)
            self._notify_views()

    @Slot(object)
    def on_model(self, info: ModelInfo) -> None:
        """Take over the context length of the new model."""
        self.conversation.context = info.context
        self._notify_views()

    @Slot(bool)
    def _on_mode(self, is_chat: bool) -> None:
        """Show the chat view in chat mode and the token view otherwise."""
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
        """Update the views and, unless an answer has only begun, save the conversation."""
        if not self.conversation.is_open:
            self.settled.emit()
        for view in self._centre.created_views:
            view.conversation_changed()
