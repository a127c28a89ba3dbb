"""Chat controllers: one adds messages and answers to the conversation, the other manages the list of chats."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

from PySide6.QtCore import QObject, Qt, QTimer, Signal, Slot

from decodescope.app.control.messages import PROMPT_TOO_LONG, Messages
from decodescope.app.control.persistence import ChatSaver
from decodescope.app.panels.adapter_panel import AdapterEntry
from decodescope.app.panels.centre import Centre
from decodescope.app.panels.chat_composer import ChatComposer
from decodescope.app.panels.prompt_panel import PromptPanel
from decodescope.app.state import conversation
from decodescope.app.state.conversation import ChatSummary, Conversation, ConversationTurn, TurnToken
from decodescope.app.state.run import Run
from decodescope.app.state.worker_messages import ModelInfo, Prompt, is_turns
from decodescope.app.storage.chat_store import ChatUnavailableError
from decodescope.app.storage.examples import ExamplePrompt
from decodescope.app.storage.json_files import StorageError
from decodescope.app.storage.settings import ChatSection
from decodescope.app.views.base import View
from decodescope.app.widgets.file_dialogs import open_file_dialog, open_save_dialog
from decodescope.core.errors import DecodescopeError
from decodescope.resources.language import join_sentences, tr, trn


class AnswerRequest(NamedTuple):
    """A request for an answer to messages of the chat."""

    messages: tuple[Mapping[str, str], ...]
    is_again: bool = False
    """Whether the messages have an answer already, so that a locked seed is changed."""
    edited: ConversationTurn | None = None
    """The answer whose edited text is continued; None for a new answer."""
    text: str = ""
    """The edited text."""


class ChatController(QObject):
    """Connects the prompt panel, the input below the views, and the chat views to the conversation.

    `answerRequested(AnswerRequest)`; `sendRequested`: run or stop; `adapterSwitched(path, is on)`;
    `promptRequested`: focus the editor; `settled`: the conversation can be saved; `settingsRequested(mapping)`: apply
    the settings of a chat or a turn.
    """

    answerRequested = Signal(object)
    sendRequested = Signal()
    adapterSwitched = Signal(str, bool)
    promptRequested = Signal()
    settled = Signal()
    settingsRequested = Signal(object)
    conversationReplaced = Signal()

    def __init__(self, prompt: PromptPanel, centre: Centre, saver: ChatSaver, settings: ChatSection) -> None:
        super().__init__(prompt)
        self._prompt, self._centre, self._saver, self._settings = prompt, centre, saver, settings
        self._run: Run | None = None
        self._context: int | None = None
        self._composer: ChatComposer | None = None
        self._button_mode = "run"
        self._adapters: Sequence[AdapterEntry] = ()
        self._sent_text, self._sent_count = "", 0
        """The text of the input that the run answers, and its number of messages."""
        self.is_run_own: Callable[[], bool] = _always
        """Returns whether the run that has just started was started in this window, not by another program."""
        prompt.set_message(self.conversation.draft)
        for view in centre.created_views:
            self.connect_view(view)
        centre.viewCreated.connect(self.connect_view)
        prompt.modeChosen.connect(self._on_mode)
        prompt.modeChanged.connect(self._show_composer)
        prompt.exampleChosen.connect(self._on_example)
        prompt.edited.connect(self._on_edited)
        prompt.editor.submitted.connect(self._on_submitted)
        prompt.editor.sends_with = self._send_modifier
        self._show_composer()

    @property
    def conversation(self) -> Conversation:
        """The open conversation; the prompt editor holds the next message."""
        return self._saver.conversation

    @property
    def composer(self) -> ChatComposer:
        """The input for messages, created on first use."""
        if self._composer is None:
            self._composer = ChatComposer(self._prompt.examples)
            self._composer.sendRequested.connect(self.sendRequested)
            self._composer.exampleChosen.connect(self._prompt.exampleChosen)
            self._composer.adapterSwitched.connect(self.adapterSwitched)
            self._composer.set_mode(self._button_mode)
            self._composer.show_adapters(self._adapters)
        return self._composer

    @property
    def problems(self) -> list[str]:
        """Return the reasons why nothing can be sent, a sentence each."""
        if not self._prompt.is_chat:
            return []
        if self.conversation.is_open:
            return [tr("An answer is being written.")]
        return [] if self.prompt() else [tr("There is no message yet.")]

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
        view.set_message_input(self._prompt.is_chat)
        signals = view.signals
        for signal, slot in (
            (signals.newChatRequested, self.new_chat),
            (signals.regenerateRequested, self.regenerate),
            (signals.turnEdited, self.edit_turn),
            (signals.siblingRequested, self.show_sibling),
            (signals.systemPromptChosen, self.set_system_prompt),
            (signals.turnSettingsRequested, self._on_turn_settings),
            (signals.overflowPolicyChosen, self._on_when_full),
        ):
            signal.connect(slot)

    @Slot()
    def new_chat(self) -> None:
        """Start a new chat and focus the editor; the current one stays in the list."""
        if self.conversation.is_open:
            return
        if not self.conversation.is_empty:
            self._replace(partial(self._saver.start_new, Conversation(when_full=self.conversation.when_full)))
        self.promptRequested.emit()

    def open_chat(self, chat: str) -> None:
        """Open a saved chat with its settings. Raises ChatUnavailableError."""
        if self.conversation.is_open or chat == self.conversation.id:
            return
        self._replace(partial(self._saver.open, chat))
        if self.conversation.settings:
            self.settingsRequested.emit(self.conversation.settings)

    def add_chat(self, chat: Conversation) -> None:
        """Open a chat that is not saved yet."""
        self._replace(partial(self._saver.start_new, chat))

    def _replace(self, change: Callable[[], None]) -> None:
        """Show another conversation after `change`."""
        change()
        self._run = None
        self.conversation.context = self._context
        self._prompt.set_message(self.conversation.draft)
        for view in self._centre.created_views:
            view.set_conversation(self.conversation)
        self.conversationReplaced.emit()

    @Slot(object)
    def regenerate(self, turn: ConversationTurn | None = None) -> None:
        """Write another answer beside `turn`, by default the last one, with another seed."""
        talk = self.conversation
        answer = turn if turn is not None else talk.turns[-1] if talk.can_regenerate else None
        if answer is not None and answer in talk.turns and not talk.is_open:
            self.answerRequested.emit(AnswerRequest(talk.messages_before(answer), is_again=True))

    @Slot(object, str, str)
    def edit_turn(self, turn: ConversationTurn, text: str, action: str) -> None:
        """Continue an edited answer, save it as it is, or answer an edited message. The old turn is kept."""
        talk = self.conversation
        if talk.is_open or turn not in talk.turns:
            return
        self.promptRequested.emit()
        before = talk.messages_before(turn)
        if action == conversation.CONTINUE:
            self.answerRequested.emit(AnswerRequest(before, edited=turn, text=text))
        elif action == conversation.SEND:
            self.answerRequested.emit(AnswerRequest((*before, {"role": turn.role, "content": text})))
        elif text != turn.content:
            tokens = tuple(_kept_tokens(turn.tokens, text))
            talk.append(ConversationTurn(turn.role, text, restored_tokens=tokens), turn.parent)
            self._notify_views()

    @Slot(object, int)
    def show_sibling(self, turn: ConversationTurn, step: int) -> None:
        """Show another answer, or another wording of a message, with what follows it."""
        if not self.conversation.is_open:
            self.conversation.show_sibling(turn, step)
            self._saver.schedule()
            self._update_views()

    @Slot(str)
    def set_system_prompt(self, text: str) -> None:
        """Set the system prompt of the chat."""
        if text != self.conversation.system:
            self.conversation.system = text
            self._saver.schedule()
            self._prompt.edited.emit()

    @Slot(object)
    def on_started(self, run: Run) -> None:
        """Add the sent message to the turns."""
        self._run = run
        if not is_turns(run.request.prompt) or run.request.scored or not self.is_run_own():
            return
        new = self.conversation.start_answer(run)
        self._sent_text, self._sent_count = "", 0
        if new and self._prompt.is_chat and conversation.parse(self._prompt.editor.toPlainText()) == new:
            self._sent_text, self._sent_count = self._prompt.editor.toPlainText(), len(new)
            self._prompt.set_prompt("", is_chat=True)
        if new:
            self.settled.emit()  # save the message even if the answer fails
        self._notify_views()

    @Slot(object)
    def on_shown(self, run: Run) -> None:
        """Show the tokens of an answer of an earlier session, whose run was opened."""
        turn = self.conversation.turn_of_run(run.id)
        if turn is not None and turn.run is None and run.sequences[run.shown_index].text == turn.content:
            turn.run = run
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
            self._take_back_message(self._run)
            self._notify_views()

    def _take_back_message(self, run: Run) -> None:
        """Return a message that no context can hold to the input: in the chat, it would make every later one too long,
        too.
        """
        error = run.outcome.error if run.outcome is not None else None
        if error is None or error.kind != PROMPT_TOO_LONG or not self._sent_count or self._prompt.message.strip():
            return
        for turn in self.conversation.turns[: -self._sent_count - 1 : -1]:
            self.conversation.remove(turn)
        self._prompt.set_prompt(self._sent_text, is_chat=True)
        self._sent_count = 0

    @Slot(object)
    def on_model(self, info: ModelInfo) -> None:
        """Take over the context length of the new model."""
        self._context = self.conversation.context = info.context
        self._update_views()

    @Slot(str)
    def set_button_mode(self, mode: str) -> None:
        """Show in the Send button whether an answer is being written."""
        self._button_mode = mode
        if self._composer is not None:
            self._composer.set_mode(mode)

    @Slot(object)
    def show_adapters(self, entries: Sequence[AdapterEntry]) -> None:
        """Show the adapters of the model beside the input."""
        self._adapters = entries
        if self._composer is not None:
            self._composer.show_adapters(entries)

    @Slot()
    def follow_settings(self) -> None:
        """Describe the key that sends now."""
        if self._composer is not None:
            self._composer.set_key(self._settings.enter_sends)

    def _send_modifier(self) -> Qt.KeyboardModifier | None:
        if not self._prompt.is_chat:
            return None
        none, shift = Qt.KeyboardModifier.NoModifier, Qt.KeyboardModifier.ShiftModifier
        return none if self._settings.enter_sends else shift

    @Slot()
    def _on_submitted(self) -> None:
        """Send the message; a message typed during an answer waits for its end."""
        if self._button_mode == "run":
            self.sendRequested.emit()

    @Slot()
    def _show_composer(self) -> None:
        """Move the editor below the views in chat mode, and back into the settings in text mode."""
        is_chat, editor = self._prompt.is_chat, self._prompt.editor
        if not is_chat and self._composer is None:
            return
        had_focus = editor.hasFocus()
        if is_chat:
            self.composer.take_input(self._prompt.input_area)
            self.follow_settings()
        else:
            self._prompt.take_back_input()
        self._centre.show_composer(self.composer, is_chat)
        for view in self._centre.created_views:
            view.set_message_input(is_chat)
        if had_focus:
            editor.setFocus()

    @Slot(bool)
    def _on_mode(self, is_chat: bool) -> None:
        """Show the chat view in chat mode and the token view otherwise."""
        if is_chat:
            self._centre.show_view("chat")
            self.promptRequested.emit()
        elif self._centre.columns[0].current_name == "chat":
            self._centre.show_view("tokens")

    @Slot(object)
    def _on_example(self, example: ExamplePrompt) -> None:
        """Start a new chat; an example of plain text leaves the conversation unchanged."""
        if example.is_chat and not self.conversation.is_open and self.conversation.turns:
            written = self._prompt.message
            self._saver.conversation.draft = ""
            self._replace(partial(self._saver.start_new, Conversation(when_full=self.conversation.when_full)))
            self._prompt.set_message(written)
        self._centre.show_view(example.shown_in)

    @Slot()
    def _on_edited(self) -> None:
        """Keep the message that is being written with its chat."""
        if self._prompt.message != self.conversation.draft:
            self.conversation.draft = self._prompt.message
            self._saver.schedule()

    @Slot(object)
    def _on_turn_settings(self, turn: ConversationTurn) -> None:
        if turn.made_with:
            self.settingsRequested.emit(turn.made_with)

    @Slot(str)
    def _on_when_full(self, policy: str) -> None:
        self.conversation.when_full = policy
        self._saver.schedule()
        self._update_views()
        self._prompt.edited.emit()

    def _notify_views(self) -> None:
        """Update the views and, unless an answer has only begun, save the conversation."""
        if not self.conversation.is_open:
            self.settled.emit()
        self._update_views()

    def _update_views(self) -> None:
        for view in self._centre.created_views:
            view.conversation_changed()


def _kept_tokens(tokens: tuple[TurnToken, ...], text: str) -> Iterator[TurnToken]:
    """Yield the tokens that spell the beginning of `text`."""
    at = 0
    for token in tokens:
        if not text.startswith(token.text, at):
            return
        yield token
        at += len(token.text)


def _always() -> bool:
    return True


SLICE_SECONDS = 0.008
"""Time for reading saved chats before the window draws again."""


class ChatLibrary(QObject):
    """Lists, opens, renames, deletes, imports and exports the saved chats. `listToggled`: the list was shown or
    hidden, which is a setting.
    """

    listToggled = Signal()

    def __init__(
        self, chat: ChatController, saver: ChatSaver, centre: Centre, messages: Messages, settings: ChatSection
    ) -> None:
        super().__init__(chat)
        self._settings = settings
        self._chat, self._saver, self._centre, self._messages = chat, saver, centre, messages
        self._found: list[ChatSummary] = []
        self._pending: Iterator[ChatSummary] = iter(())
        self._deleted = ""
        self._views: list[View] = []
        self._timer = QTimer(self, singleShot=True)
        self._timer.timeout.connect(self._read_slice)
        for view in centre.created_views:
            self.connect_view(view)
        centre.viewCreated.connect(self.connect_view)
        for signal in (chat.settled, chat.conversationReplaced):
            signal.connect(self._refresh)

    @property
    def _store(self) -> Any:
        return self._saver.store

    @Slot(object)
    def connect_view(self, view: View) -> None:
        """Connect the requests of a view."""
        signals = view.signals
        signals.chatListRequested.connect(partial(self._list_for, view))
        view.show_chat_list(self._settings.list_shown)
        for signal, slot in (
            (signals.chatListToggled, self._on_toggled),
            (signals.chatOpened, self.open),
            (signals.chatRenamed, self.rename),
            (signals.chatDeleted, self.delete),
            (signals.deletedChatRestored, self.restore_deleted),
            (signals.chatImportRequested, self.choose_import_file),
            (signals.chatExportRequested, self.choose_export_file),
        ):
            signal.connect(slot)

    @Slot(str)
    def open(self, chat: str) -> None:
        """Open a saved chat."""
        if self._is_busy():
            return
        try:
            self._chat.open_chat(chat)
        except ChatUnavailableError as error:
            self._show_error(error)
            self._refresh()
        if notices := self._store.take_notices():
            self._messages.show_notice(" ".join(notices), tr("Chat repaired"))

    @Slot(str, str)
    def rename(self, chat: str, title: str) -> None:
        """Give a chat a title; an empty one restores the beginning of its first message."""
        title = conversation.title_from(title)
        if chat == self._chat.conversation.id:
            self._chat.conversation.title = title
            self._saver.save()
        else:
            self._try(partial(self._store.rename, chat, title))
        self._refresh()

    @Slot(str)
    def delete(self, chat: str) -> None:
        """Delete a chat; it can be restored until the window is closed. A new chat replaces the open one."""
        if self._is_busy():
            return
        name = next((known.name for known in self._found if known.id == chat), "")
        if chat == self._chat.conversation.id:
            name = self._chat.conversation.name
            self._saver.save_pending()
            self._chat.add_chat(Conversation(when_full=self._chat.conversation.when_full))
        if self._try(partial(self._store.delete, chat)):
            self._deleted = name if self._store.can_undelete else ""
        self._refresh()

    @Slot()
    def restore_deleted(self) -> None:
        """Restore the chat that was deleted last, and open it."""
        self._deleted = ""
        if chat := self._store.undelete():
            self.open(chat)
        self._refresh()

    @Slot()
    def choose_import_file(self) -> None:
        """Open a file dialog for chats of other programs."""
        kinds = tr("Chats (*.json *.jsonl)")
        open_file_dialog(self._centre, tr("Import chats (OpenAI, ShareGPT, Decodescope)"), kinds, self.import_file)

    @Slot(str)
    def import_file(self, path: str) -> None:
        """Import the chats of a file, open the first, and name what could not be read."""
        from decodescope.app.storage import chat_formats

        if self._is_busy():
            return
        try:
            chats, problems = chat_formats.read_chats(Path(path))
            for chat in chats[1:]:
                self._store.save(chat)
        except DecodescopeError as error:
            self._show_error(error)
            return
        self._chat.add_chat(chats[0])
        self._centre.show_view("chat")
        count = trn("{n:,} chat imported.", "{n:,} chats imported.", len(chats)).format(n=len(chats))
        left_out = tr("Left out: {problems}.").format(problems="; ".join(problems)) if problems else ""
        if problems or len(chats) > 1:
            self._messages.show_notice(join_sentences(count, left_out), tr("Chats imported"))
        self._refresh()

    @Slot(str, str)
    def choose_export_file(self, chat: str = "", kind: str = "") -> None:
        """Open a file dialog for a chat as `json` or `md` (Markdown), or for either; an empty id means the open one."""
        found = self._conversation(chat)
        if found is None:
            return
        name = "".join(sign if sign.isalnum() or sign in " -_" else "-" for sign in found.name).strip(" -") or "chat"
        titles = {"json": tr("JSON (*.json)"), "md": tr("Markdown (*.md)")}
        kinds = titles.get(kind) or ";;".join(titles.values())
        file = f"{name}.{kind or 'json'}"
        open_save_dialog(self._centre, tr("Export chat"), file, kinds, partial(self.export_file, found.id))

    def export_file(self, chat: str, path: str) -> None:
        """Write a chat as JSON, or as Markdown if the name ends in .md."""
        import json

        from decodescope.app.storage import chat_formats
        from decodescope.app.storage.json_files import write_bytes

        found = self._conversation(chat)
        if found is None:
            return
        if path.lower().endswith((".md", ".markdown")):
            text = chat_formats.chat_to_markdown(found)
        else:
            text = json.dumps(chat_formats.chat_to_json(found), indent=2, ensure_ascii=False) + "\n"
        self._try(partial(write_bytes, Path(path), text.encode("utf-8", "replace")))

    def _conversation(self, chat: str) -> Conversation | None:
        if chat in ("", self._chat.conversation.id):
            return self._chat.conversation
        try:
            found: Conversation = self._store.read(chat)
            return found
        except ChatUnavailableError as error:
            self._show_error(error)
            return None

    def _is_busy(self) -> bool:
        """Return whether an answer is being written; say so."""
        if self._chat.conversation.is_open:
            self._messages.show_notice(tr("Stop the answer or wait for it."), tr("An answer is being written"))
        return self._chat.conversation.is_open

    def _try(self, action: Callable[[], object]) -> bool:
        try:
            action()
        except StorageError as error:
            self._show_error(error)
            return False
        return True

    def _show_error(self, error: DecodescopeError) -> None:
        self._messages.show_setup_error(tr(error.title), error.cause, error.remedy)

    @Slot(bool)
    def _on_toggled(self, is_shown: bool) -> None:
        self._settings.list_shown = is_shown
        for view in self._centre.created_views:
            view.show_chat_list(is_shown)
        self.listToggled.emit()

    def _list_for(self, view: View) -> None:
        if view not in self._views:
            self._views.append(view)
            view.destroyed.connect(partial(self._forget, view))
        self._refresh()

    def _forget(self, view: View) -> None:
        self._views = [known for known in self._views if known is not view]

    @Slot()
    def _refresh(self) -> None:
        """Read the list again, in slices between which the window draws."""
        if self._views:
            self._pending, self._found = self._store.summaries(self._chat.conversation), []
            self._timer.start(0)

    @Slot()
    def _read_slice(self) -> None:
        end = perf_counter() + SLICE_SECONDS
        for summary in self._pending:
            self._found.append(summary)
            if perf_counter() > end:
                self._timer.start(0)
                return
        for view in self._views:
            view.chats_listed(self._found, self._deleted)
