"""The chat view with its tools, the context meter and the policy for a full context."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from html import escape

from PySide6.QtCore import QPoint, QRectF, QSignalBlocker, QSize, Qt, Signal, Slot
from PySide6.QtGui import (
    QAction,
    QActionGroup,
    QFontMetricsF,
    QGuiApplication,
    QKeyEvent,
    QKeySequence,
    QPainter,
    QPaintEvent,
    QResizeEvent,
)
from PySide6.QtWidgets import QHBoxLayout, QMenu, QPushButton, QToolButton, QVBoxLayout, QWidget

from decodescope.app.state.branching import TokenReplacement
from decodescope.app.state.conversation import (
    CONTINUE,
    DROP,
    RESTART,
    ChatSummary,
    Conversation,
    ConversationTurn,
    format_turns,
)
from decodescope.app.state.empty_view import CHAT, fill_unsupported_reason
from decodescope.app.state.run import Run
from decodescope.app.state.worker_messages import ModelInfo
from decodescope.app.theme.theme import Theme, theme_for
from decodescope.app.theme.themed import Themed
from decodescope.app.views.base import Excerpt, Table, View
from decodescope.app.views.chat.area import EMPTY_HINT, EMPTY_TITLE, ChatArea
from decodescope.app.views.chat.chat_list import ChatList
from decodescope.app.views.chat.system_prompt import SystemPromptBar
from decodescope.app.views.shared.empty_page import add_fill_button
from decodescope.app.widgets.accessibility import AccessibleValue, AccessibleWidget, Role
from decodescope.app.widgets.building import arrange, set_up
from decodescope.app.widgets.overlays import FocusRing
from decodescope.app.widgets.plain_text import caption, tooltip
from decodescope.core import words
from decodescope.core.events import Event
from decodescope.resources.language import mark, tr, trn

POLICIES = {DROP: mark("drop the oldest turns"), RESTART: mark("start over")}
MIN_FULL_WIDTH = 600
"""Width in pixels at 100 % from which the button below the chat names the policy for a full context."""
_WARNING_FRACTION = 0.85
"""Fraction of the context above which the meter shows the warning colour."""


class ChatTools(Themed, QWidget):
    """Buttons above the chat. `formattingToggled(bool)` says whether answers are shown formatted, `listToggled(bool)`
    whether the list of chats is shown.
    """

    newChatRequested = Signal()
    formattingToggled = Signal(bool)
    listToggled = Signal(bool)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        row = arrange(QHBoxLayout(self), margins=0, spacing=2)
        self.chats = self._button(tr("Chats"), "chatsButton", tr("Show the list of saved chats"))
        self.chats.setCheckable(True)
        self.chats.toggled.connect(self.listToggled)
        self.chats.setEnabled(True)
        self.formatted = self._button(
            tr("Formatted"),
            "formattedButton",
            tr("Show answers as formatted text or as their tokens"),
        )
        self.formatted.setCheckable(True)
        self.formatted.setChecked(True)
        self.formatted.toggled.connect(self.formattingToggled)
        self.new = self._button(tr("New chat"), "newChatButton", tr("Start a new chat; this one stays in the list"))
        self.new.clicked.connect(self.newChatRequested)
        for button in (self.chats, self.formatted, self.new):
            row.addWidget(button)

    def show_conversation(self, conversation: Conversation, has_formatted: bool) -> None:
        """Enable the buttons that apply now. `has_formatted`: formatting changes the look of at least one answer."""
        self.formatted.setEnabled(has_formatted or not self.formatted.isChecked())
        self.new.setEnabled(not conversation.is_empty and not conversation.is_open)

    def restyle(self, theme: Theme) -> None:
        for button in (self.chats, self.formatted, self.new):
            button.setFont(theme.font(12))

    def _button(self, title: str, name: str, help_text: str) -> QPushButton:
        button = set_up(QPushButton(caption(title), self), name=name, role="quiet", tooltip=tooltip(help_text))
        button.setAccessibleDescription(help_text)
        button.setCursor(Qt.CursorShape.PointingHandCursor)
        button.setEnabled(False)
        return button


class ContextMeter(Themed, QWidget, AccessibleWidget):
    """Bar and text that show how much of the context the chat uses."""

    accessible_role = Role.ProgressBar

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("contextMeter")
        self._theme = theme
        self.used, self.context = 0, 0

    @property
    def text(self) -> str:
        """Usage as text, such as `143 of 512 tokens of context`."""
        if not self.context:
            return trn("{used:,} token of context", "{used:,} tokens of context", self.used).format(used=self.used)
        return trn(
            "{used:,} of {context:,} token of context", "{used:,} of {context:,} tokens of context", self.context
        ).format(used=self.used, context=self.context)

    def accessible_value(self) -> AccessibleValue | None:
        """Return the usage for a screen reader; None if the context is unlimited."""
        return AccessibleValue(self.used, 0, self.context, text=self.text) if self.context else None

    def set_usage(self, used: int, context: int | None) -> None:
        """Set the number of tokens used and the context size; None means unlimited."""
        self.used, self.context = used, context or 0
        self.setAccessibleName(self.text)
        self.update()

    def sizeHint(self) -> QSize:
        """Return the size of bar and text."""
        return QSize(self._theme.px(320), self._theme.px(30))

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the bar and the text. The bar turns orange when little context is left."""
        painter, theme = QPainter(self), self._theme
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        x = 0.0
        if self.context:
            fraction = min(1.0, self.used / self.context)
            bar = QRectF(0, self.height() / 2 - theme.px(3), theme.px(110), theme.px(6))
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(theme.color("line"))
            painter.drawRoundedRect(bar, bar.height() / 2, bar.height() / 2)
            painter.setBrush(theme.color("warning" if fraction >= _WARNING_FRACTION else "accent"))
            bar.setWidth(max(bar.height(), bar.width() * fraction) if fraction else 0)
            painter.drawRoundedRect(bar, bar.height() / 2, bar.height() / 2)
            x = theme.px(120)
        painter.setFont(theme.font(12, tabular=True))
        painter.setPen(theme.color("muted"))
        words = QFontMetricsF(painter.font()).elidedText(self.text, Qt.TextElideMode.ElideRight, self.width() - x)
        painter.drawText(QRectF(x, 0, self.width() - x, self.height()), Qt.AlignmentFlag.AlignVCenter, words)


