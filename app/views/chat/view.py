"""The chat view: turns as bubbles, the answers with every token's probability, and what each answer cost."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QGuiApplication, QKeyEvent, QKeySequence
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.state.conversation import Conversation, ConversationTurn, format_turns
from app.state.empty_view import CHAT, fill_unsupported_reason
from app.state.run import Run
from app.state.worker_messages import ModelInfo
from app.theme.theme import Theme, theme_for
from app.views.base import Excerpt, Table, View
from app.views.chat.area import EMPTY_HINT, EMPTY_TITLE, ChatArea
from app.views.chat.tools import ChatFooter, ChatTools
from app.views.shared.empty_page import add_fill_button
from app.widgets.focus_ring import FocusRing
from core.events import Event
from resources.language import tr


def _turn_description(turn: ConversationTurn) -> str:
    """The turn for a screen reader: who speaks, and what is said."""
    who = {"user": tr("user"), "assistant": tr("assistant"), "system": tr("system")}.get(turn.role, turn.role)
    return tr("{who}: {words}").format(who=who, words=turn.content)


class ChatView(View):
    """The chat, its tools, and at its foot how full the context is. Tokens of the shown run's answer are picked."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("chatView", parent)
        theme = theme_for("light")
        self.area, self._footer, self._tools = ChatArea(theme, self), ChatFooter(theme, self), ChatTools(self)
        self._ring = FocusRing(self.area)
        self._tools.hide()
        self._info: ModelInfo | None = None
        self.offer = add_fill_button(
            self, self.area, tr("Write the first message"), CHAT, lambda: (tr(EMPTY_TITLE), tr(EMPTY_HINT))
        )
        for part in (self, self.area):
            part.setAccessibleName(tr("Chat"))
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(0)
        self._column.addWidget(self.area, 1)
        self._column.addWidget(self._footer)
        self.setFocusProxy(self.area)
        self._connect()
        self.set_theme(theme)

    def _connect(self) -> None:
        signals, tools = self.signals, self._tools
        tools.newChatRequested.connect(signals.newChatRequested)
        tools.regenerateRequested.connect(signals.regenerateRequested)
        tools.editRequested.connect(signals.editLastRequested)
        self._footer.overflowPolicyChosen.connect(signals.overflowPolicyChosen)
        self.area.tokenPicked.connect(signals.tokenActivated)
        tools.formattingToggled.connect(self.area.set_formatting_enabled)

    @property
    def conversation(self) -> Conversation:
        """The chat that is shown."""
        return self.area.conversation

    def header_widget(self) -> QWidget:
        """The view's tools, for the right end of the tab bar."""
        return self._tools

    def export_table(self) -> Table:
        """A line for each turn."""
        turns = self.conversation.turns
        return [("turn", "role", "text"), *((n, t.role, t.content) for n, t in enumerate(turns, 1))] if turns else ()

    def excerpt(self) -> Excerpt | None:
        """Every turn, with who spoke."""
        turns = [turn.message for turn in self.conversation.turns]
        if not turns:
            return None
        html = "".join(f"<p><b>{escape(turn['role'])}</b>: {escape(turn['content'])}</p>" for turn in turns)
        return Excerpt(format_turns(turns), html.replace("\n", "<br>"))

    def set_conversation(self, conversation: Conversation) -> None:
        """Show that chat from now on."""
        self.area.conversation = conversation
        self.conversation_changed()

    def conversation_changed(self) -> None:
        """A turn came, went or ended."""
        self.area.leave()
        self._arrange()
        last = self.conversation.turns[-1] if self.conversation.turns else None
        description = _turn_description(last) if last is not None else tr(EMPTY_HINT)
        for part in (self, self.area):
            part.setAccessibleDescription(description)

    def set_theme(self, theme: Theme) -> None:
        """Take other colours and sizes at once."""
        for part in (self.area, self._ring, self._footer, self._tools, self.offer):
            part.set_theme(theme)
        self._footer.setFixedHeight(theme.px(38))
        self._footer.setContentsMargins(theme.px(26), 0, theme.px(26), 0)

    def show_run(self, run: Run | None) -> None:
        """The answer of that run is the one whose tokens can be picked."""
        self.area.run = run
        self._arrange()

    def events_arrived(self, run: Run, events: Sequence[Event]) -> None:
        """The answer has grown."""
        self.area.run = run
        self._arrange()

    def cursor_moved(self, run: Run) -> None:
        """Draw the shown answer up to the cursor."""
        self.area.run = run
        self._arrange()

    def selection_changed(self, run: Run) -> None:
        """Outline the selected token."""
        self.area.run = run
        self.area.viewport().update()

    def _arrange(self) -> None:
        """Bring tools, meter and bubbles up to the conversation."""
        self._footer.show_conversation(self.conversation)
        self.area.arrange()
        self._tools.show_conversation(self.conversation, self.area.has_formattable_answer)
        self.offer.update_state(not self.conversation.turns, fill_unsupported_reason(CHAT, self._info), tr(EMPTY_HINT))

    def model_ready(self, info: ModelInfo) -> None:
        """A model is loaded: it may have no template for chats."""
        self._info = info
        self._arrange()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Copy the chat; T folds the latest thinking; walk along the tokens of the latest answer."""
        if event.matches(QKeySequence.StandardKey.Copy):
            QGuiApplication.clipboard().setText(format_turns([turn.message for turn in self.conversation.turns]))
            return
        if event.key() == Qt.Key.Key_T and not event.modifiers() and self.area.toggle_thinking():
            return
        target = self.area.token_for_key(Qt.Key(event.key())) if not event.modifiers() else None
        if target is None:
            super().keyPressEvent(event)
        else:
            self.signals.tokenActivated.emit(target)

    def saved_view_state(self) -> object:
        """How answers are shown."""
        return self.area.formats_answers

    def restore_view_state(self, kept: object) -> None:
        """Show answers as before."""
        if isinstance(kept, bool):
            self._tools.formatted.setChecked(kept)

    def token_rect(self, turn: int, token: int) -> QRectF:
        """Where a token of a turn is drawn, in the area's viewport."""
        return self.area.token_rect(turn, token)
