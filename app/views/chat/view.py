"""The chat view with its tools, the context meter and the policy for a full context."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from PySide6.QtCore import QRectF, QSize, Qt, Signal, Slot
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

from decodescope.app.state.conversation import DROP, RESTART, Conversation, ConversationTurn, format_turns
from decodescope.app.state.empty_view import CHAT, fill_unsupported_reason
from decodescope.app.state.run import Run
from decodescope.app.state.worker_messages import ModelInfo
from decodescope.app.theme.theme import Theme, theme_for
from decodescope.app.theme.themed import Themed
from decodescope.app.views.base import Excerpt, Table, View
from decodescope.app.views.chat.area import EMPTY_HINT, EMPTY_TITLE, ChatArea
from decodescope.app.views.shared.empty_page import add_fill_button
from decodescope.app.widgets.accessibility import AccessibleValue, AccessibleWidget, Role
from decodescope.app.widgets.building import arrange, set_up
from decodescope.app.widgets.overlays import FocusRing
from decodescope.app.widgets.plain_text import caption, tooltip
from decodescope.core.events import Event
from decodescope.resources.language import mark, tr, trn

POLICIES = {DROP: mark("drop the oldest turns"), RESTART: mark("start over")}
_WARNING_FRACTION = 0.85
"""Fraction of the context above which the meter shows the warning colour."""


class ChatTools(Themed, QWidget):
    """Buttons above the chat. `formattingToggled(bool)` says whether answers are shown formatted."""

    newChatRequested = Signal()
    regenerateRequested = Signal()
    editRequested = Signal()
    formattingToggled = Signal(bool)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        row = arrange(QHBoxLayout(self), margins=0, spacing=2)
        self.formatted = self._button(
            tr("Formatted"),
            "formattedButton",
            tr("Show answers as formatted text or as their tokens"),
        )
        self.formatted.setCheckable(True)
        self.formatted.setChecked(True)
        self.formatted.toggled.connect(self.formattingToggled)
        row.addWidget(self.formatted)
        self.regenerate = self._button(
            tr("Regenerate"), "regenerateButton", tr("Write the last answer again with another seed")
        )
        self.edit = self._button(
            tr("Edit"), "editTurnButton", tr("Put your last message back into the editor to change it")
        )
        self.new = self._button(tr("New chat"), "newChatButton", tr("Start a new chat; this one is discarded"))
        for button, signal in (
            (self.regenerate, self.regenerateRequested),
            (self.edit, self.editRequested),
            (self.new, self.newChatRequested),
        ):
            button.clicked.connect(signal)
            row.addWidget(button)

    def show_conversation(self, conversation: Conversation, has_formatted: bool) -> None:
        """Enable the buttons that apply now. `has_formatted`: formatting changes the look of at least one answer."""
        self.regenerate.setEnabled(conversation.can_regenerate)
        self.edit.setEnabled(conversation.can_edit)
        self.formatted.setEnabled(has_formatted or not self.formatted.isChecked())
        self.new.setEnabled(bool(conversation.turns) and not conversation.is_open)

    def restyle(self, theme: Theme) -> None:
        for button in (self.formatted, self.regenerate, self.edit, self.new):
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
        self._policy, self._min_full_width = tr(POLICIES[DROP]), theme.px(500)
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
        self._min_full_width = theme.px(500)
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


class ChatView(View):
    """Chat, its tools and the context meter. Tokens of the shown run's answer can be picked."""

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
        self._column = arrange(QVBoxLayout(self), (self.area, 1), self._footer, margins=0, spacing=0)
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
        self.area.conversation = conversation
        self.conversation_changed()

    def conversation_changed(self) -> None:
        """Update the view after a turn was added, removed or finished."""
        self.area.leave()
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
        self.area.arrange()
        self._tools.show_conversation(self.conversation, self.area.has_formattable_answer)
        self.offer.update_state(not self.conversation.turns, fill_unsupported_reason(CHAT, self._info), tr(EMPTY_HINT))

    def model_ready(self, info: ModelInfo) -> None:
        """Note the loaded model, which may have no chat template."""
        self._info = info
        self._arrange()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Copy the chat, toggle the latest thinking with T, or move along the tokens of the latest answer."""
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
        """Whether answers are shown formatted."""
        return self.area.formats_answers

    def restore_view_state(self, state: object) -> None:
        """Restore whether answers are shown formatted."""
        if isinstance(state, bool):
            self._tools.formatted.setChecked(state)

    def token_rect(self, turn: int, token: int) -> QRectF:
        """Rectangle of a token of a turn, in the area's viewport."""
        return self.area.token_rect(turn, token)
