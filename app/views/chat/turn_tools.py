"""Tools of one turn of a chat: the bar below it, and the editor in its place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from PySide6.QtCore import QEvent, QObject, QRect, Qt, Signal, Slot
from PySide6.QtGui import QKeyEvent, QTextCursor
from PySide6.QtWidgets import QFrame, QHBoxLayout, QMenu, QPushButton, QToolButton, QVBoxLayout, QWidget

from decodescope.app.state import setting_values
from decodescope.app.state.conversation import CONTINUE, SAVE, SEND, ConversationTurn, adapters_in
from decodescope.app.theme.theme import Theme, tab_distance
from decodescope.app.theme.themed import Themed
from decodescope.app.widgets import text_documents
from decodescope.app.widgets.building import STRETCH, arrange, set_up
from decodescope.app.widgets.icons import IconButton
from decodescope.app.widgets.plain_text import PlainLabel, caption, tooltip
from decodescope.app.widgets.text_documents import ExactTextEdit, wrap_mode
from decodescope.core import cut_short
from decodescope.resources.language import join_names, tr

MAX_SETTINGS = 14
"""Maximum number of settings listed in the menu of a turn."""


class TurnBar(Themed, QWidget):
    """Buttons for one turn: its other versions, edit, regenerate, copy, and a menu.

    Emits `siblingRequested(step)`, `editRequested`, `regenerateRequested`, `copyRequested`, `tokensRequested` (show the
    run that wrote the answer) and `settingsRequested` (apply the settings that it was made with).
    """

    siblingRequested = Signal(int)
    editRequested = Signal()
    regenerateRequested = Signal()
    copyRequested = Signal()
    tokensRequested = Signal()
    settingsRequested = Signal()

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("turnBar")
        self.turn: ConversationTurn | None = None
        self.previous = self._button("chevron-left", tr("Previous version"), "previousAnswer")
        self.number = set_up(PlainLabel(), name="answerNumber", role="muted")
        self.next = self._button("chevron-right", tr("Next version"), "nextAnswer")
        self.edit = self._button("pencil", tr("Edit"), "editTurnButton")
        self.regenerate = self._button("refresh", tr("Regenerate"), "regenerateButton")
        self.regenerate.setToolTip(tooltip(tr("Write another answer beside this one")))
        self.copy = self._button("copy", tr("Copy"), "copyTurnButton")
        self.more = self._button("more", tr("More"), "turnMenuButton")
        self.more.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.more.setMenu(QMenu(self.more))
        self.more.menu().aboutToShow.connect(self._fill_menu)
        self.previous.clicked.connect(lambda: self.siblingRequested.emit(-1))
        self.next.clicked.connect(lambda: self.siblingRequested.emit(1))
        for button, signal in (
            (self.edit, self.editRequested),
            (self.regenerate, self.regenerateRequested),
            (self.copy, self.copyRequested),
        ):
            button.clicked.connect(signal)
        parts = (self.previous, self.number, self.next, self.edit, self.regenerate, self.copy, self.more)
        arrange(QHBoxLayout(self), *parts, margins=0, spacing=0)

    def show_turn(self, turn: ConversationTurn, is_busy: bool) -> None:
        """Show the buttons for `turn`; those that change the chat are disabled while an answer is being written."""
        self.turn = turn
        count, number = len(turn.siblings), turn.number
        for part in (self.previous, self.number, self.next):
            part.setVisible(count > 1)
        self.number.setText(f"{number}/{count}")
        self.number.setAccessibleName(tr("Version {number} of {count}").format(number=number, count=count))
        self.previous.setEnabled(number > 1 and not is_busy)
        self.next.setEnabled(number < count and not is_busy)
        is_answer = turn.role == "assistant"
        self.edit.setEnabled(not is_busy)
        self.edit.setToolTip(
            tooltip(tr("Edit this answer and continue it") if is_answer else tr("Edit this message and send it again"))
        )
        self.regenerate.setVisible(is_answer)
        self.regenerate.setEnabled(not is_busy)
        self.more.setVisible(is_answer and bool(turn.made_with or turn.run_id))
        self.adjustSize()

    def restyle(self, theme: Theme) -> None:
        self.number.setFont(theme.font(12, tabular=True))
        self.adjustSize()

    def _button(self, icon: str, title: str, name: str) -> IconButton:
        button = IconButton(icon, title, self)
        button.setObjectName(name)
        button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        return button

    @Slot()
    def _fill_menu(self) -> None:
        """List what the turn was made with, and what can be done with it."""
        menu = self.more.menu()
        menu.clear()
        if self.turn is None:
            return
        if self.turn.run_id:
            menu.addAction(caption(tr("Show its tokens in all views")), self.tokensRequested.emit)
        if not self.turn.made_with:
            return
        menu.addAction(caption(tr("Use its settings again")), self.settingsRequested.emit)
        again = menu.addAction(caption(tr("Regenerate with its settings")), self._regenerate_alike)
        again.setEnabled(self.regenerate.isEnabled())
        menu.addSeparator()
        for title, value in made_with_rows(self.turn.made_with):
            menu.addAction(caption(f"{title}: {value}")).setEnabled(False)

    @Slot()
    def _regenerate_alike(self) -> None:
        """Write another answer with the model, adapters and settings of this one."""
        self.settingsRequested.emit()
        self.regenerateRequested.emit()


def made_with_rows(settings: Mapping[str, Any]) -> Sequence[tuple[str, str]]:
    """Return what an answer was made with, as titles and values: model, strategy, changed settings, drafts, seed."""
    from decodescope.core import strategies

    load = settings.get("load", {})
    strategy = strategies.registry.get(str(settings.get("strategy", "")))
    rows = [
        (tr("Model"), Path(str(load.get("model", ""))).name),
        (tr("Strategy"), tr(strategy.title) if strategy is not None else str(settings.get("strategy", ""))),
    ]
    known = {one.name: one for one in strategy.parameters} if strategy is not None else {}
    for name, value in {**settings.get("config", {}), **settings.get("options", {})}.items():
        if name not in known or name == "max_new_tokens" or value != known[name].default:
            title = tr(known[name].title) if name in known else name
            rows.append((title, setting_values.short_text(value)))
    if drafts := settings.get("draft_names"):
        rows.append((tr("Draft models"), join_names(Path(str(name)).name for name in drafts)))
    if settings.get("cache", "dynamic") != "dynamic":
        rows.append((tr("Cache"), str(settings["cache"])))
    if names := adapters_in(settings):
        rows.append((tr("Adapters"), join_names(names)))
    rows.append((tr("Seed"), str(settings.get("seed", ""))))
    shown = [(title, cut_short(value, 60)) for title, value in rows if value]
    return shown[:MAX_SETTINGS]


class TurnEditor(Themed, QFrame):
    """Edits a turn in its place in the chat. Emits `done(text, action)` with an action of `app.state.conversation`, and
    `cancelled`.
    """

    done = Signal(str, str)
    cancelled = Signal()
    resized = Signal()

    MIN_LINES, MAX_LINES = 2, 16

    def __init__(self, parent: QWidget, turn: ConversationTurn) -> None:
        super().__init__(parent)
        self.turn = turn
        set_up(self, name="turnEditor", role="card")
        is_answer = turn.role == "assistant"
        self.text = ExactTextEdit(self)
        self.text.setDocument(text_documents.create_bidi_document(self.text))
        set_up(self.text, name="turnText", accessible_name=tr("Text of the answer") if is_answer else tr("Message"))
        self.text.setTabChangesFocus(True)
        self.text.setWordWrapMode(wrap_mode(turn.content))
        self.text.setPlainText(turn.content)
        self.text.moveCursor(QTextCursor.MoveOperation.End)
        self._action = CONTINUE if is_answer else SEND
        title = tr("Continue") if is_answer else tr("Send")
        self.accept = set_up(
            QPushButton(caption(title)), name="continueButton", role="primary", clicked=self._on_accept
        )
        self.accept.setToolTip(tooltip(f"{title} (Ctrl+Enter)"))
        self.save = set_up(QPushButton(tr("Save")), name="saveTurnButton", clicked=self._on_save)
        self.save.setToolTip(tooltip(tr("Keep this text as a version of its own, without continuing it")))
        cancel = set_up(QPushButton(tr("Cancel")), name="cancelEditButton", role="quiet", clicked=self.cancelled)
        row = arrange(QHBoxLayout(), STRETCH, cancel, self.save, self.accept, margins=0, spacing=8)
        self._column = arrange(QVBoxLayout(self), self.text, row, spacing=8)
        self.text.document().documentLayout().documentSizeChanged.connect(self._fit)
        self.text.textChanged.connect(self._fit)
        self.text.installEventFilter(self)

    def restyle(self, theme: Theme) -> None:
        self._column.setContentsMargins(*(theme.px(10) for _side in range(4)))
        self.text.setFont(theme.font(15))
        self.text.setTabStopDistance(tab_distance(self.text.font()))
        self._fit()

    @Slot()
    def _fit(self) -> None:
        """Fit the height to the text, which QPlainTextEdit measures in lines."""
        lines = min(self.MAX_LINES, max(self.MIN_LINES, round(self.text.document().size().height())))
        frame = 2 * (self.text.frameWidth() + round(self.text.document().documentMargin())) + 4
        height = lines * self.text.fontMetrics().lineSpacing() + frame
        if height != self.text.height():
            self.text.setFixedHeight(height)
            self.resized.emit()

    def place(self, rect: QRect) -> None:
        """Move to a rectangle of the page."""
        if rect != self.geometry():
            self.setGeometry(rect)
            self._fit()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Cancel with Esc and accept with Ctrl+Enter, which are otherwise shortcuts of the window."""
        if not isinstance(event, QKeyEvent):
            return False
        is_enter = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        accepts = is_enter and bool(event.modifiers() & Qt.KeyboardModifier.ControlModifier)
        if not accepts and event.key() != Qt.Key.Key_Escape:
            return False
        if event.type() == QEvent.Type.ShortcutOverride:
            event.accept()
        elif event.type() == QEvent.Type.KeyPress:
            self._on_accept() if accepts else self.cancelled.emit()
        return True

    @Slot()
    def _on_accept(self) -> None:
        self.done.emit(self.text.toPlainText(), self._action)

    @Slot()
    def _on_save(self) -> None:
        self.done.emit(self.text.toPlainText(), SAVE)
