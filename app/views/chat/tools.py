"""What can be done with a chat, and how full the model's context is."""

from __future__ import annotations

from PySide6.QtCore import QRectF, QSize, Qt, Signal, Slot
from PySide6.QtGui import QAction, QActionGroup, QFontMetricsF, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QMenu, QPushButton, QToolButton, QWidget

from app.state.conversation import DROP, RESTART, Conversation
from app.theme.theme import Theme
from app.widgets.accessibility import AccessibleValue, AccessibleWidget, Role
from app.widgets.plain_text import caption, tooltip
from resources.language import mark, tr, trn

POLICIES = {DROP: mark("drop the oldest turns"), RESTART: mark("start anew")}
_WARNING_FRACTION = 0.85
"""Share of the context from which on the meter warns."""


class ChatTools(QWidget):
    """`newChatRequested`, `regenerateRequested`, `editRequested`; `formattingToggled(bool)`: how answers are shown."""

    newChatRequested = Signal()
    regenerateRequested = Signal()
    editRequested = Signal()
    formattingToggled = Signal(bool)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(2)
        self.formatted = self._button(
            tr("Formatted"),
            "formattedButton",
            tr("Show answers as formatted text, or as the tokens that were written"),
        )
        self.formatted.setCheckable(True)
        self.formatted.setChecked(True)
        self.formatted.toggled.connect(self.formattingToggled)
        row.addWidget(self.formatted)
        self.regenerate = self._button(
            tr("Regenerate"), "regenerateButton", tr("Write the last answer anew, by another seed")
        )
        self.edit = self._button(
            tr("Edit"), "editTurnButton", tr("Take your last message back into the editor to change it")
        )
        self.new = self._button(tr("New chat"), "newChatButton", tr("Begin a new chat; this one is gone then"))
        for button, signal in (
            (self.regenerate, self.regenerateRequested),
            (self.edit, self.editRequested),
            (self.new, self.newChatRequested),
        ):
            button.clicked.connect(signal)
            row.addWidget(button)

    def show_conversation(self, conversation: Conversation, has_formatted: bool) -> None:
        """Offer what is possible now; `has_formatted`: some answer looks different when it is formatted."""
        self.regenerate.setEnabled(conversation.can_regenerate)
        self.edit.setEnabled(conversation.can_edit)
        self.formatted.setEnabled(has_formatted or not self.formatted.isChecked())
        self.new.setEnabled(bool(conversation.turns) and not conversation.is_open)

    def set_theme(self, theme: Theme) -> None:
        """Take the theme's sizes."""
        for button in (self.formatted, self.regenerate, self.edit, self.new):
            button.setFont(theme.font(12))

    def _button(self, title: str, name: str, help_text: str) -> QPushButton:
        button = QPushButton(caption(title), self)
        button.setObjectName(name)
        button.setProperty("role", "quiet")
        button.setToolTip(tooltip(help_text))
        button.setAccessibleDescription(help_text)
        button.setCursor(Qt.CursorShape.PointingHandCursor)
        button.setEnabled(False)
        return button


class ContextMeter(QWidget, AccessibleWidget):
    """A bar and figures: how much of the context the chat takes."""

    accessible_role = Role.ProgressBar

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("contextMeter")
        self._theme = theme
        self.used, self.context = 0, 0

    @property
    def text(self) -> str:
        """`143 of 512 tokens of context`."""
        if not self.context:
            return trn("{used:,} token of context", "{used:,} tokens of context", self.used).format(used=self.used)
        return trn(
            "{used:,} of {context:,} token of context", "{used:,} of {context:,} tokens of context", self.context
        ).format(used=self.used, context=self.context)

    def accessible_value(self) -> AccessibleValue | None:
        """How full it is; nothing where there is no end."""
        return AccessibleValue(self.used, 0, self.context, text=self.text) if self.context else None

    def set_usage(self, used: int, context: int | None) -> None:
        """Tokens used, and all there are; None where there is no end."""
        self.used, self.context = used, context or 0
        self.setAccessibleName(self.text)
        self.update()

    def set_theme(self, theme: Theme) -> None:
        """Take other colours and sizes."""
        self._theme = theme
        self.update()

    def sizeHint(self) -> QSize:
        """Bar and words."""
        return QSize(self._theme.px(320), self._theme.px(30))

    def paintEvent(self, event: QPaintEvent) -> None:
        """Bar, then words; orange when little is left."""
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


class ChatFooter(QWidget):
    """The meter, and what is done when the context is full (`overflowPolicyChosen`)."""

    overflowPolicyChosen = Signal(str)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._policy, self._min_full_width = tr(POLICIES[DROP]), theme.px(500)
        self.meter = ContextMeter(theme, self)
        self.overflow_button = QToolButton(self)
        self.overflow_button.setObjectName("whenFullButton")
        self.overflow_button.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.overflow_button.setToolTip(tr("What is done when the next message has no place in the context any more"))
        self.overflow_button.setAccessibleName(tr("What is done when the context is full"))
        menu = QMenu(self.overflow_button)
        self._group = QActionGroup(menu)
        for name, title in POLICIES.items():
            action = menu.addAction(tr(title).capitalize())
            action.setCheckable(True)
            action.setData(name)
            self._group.addAction(action)
        self._group.triggered.connect(self._on_action)
        self.overflow_button.setMenu(menu)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(self.meter, 1)
        row.addWidget(self.overflow_button)

    def show_conversation(self, conversation: Conversation) -> None:
        """Bring figures and policy up to date."""
        self.meter.set_usage(conversation.used_tokens, conversation.context)
        self._policy = tr(POLICIES[conversation.when_full])
        self._update_button_text()
        for action in self._group.actions():
            action.setChecked(action.data() == conversation.when_full)

    def set_theme(self, theme: Theme) -> None:
        """Take other colours and sizes."""
        self._min_full_width = theme.px(500)
        self.meter.set_theme(theme)
        self.overflow_button.setFont(theme.font(12))
        self._update_button_text()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Where there is little room the figures go first."""
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