class ChatFooter(Themed, QWidget):
    """Context meter and the choice of what happens when the context is full (`overflowPolicyChosen`)."""

    overflowPolicyChosen = Signal(str)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._policy, self._min_full_width = tr(POLICIES[DROP]), theme.px(MIN_FULL_WIDTH)
        self.meter = ContextMeter(theme, self)
        self.overflow_button = set_up(QToolButton(self), name="whenFullButton")
        self.overflow_button.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.overflow_button.setToolTip(tr("What happens when the next message no longer fits into the context"))
        self.overflow_button.setAccessibleName(tr("What happens when the context is full"))
        menu = QMenu(self.overflow_button)
        self._group = QActionGroup(menu)
        for name, title in POLICIES.items():
            action = menu.addAction(tr(title).capitalize())
            action.setCheckable(True)
            action.setData(name)
            self._group.addAction(action)
        self._group.triggered.connect(self._on_action)
        self.overflow_button.setMenu(menu)
        arrange(QHBoxLayout(self), (self.meter, 1), self.overflow_button, margins=0)

    def show_conversation(self, conversation: Conversation) -> None:
        """Update the meter and the policy."""
        self.meter.set_usage(conversation.used_tokens, conversation.context)
        self._policy = tr(POLICIES[conversation.when_full])
        self._update_button_text()
        for action in self._group.actions():
            action.setChecked(action.data() == conversation.when_full)

    def restyle(self, theme: Theme) -> None:
        self._min_full_width = theme.px(MIN_FULL_WIDTH)
        self.overflow_button.setFont(theme.font(12))
        self._update_button_text()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Shorten the button's text if there is little room."""
        super().resizeEvent(event)
        self._update_button_text()

    def _update_button_text(self) -> None:
        roomy = self.contentsRect().width() >= self._min_full_width
        title = tr("When full: {policy}").format(policy=self._policy) if roomy else tr("When full")
        self.overflow_button.setText(f"{title} ⌄")
        self.overflow_button.setAccessibleDescription(self._policy)

    @Slot(QAction)
    def _on_action(self, action: QAction) -> None:
        self.overflowPolicyChosen.emit(action.data())


