"""The chat view: turns as bubbles, the answers with every token's probability, and what each answer cost."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QPointF, QRectF, Qt, QTimer, Signal, Slot
from PySide6.QtGui import (
    QGuiApplication,
    QKeyEvent,
    QKeySequence,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QResizeEvent,
    QShowEvent,
)
from PySide6.QtWidgets import QWidget

from app.state.conversation import Conversation, format_turns
from app.state.run import Run
from app.theme.theme import Theme, theme_for
from app.views.chat.bubbles import Bubble, Bubbles
from app.views.chat.tools import ChatFoot, ChatTools
from app.views.shared.empty_page import paint_empty_page
from app.views.text.paint import Look
from app.views.text.walk import step
from app.views.text.wording import figures, token_text
from app.views.tokens.headings import is_waiting
from app.widgets.hover_area import HoverArea
from app.widgets.popover import Popover
from core.events import Event

HOVER_MS = 250
TITLE = "A chat, turn by turn"
HINT = "Choose Chat above the prompt, write a message and press Ctrl+Enter. Each answer says what it could reuse."


class ChatView(HoverArea):
    """`tokenActivated(i)`: token i of the run that the session shows was picked; the others ask for what they say."""

    tokenActivated = Signal(int)
    newWanted = Signal()
    regenerateWanted = Signal()
    editWanted = Signal()
    whenFullChosen = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent, objectName="chatView")
        theme = theme_for("light")
        self.conversation = Conversation()
        self._run: Run | None = None
        self._look = Look(theme)
        self._bubbles = Bubbles()
        self._hovered: tuple[Bubble, int] | None = None
        self._popover = Popover(theme, self)
        self._foot = ChatFoot(theme, self)
        self._foot.whenFullChosen.connect(self.whenFullChosen)
        self._tools = ChatTools(self)
        self._tools.hide()
        for name in ("newWanted", "regenerateWanted", "editWanted"):
            getattr(self._tools, name).connect(getattr(self, name))
        self._timer = QTimer(self, singleShot=True, interval=HOVER_MS)
        self._timer.timeout.connect(self._show_popover)
        self.setAccessibleName("Chat")
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.viewport().setMouseTracking(True)
        self.set_theme(theme)

    # What the shell calls

    def header_widget(self) -> QWidget:
        """The view's tools, for the right end of the tab bar."""
        return self._tools

    def set_conversation(self, conversation: Conversation) -> None:
        """Show that chat from now on."""
        self.conversation = conversation
        self.conversation_changed()

    def conversation_changed(self) -> None:
        """A turn came, went or ended."""
        self.leave()
        self._arrange()
        last = self.conversation.turns[-1] if self.conversation.turns else None
        self.setAccessibleDescription(f"{last.role}: {last.content}" if last is not None else HINT)

    def set_theme(self, theme: Theme) -> None:
        """Take other colours and sizes at once."""
        self._look.theme = theme
        for part in (self._popover, self._foot, self._tools):
            part.set_theme(theme)
        self.verticalScrollBar().setSingleStep(theme.px(35))
        self._arrange()

    def show_run(self, run: Run | None) -> None:
        """The answer of that run is the one whose tokens can be picked."""
        self._run = run
        self._arrange()

    def events_arrived(self, run: Run, events: Sequence[Event]) -> None:
        """The answer has grown."""
        self._run = run
        self._arrange()

    def cursor_moved(self, run: Run) -> None:
        """Draw the shown answer up to the cursor."""
        self._run = run
        self._arrange()

    def selection_changed(self, run: Run) -> None:
        """Outline the selected token."""
        self._run = run
        self.viewport().update()

    # Geometry

    def _padding(self) -> QPointF:
        return QPointF(self._look.theme.px(26), self._look.theme.px(20))

    def _arrange(self) -> None:
        """Bring bubbles, scroll bar, tools and meter up to the conversation; what is not seen waits."""
        self._tools.show_conversation(self.conversation)
        self._foot.show_conversation(self.conversation)
        if not self.isVisible():
            return
        bar, pad, foot = self.verticalScrollBar(), self._padding(), self._look.theme.px(38)
        at_end = bar.value() >= bar.maximum() - 2
        self.setViewportMargins(0, 0, 0, foot)
        self._foot.setGeometry(round(pad.x()), self.height() - foot, round(self.width() - 2 * pad.x()), foot)
        self._bubbles.arrange(self.conversation, self.viewport().width() - 2 * pad.x(), self._look.theme)
        height = self.viewport().height()
        bar.setPageStep(height)
        bar.setRange(0, max(0, round(self._bubbles.height + 2 * pad.y()) - height))
        if at_end:
            bar.setValue(bar.maximum())
        self.viewport().update()

    def _origin(self) -> QPointF:
        """Where the page's corner lies in the viewport."""
        pad = self._padding()
        return QPointF(pad.x(), pad.y() - self.verticalScrollBar().value())

    def _token_at(self, place: QPointF) -> tuple[Bubble, int] | None:
        point = place - self._origin()
        bubble = self._bubbles.at(point.x(), point.y())
        if bubble is None or bubble.column is None:
            return None
        token = bubble.column.token_at(point.x(), point.y())
        return None if token is None else (bubble, token)

    def _current(self) -> Bubble | None:
        """The bubble of the run that the session shows."""
        return next((b for b in self._bubbles.all if b.turn.run is not None and b.turn.run is self._run), None)

    # Painting

    def paintEvent(self, event: QPaintEvent) -> None:
        """The bubbles in sight."""
        painter, theme = QPainter(self.viewport()), self._look.theme
        painter.fillRect(event.rect(), theme.color("window"))
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if not self._bubbles.all:
            paint_empty_page(painter, self.viewport().rect(), theme, TITLE, HINT)
            return
        top = event.rect().top() - self._origin().y()
        bottom = top + event.rect().height()
        painter.translate(self._origin())
        for bubble in self._bubbles.all:
            if bubble.rect.bottom() + theme.px(80) >= top and bubble.rect.top() <= bottom:
                bubble.paint(painter, self._look_of(bubble), top, bottom)

    def _look_of(self, bubble: Bubble) -> Look:
        """Selection and newest token belong to one bubble only."""
        look, run = self._look, self._run
        shown = run is not None and bubble.turn.run is run
        look.selected = run.selected if shown and run is not None else None
        look.newest = run.cursor - 1 if shown and run is not None and is_waiting(run) and run.cursor else None
        look.hovered = self._hovered[1] if self._hovered is not None and self._hovered[0] is bubble else None
        return look

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Break the rows anew."""
        super().resizeEvent(event)
        self._arrange()

    def showEvent(self, event: QShowEvent) -> None:
        """Catch up with what came while it was hidden, and begin at the end."""
        super().showEvent(event)
        self._arrange()
        self.verticalScrollBar().setValue(self.verticalScrollBar().maximum())

    # Mouse and keyboard

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Pick a token of the latest answer."""
        found = self._token_at(event.position())
        if event.button() == Qt.MouseButton.LeftButton and found is not None and found[0] is self._current():
            self.tokenActivated.emit(found[1])

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Tell of the token under the pointer."""
        found = self._token_at(event.position())
        if found == self._hovered:
            return
        self.leave()
        self._hovered = found
        self.viewport().update()
        if found is not None:
            self._timer.start()

    @Slot()
    def _show_popover(self) -> None:
        if self._hovered is None or not self.isVisible():
            return
        bubble, token = self._hovered
        run, column = bubble.turn.run, bubble.column
        if run is None or column is None or token >= len(run.tokens):
            return
        rect = column.rects(token)[0].translated(self._origin()).toAlignedRect()
        rect.moveTo(self.viewport().mapToGlobal(rect.topLeft()))
        chosen = run.tokens[token]
        vocabulary = run.started.vocabulary if run.started else 0
        self._popover.show_rows(token_text(chosen.piece), figures(chosen, vocabulary), rect)

    def leave(self) -> None:
        """Forget the token under the pointer."""
        self._hovered = None
        self._timer.stop()
        self._popover.hide()
        self.viewport().update()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Copy the chat; walk along the tokens of the latest answer."""
        if event.matches(QKeySequence.StandardKey.Copy):
            QGuiApplication.clipboard().setText(format_turns([turn.message for turn in self.conversation.turns]))
        elif not self._walk(event):
            super().keyPressEvent(event)

    def _walk(self, event: QKeyEvent) -> bool:
        bubble, run = self._current(), self._run
        if bubble is None or bubble.column is None or run is None or not run.cursor or event.modifiers():
            return False
        target = step(bubble.column, Qt.Key(event.key()), run.selected, run.cursor, 1)
        if target is not None:
            self.tokenActivated.emit(target)
        return target is not None

    def token_rect(self, turn: int, token: int) -> QRectF:
        """Where a token of a turn is drawn, in the viewport."""
        column = self._bubbles.all[turn].column
        return column.rects(token)[0].translated(self._origin()) if column is not None else QRectF()