def _turn_description(turn: ConversationTurn) -> str:
    """Return the turn as a screen reader should read it: role, then content."""
    who = {"user": tr("user"), "assistant": tr("assistant"), "system": tr("system")}.get(turn.role, turn.role)
    return tr("{who}: {words}").format(who=who, words=turn.content)


MIN_WIDTH_WITH_LIST = 720
"""Width in pixels at 100 % from which the list of chats is beside the conversation; below, it covers it."""
MIN_HEIGHT_WITH_LINES = 170
"""Height in pixels at 100 % from which system prompt and context meter are shown."""
MAX_ALTERNATIVES = 6
"""Maximum number of alternatives in the menu of a token."""


class ChatView(View):
    """List of chats, system prompt, conversation with its tools, and the context meter."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("chatView", parent)
        theme = theme_for("light")
        self.area, self._footer, self._tools = ChatArea(theme, self), ChatFooter(theme, self), ChatTools(self)
        self.chats, self.system = ChatList(self), SystemPromptBar(self)
        self.chats.hide()
        self._list_beside, self._list_over = False, False
        """Whether the list is shown beside the conversation where there is room, and whether it covers it."""
        self._ring = FocusRing(self.area)
        self._tools.hide()
        self._info: ModelInfo | None = None
        self._has_input = False
        self.offer = add_fill_button(
            self, self.area, tr("Write the first message"), CHAT, lambda: (tr(EMPTY_TITLE), tr(EMPTY_HINT))
        )
        for part in (self, self.area):
            part.setAccessibleName(tr("Chat"))
        self._talk = QWidget(self)
        self._column = arrange(QVBoxLayout(self._talk), self.system, (self.area, 1), self._footer, margins=0, spacing=0)
        arrange(QHBoxLayout(self), self.chats, (self._talk, 1), margins=0, spacing=0)
        self.setFocusProxy(self.area)
        self._connect()
        self.set_theme(theme)

    def _connect(self) -> None:
        signals, tools, bar, chats = self.signals, self._tools, self.area.bar, self.chats
        for signal, slot in (
            (tools.newChatRequested, self._on_new_chat),
            (tools.formattingToggled, self.area.set_formatting_enabled),
            (tools.listToggled, self._on_list_toggled),
            (self._footer.overflowPolicyChosen, signals.overflowPolicyChosen),
            (self.system.changed, signals.systemPromptChosen),
            (self.area.tokenPicked, self._on_token),
            (self.area.tokenMenuRequested, self._show_menu),
            (self.area.turnEdited, signals.turnEdited),
            (bar.siblingRequested, self._on_sibling),
            (bar.regenerateRequested, lambda: signals.regenerateRequested.emit(bar.turn)),
            (bar.copyRequested, self._copy_turn),
            (bar.tokensRequested, self._show_tokens),
            (bar.settingsRequested, lambda: signals.turnSettingsRequested.emit(bar.turn)),
            (chats.opened, self._on_chat_opened),
            (chats.renamed, signals.chatRenamed),
            (chats.deleted, signals.chatDeleted),
            (chats.undone, signals.deletedChatRestored),
            (chats.newRequested, self._on_new_chat),
            (chats.importRequested, signals.chatImportRequested),
            (chats.exportRequested, signals.chatExportRequested),
        ):
            signal.connect(slot)

    def set_message_input(self, is_shown: bool) -> None:
        """Offer to write the first message only while there is no input for it."""
        self._has_input = is_shown
        self._arrange()

    # The list of chats

    def show_chat_list(self, is_shown: bool) -> None:
        """Show or hide the list of chats beside the conversation."""
        self._list_beside = is_shown
        self._update_list()

    def chats_listed(self, chats: Sequence[ChatSummary], deleted: str) -> None:
        """Show the saved chats."""
        self.chats.show_chats(chats, deleted)

    @property
    def _is_wide(self) -> bool:
        return self.width() >= self._theme.px(MIN_WIDTH_WITH_LIST)

    def _update_list(self) -> None:
        is_shown = self._list_beside if self._is_wide else self._list_over
        if is_shown and self.chats.isHidden():
            self.signals.chatListRequested.emit()
        self.chats.setVisible(is_shown)
        self.chats.set_covering(not self._is_wide)
        self._talk.setVisible(not is_shown or self._is_wide)
        with QSignalBlocker(self._tools.chats):
            self._tools.chats.setChecked(is_shown)

    @Slot(bool)
    def _on_list_toggled(self, on: bool) -> None:
        if self._is_wide:
            self._list_beside = on
            self.signals.chatListToggled.emit(on)
        else:
            self._list_over = on
        self._update_list()

    def _close_covering_list(self) -> None:
        self._list_over = False
        self._update_list()

    @Slot(str)
    def _on_chat_opened(self, chat: str) -> None:
        self._close_covering_list()
        self.signals.chatOpened.emit(chat)

    @Slot()
    def _on_new_chat(self) -> None:
        self._close_covering_list()
        self.signals.newChatRequested.emit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Show the list beside the conversation, and the lines above and below it, if there is room."""
        super().resizeEvent(event)
        self._update_list()
        self._update_lines()

    def _update_lines(self) -> None:
        is_high = self.height() >= self._theme.px(MIN_HEIGHT_WITH_LINES)
        self._footer.setVisible(is_high)
        self.system.setVisible(is_high and not self.area.hides_tools)

    # Turns

    @Slot(object, int)
    def _on_token(self, turn: ConversationTurn, token: int) -> None:
        """Show the run that wrote the answer, and select the token."""
        if turn.run is not None and turn.run is not self.area.run:
            self.signals.runActivated.emit(turn.run)
        if turn.run is self.area.run:
            self.signals.tokenActivated.emit(token)

    @Slot(int)
    def _on_sibling(self, step: int) -> None:
        turn = self.area.bar.turn
        if turn is None:
            return
        place = turn.number - 1 + step
        self.signals.siblingRequested.emit(turn, step)
        if 0 <= place < len(turn.siblings):
            self.area.show_tools_of(turn.siblings[place])
            run = turn.siblings[place].run
            if run is not None and run is not self.area.run:
                self.signals.runActivated.emit(run)

    @Slot()
    def _copy_turn(self) -> None:
        if self.area.bar.turn is not None:
            QGuiApplication.clipboard().setText(self.area.bar.turn.text)

    @Slot()
    def _show_tokens(self) -> None:
        """Show the run that wrote the answer in all views; one of an earlier session is opened from the history."""
        turn = self.area.bar.turn
        if turn is not None and turn.run is not None:
            self.signals.runActivated.emit(turn.run)
        elif turn is not None and turn.run_id:
            self.signals.relatedRunRequested.emit(turn.run_id)
        self._tools.formatted.setChecked(False)

    @Slot(object, int, object)
    def _show_menu(self, turn: ConversationTurn, token: int, position: QPoint) -> None:
        """Show what can be done at a token, or with a turn."""
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.fill_turn_menu(menu, turn, token)
        menu.popup(position)

    def fill_turn_menu(self, menu: QMenu, turn: ConversationTurn, token: int) -> None:
        """Add the actions for a token of a turn, or for the turn if `token` is −1."""
        is_busy, run = self.conversation.is_open, turn.run
        if run is not None and 0 <= token < len(run.tokens) and turn.role == "assistant":
            chosen = run.tokens[token]
            text = self.area.text_before(turn, token)
            name = words.quote(chosen.piece, chosen.is_special)
            onward = menu.addAction(caption(tr("Continue after {word}").format(word=name)))
            onward.setEnabled(not is_busy and text != turn.text)
            onward.triggered.connect(lambda: self.signals.turnEdited.emit(turn, text, CONTINUE))
            others = [item for item in chosen.alternatives if item.id != chosen.id][:MAX_ALTERNATIVES]
            if others:
                menu.addSeparator()
            for item in others:
                title = tr("Write {word} instead ({percent})").format(
                    word=words.quote(item.text, item.special), percent=words.percent(item.raw_probability)
                )
                action = menu.addAction(caption(title))
                action.setEnabled(not is_busy)
                action.triggered.connect(partial(self._replace_token, turn, token, item.id))
            menu.addSeparator()
        edit = menu.addAction(caption(tr("Edit")), lambda: self._edit(turn))
        edit.setEnabled(not is_busy)
        if turn.role == "assistant":
            again = menu.addAction(caption(tr("Regenerate")), lambda: self.signals.regenerateRequested.emit(turn))
            again.setEnabled(not is_busy)
        menu.addAction(caption(tr("Copy")), lambda: QGuiApplication.clipboard().setText(turn.text))

    def _edit(self, turn: ConversationTurn) -> None:
        self.area.show_tools_of(turn)
        self.area.edit_current()

    def _replace_token(self, turn: ConversationTurn, token: int, other: int) -> None:
        self._on_token(turn, token)
        if turn.run is self.area.run:
            self.signals.branchRequested.emit(TokenReplacement(token, other))

    def set_presenting(self, on: bool) -> None:
        """Leave out what an audience cannot use."""
        self.area.hides_tools = on
        self._update_lines()
        self.area.arrange()

    @property
    def conversation(self) -> Conversation:
        """The shown chat."""
        return self.area.conversation

    def header_widget(self) -> QWidget:
        """Return the widget at the right end of the tab bar."""
        return self._tools

    def export_table(self) -> Table:
        """Return one row per turn."""
        turns = self.conversation.turns
        return [("turn", "role", "text"), *((n, t.role, t.content) for n, t in enumerate(turns, 1))] if turns else ()

    def excerpt(self) -> Excerpt | None:
        """Return every turn with its role."""
        turns = [turn.message for turn in self.conversation.turns]
        if not turns:
            return None
        html = "".join(f"<p><b>{escape(turn['role'])}</b>: {escape(turn['content'])}</p>" for turn in turns)
        return Excerpt(format_turns(turns), html.replace("\n", "<br>"))

    def set_conversation(self, conversation: Conversation) -> None:
        """Show another chat."""
        self.area.show_chat(conversation)
        self.conversation_changed()

    def conversation_changed(self) -> None:
        """Update the view after a turn was added, removed or finished."""
        self.area.leave()
        if self._list_over and self.conversation.is_open:  # the answer would be hidden
            self._close_covering_list()
        self._arrange()
        last = self.conversation.turns[-1] if self.conversation.turns else None
        description = _turn_description(last) if last is not None else tr(EMPTY_HINT)
        for part in (self, self.area):
            part.setAccessibleDescription(description)

    def restyle(self, theme: Theme) -> None:
        self._footer.setFixedHeight(theme.px(38))
        self._footer.setContentsMargins(theme.px(26), 0, theme.px(26), 0)

    def show_run(self, run: Run | None) -> None:
        """Make the tokens of that run's answer selectable."""
        self.area.run = run
        self._arrange()

    def events_arrived(self, run: Run, events: Sequence[Event]) -> None:
        """Draw the new tokens of the answer."""
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
        """Update the tools, the meter and the bubbles."""
        self._footer.show_conversation(self.conversation)
        self.system.show_text(self.conversation.system)
        self.chats.show_open(self.conversation.id)
        self.area.arrange()
        self._tools.show_conversation(self.conversation, self.area.has_formattable_answer)
        is_offered = not self.conversation.turns and not self._has_input
        self.offer.update_state(is_offered, fill_unsupported_reason(CHAT, self._info), tr(EMPTY_HINT))

    def model_ready(self, info: ModelInfo) -> None:
        """Note the loaded model, which may have no chat template."""
        self._info = info
        self._arrange()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Copy the chat, choose a turn with Page Up and Page Down, edit it with E, toggle the latest thinking with T,
        or move along the tokens of the latest answer.
        """
        if event.matches(QKeySequence.StandardKey.Copy):
            QGuiApplication.clipboard().setText(format_turns([turn.message for turn in self.conversation.turns]))
            return
        step = {Qt.Key.Key_PageUp: -1, Qt.Key.Key_PageDown: 1}.get(Qt.Key(event.key()))
        if step is not None and not event.modifiers():
            self.area.choose_turn(step)
            return
        if event.key() in (Qt.Key.Key_E, Qt.Key.Key_F2) and not event.modifiers():
            self.area.edit_current()
            return
        if event.key() == Qt.Key.Key_T and not event.modifiers() and self.area.toggle_thinking():
            return
        target = self.area.token_for_key(Qt.Key(event.key())) if not event.modifiers() else None
        if target is None:
            super().keyPressEvent(event)
        else:
            self.signals.tokenActivated.emit(target)

    def saved_view_state(self) -> object:
        """Return whether answers are shown formatted."""
        return self.area.formats_answers

    def restore_view_state(self, state: object) -> None:
        """Restore whether answers are shown formatted."""
        if isinstance(state, bool):
            self._tools.formatted.setChecked(state)

    def token_rect(self, turn: int, token: int) -> QRectF:
        """Rectangle of a token of a turn, in the area's viewport."""
        return self.area.token_rect(turn, token)
