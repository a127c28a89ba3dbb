"""Scrollable chat page: draws the bubbles and handles the mouse."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QPointF, QRect, QRectF, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QContextMenuEvent, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QResizeEvent, QShowEvent
from PySide6.QtWidgets import QWidget

from decodescope.app.state.conversation import Conversation, ConversationTurn
from decodescope.app.state.run import Run
from decodescope.app.theme.theme import Theme
from decodescope.app.theme.themed import Themed, inherit_theme
from decodescope.app.views.chat.bubbles import Bubble, BubbleColumn
from decodescope.app.views.chat.turn_tools import TurnBar, TurnEditor
from decodescope.app.views.shared.empty_page import paint_empty_page
from decodescope.app.views.text.row_painting import PaintOptions
from decodescope.app.views.text.token_navigation import token_for_key
from decodescope.app.views.text.token_wording import popover_rows, token_text
from decodescope.app.views.tokens.token_headings import is_waiting
from decodescope.app.widgets.accessibility import AccessiblePart, AccessibleWidget, Role
from decodescope.app.widgets.popover import HoverArea, Popover
from decodescope.resources.language import mark, tr

HOVER_MS = 250
LAYOUT_SECONDS = 0.008
"""Time for laying out turns that are out of sight before the window draws again."""
EMPTY_TITLE = mark("A chat, turn by turn")
EMPTY_HINT = mark(
    "Answers can be edited and continued from any word. Each shows its tokens and how much of the cache it could reuse."
)


class ChatArea(Themed, HoverArea, AccessibleWidget):
    """Draw `conversation`, let the user pick tokens of the answers, and show the tools of one turn: the last one, the
    one under the pointer, or the one chosen by keys. Key presses are left to the surrounding view.

    `tokenPicked(turn, index)`; `tokenMenuRequested(turn, index, position)`: a menu for a token, or with index −1 for
    the turn; `turnEdited(turn, text, action)`.
    """

    tokenPicked = Signal(object, int)
    tokenMenuRequested = Signal(object, int, object)
    turnEdited = Signal(object, str, str)
    accessible_role = Role.List

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("chatArea")
        self.conversation = Conversation()
        self.hides_tools = False
        """Whether the tools of the turns are hidden, as while presenting."""
        self.run: Run | None = None
        self._paint_options = PaintOptions(theme)
        self._bubbles = BubbleColumn()
        self._hovered: tuple[Bubble, int] | None = None
        self._chosen: ConversationTurn | None = None
        """The turn whose tools are shown; None for the last one."""
        self.bar = TurnBar(self.viewport())
        self.bar.hide()
        self.bar.editRequested.connect(self.edit_current)
        self.editor: TurnEditor | None = None
        """Edits a turn in its place; None while none is edited."""
        self.popover = Popover(theme, self)
        self._layout_timer = QTimer(self, singleShot=True, interval=0)
        self._layout_timer.timeout.connect(self.arrange)
        self._timer = QTimer(self, singleShot=True, interval=HOVER_MS)
        self._timer.timeout.connect(self._show_token_popover)
        self.hoverEnded.connect(self.leave)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.viewport().setMouseTracking(True)

    def restyle(self, theme: Theme) -> None:
        self._paint_options.theme = theme
        self.verticalScrollBar().setSingleStep(theme.px(35))
        self.arrange()

    # Layout

    def arrange(self) -> None:
        """Update the bubbles and the scroll bar to the conversation. Does nothing while the area is hidden."""
        if not self.isVisible():
            return
        bar, pad, height = self.verticalScrollBar(), self._padding, self.viewport().height()
        at_end = bar.value() >= bar.maximum() - 2
        self._measure_editor()
        start = bar.value() - pad.y()
        anchor = next(iter(self._bubbles.visible(start, start + height)), None)
        offset = anchor.rect.top() - bar.value() if anchor is not None else 0.0
        size = self._page_width, float(height)
        is_incomplete = self._bubbles.arrange(
            self.conversation, size, self._paint_options.theme, None if at_end else start, LAYOUT_SECONDS
        )
        if is_incomplete:
            self._layout_timer.start()
        bar.setPageStep(height)
        bar.setRange(0, max(0, round(self._bubbles.height + 2 * pad.y()) - height))
        if at_end and self.editor is None:
            bar.setValue(bar.maximum())
        elif anchor is not None and anchor in self._bubbles.all:
            bar.setValue(round(anchor.rect.top() - offset))
        self._place_tools()
        self.viewport().update()

    def show_chat(self, conversation: Conversation) -> None:
        """Show another chat from its end."""
        self._close_editor()
        self._chosen = None
        self.conversation = conversation
        self._bubbles.all = []
        self.arrange()
        self.verticalScrollBar().setValue(self.verticalScrollBar().maximum())

    def show_tools_of(self, turn: ConversationTurn) -> None:
        """Show the tools of a turn."""
        self._chosen = turn
        self._place_tools()

    @property
    def current_turn(self) -> ConversationTurn | None:
        """The turn whose tools are shown; None in an empty chat."""
        turns = [bubble.turn for bubble in self._bubbles.all]
        return self._chosen if self._chosen in turns else turns[-1] if turns else None

    def choose_turn(self, step: int) -> None:
        """Show the tools of the turn `step` places further, and scroll to it."""
        turns = [bubble.turn for bubble in self._bubbles.all]
        if turns and self.current_turn is not None:
            self._chosen = turns[min(max(turns.index(self.current_turn) + step, 0), len(turns) - 1)]
            self._place_tools()
            self._scroll_to(self._bubble_of(self._chosen))

    @Slot()
    def edit_current(self) -> None:
        """Edit the turn whose tools are shown."""
        turn = self.current_turn
        if turn is None or self.conversation.is_open:
            return
        self._close_editor()
        self.editor = TurnEditor(self.viewport(), turn)
        self.editor.done.connect(self._on_edited)
        self.editor.cancelled.connect(self.cancel_edit)
        self.editor.resized.connect(self.arrange)
        inherit_theme(self.editor)
        self.editor.show()
        self.arrange()
        self._scroll_to(self._bubble_of(turn))
        self.editor.text.setFocus()

    @Slot()
    def cancel_edit(self) -> None:
        """Close the editor and keep the turn as it is."""
        self._close_editor()
        self.arrange()
        self.setFocus()

    @Slot(str, str)
    def _on_edited(self, text: str, action: str) -> None:
        turn = self.editor.turn if self.editor is not None else None
        self._close_editor()
        self._chosen = None
        self.arrange()
        if turn is not None:
            self.turnEdited.emit(turn, text, action)

    def _close_editor(self) -> None:
        if self.editor is not None:
            if (bubble := self._bubble_of(self.editor.turn)) is not None:
                bubble.edited_height = 0.0
            self.editor.hide()
            self.editor.deleteLater()
            self.editor = None

    def _bubble_of(self, turn: ConversationTurn | None) -> Bubble | None:
        return next((bubble for bubble in self._bubbles.all if bubble.turn is turn), None)

    def _scroll_to(self, bubble: Bubble | None) -> None:
        if bubble is not None:
            bar, pad = self.verticalScrollBar(), self._padding.y()
            top, bottom = bubble.rect.top(), bubble.foot_rect(0).bottom() + 2 * pad
            if bottom > bar.value() + self.viewport().height():
                bar.setValue(round(bottom - self.viewport().height()))
            if top < bar.value():
                bar.setValue(round(top))

    def _measure_editor(self) -> None:
        """Reserve the place of the editor before the turns are laid out."""
        if self.editor is not None and (bubble := self._bubble_of(self.editor.turn)) is not None:
            bubble.edited_height = float(self.editor.sizeHint().height())

    def _place_tools(self) -> None:
        """Move the bar below its turn, and the editor over its turn."""
        if self.editor is not None:
            edited = self._bubble_of(self.editor.turn)
            if edited is None:
                self._close_editor()
            else:
                self.editor.place(edited.rect.translated(self._origin).toAlignedRect())
        bubble = self._bubble_of(self.current_turn)
        is_busy = self.conversation.is_open
        if bubble is None or self.editor is not None or bubble.turn.is_open or self.hides_tools:
            self.bar.hide()
            return
        self.bar.show_turn(bubble.turn, is_busy)
        self.bar.show()
        foot = bubble.foot_rect(self._page_width).translated(self._origin)
        size = self.bar.sizeHint()
        left = bubble.rect.left() if bubble.is_answer else bubble.rect.right() - size.width()
        left = max(0.0, left + self._origin.x())
        self.bar.setGeometry(QRect(round(left), round(foot.top()), size.width(), round(foot.height())))

    @property
    def _page_width(self) -> float:
        return self.viewport().width() - 2 * self._padding.x()

    @property
    def _padding(self) -> QPointF:
        return QPointF(self._paint_options.theme.px(26), self._paint_options.theme.px(20))

    @property
    def _origin(self) -> QPointF:
        """Position of the page's top left corner in the viewport."""
        return QPointF(self._padding.x(), self._padding.y() - self.verticalScrollBar().value())

    def _token_at(self, point: QPointF) -> tuple[Bubble, int] | None:
        point = point - self._origin
        bubble = self._bubbles.bubble_at(point.x(), point.y())
        if bubble is None or bubble.column is None or bubble.is_formatted:
            return None
        token = bubble.column.token_at(point.x(), point.y())
        return None if token is None else (bubble, token)

    @property
    def formats_answers(self) -> bool:
        """Whether answers that contain Markdown or thinking are formatted."""
        return self._bubbles.formats_answers

    def text_before(self, turn: ConversationTurn, token: int) -> str:
        """Return the text of an answer up to the end of one of its generated tokens."""
        run = turn.run
        if run is None:
            return turn.content
        return run.sequence.text_until(token + 1) if token + 1 < len(run.tokens) else turn.text

    def set_formatting_enabled(self, enabled: bool) -> None:
        """Show answers formatted or as their tokens."""
        self._bubbles.formats_answers = enabled
        self.leave()
        self.arrange()

    @property
    def has_formattable_answer(self) -> bool:
        """Whether formatting changes the look of at least one answer."""
        return any(bubble.can_be_formatted for bubble in self._bubbles.all)

    def toggle_thinking(self) -> bool:
        """Fold or unfold the thinking of the latest answer that has some. Returns False if no answer has any."""
        for bubble in reversed(self._bubbles.all):
            if bubble.is_formatted and bubble.rich.answer.thinking:
                bubble.rich.toggle_thinking()
                self.arrange()
                return True
        return False

    def _current_bubble(self) -> Bubble | None:
        """The bubble of the run that the session shows."""
        return next((b for b in self._bubbles.all if b.turn.run is not None and b.turn.run is self.run), None)

    def token_rect(self, turn: int, token: int) -> QRectF:
        """Rectangle of a token of a turn, in viewport coordinates."""
        self._bubbles.complete(self._bubbles.all[turn], self._page_width, self._paint_options.theme)
        column = self._bubbles.all[turn].column
        return column.rects(token)[0].translated(self._origin) if column is not None else QRectF()

    def token_for_key(self, key: Qt.Key) -> int | None:
        """Return the token of the latest answer that `key` moves to, or None."""
        bubble, run = self._current_bubble(), self.run
        if bubble is None or bubble.column is None or bubble.is_formatted or run is None or not run.cursor:
            return None
        return token_for_key(bubble.column, key, run.selected, run.cursor, 1)

    def accessible_parts(self) -> list[AccessiblePart]:
        """Return one accessible part per turn."""
        turns = enumerate(self._bubbles.all, 1)
        return [
            AccessiblePart(_accessible_text(bubble, number), partial(self._bubble_rect, bubble))
            for number, bubble in turns
        ]

    def _bubble_rect(self, bubble: Bubble) -> QRect:
        return bubble.rect.translated(self._origin).toAlignedRect()

    # Painting

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the visible bubbles."""
        painter, theme = QPainter(self.viewport()), self._paint_options.theme
        painter.fillRect(event.rect(), theme.color("window"))
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if not self._bubbles.all:
            paint_empty_page(painter, self.viewport().rect(), theme, (tr(EMPTY_TITLE), tr(EMPTY_HINT)))
            return
        top = event.rect().top() - self._origin.y()
        bottom = top + event.rect().height()
        painter.translate(self._origin)
        for bubble in self._bubbles.visible(top - theme.px(80), bottom):
            bubble.paint(painter, self._options_for(bubble), top, bottom)
            self._paint_foot(painter, bubble)

    def _paint_foot(self, painter: QPainter, bubble: Bubble) -> None:
        """Paint version and cost of a turn, beside the bar if it is there."""
        text = bubble.foot_text
        has_bar = not self.bar.isHidden() and self.bar.turn is bubble.turn
        if has_bar and len(bubble.turn.siblings) > 1:
            text = text.partition(" · ")[2]
        if not text:
            return
        pad, taken = self._paint_options.theme.px(8), self.bar.width() if has_bar else 0
        if bubble.is_answer:
            left, right = bubble.rect.left() + (taken or pad) + pad * bool(taken), self._page_width
        else:
            left, right = 0.0, bubble.rect.right() - taken - pad
        if right - left > 2 * pad:
            bubble.paint_foot(painter, left, right, text)

    def _options_for(self, bubble: Bubble) -> PaintOptions:
        """Return the paint options for `bubble`. Only the current run's bubble shows the selection and the newest
        token.
        """
        options, run = self._paint_options, self.run if bubble.turn.run is self.run else None
        options.selected = run.selected if run is not None else None
        options.newest = run.cursor - 1 if run is not None and is_waiting(run) and run.cursor else None
        options.hovered = self._hovered[1] if self._hovered is not None and self._hovered[0] is bubble else None
        return options

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Lay out the rows for the new width."""
        super().resizeEvent(event)
        self.arrange()

    def showEvent(self, event: QShowEvent) -> None:
        """Catch up with changes made while hidden, and scroll to the end."""
        super().showEvent(event)
        self.arrange()
        self.verticalScrollBar().setValue(self.verticalScrollBar().maximum())

    # Mouse and keys

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Toggle the thinking, or pick a token of the latest answer."""
        point = event.position() - self._origin
        for bubble in self._bubbles.all:
            if event.button() == Qt.MouseButton.LeftButton and bubble.thinking_header_rect.contains(point):
                bubble.rich.toggle_thinking()
                self.arrange()
                return
        hit = self._token_at(event.position())
        if event.button() == Qt.MouseButton.LeftButton and hit is not None:
            self.tokenPicked.emit(hit[0].turn, hit[1])

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        """Request a menu for the token or the turn under the pointer, or for the selected token."""
        if event.reason() == QContextMenuEvent.Reason.Keyboard:
            bubble, run = self._current_bubble(), self.run
            if bubble is not None and bubble.column is not None and run is not None and run.selected is not None:
                place = bubble.column.rects(run.selected)[0].translated(self._origin).bottomLeft().toPoint()
                self.tokenMenuRequested.emit(bubble.turn, run.selected, self.viewport().mapToGlobal(place))
            return
        hit = self._token_at(QPointF(event.pos()))
        point = QPointF(event.pos()) - self._origin
        over = hit[0] if hit is not None else self._bubbles.bubble_at(point.x(), point.y())
        if over is not None:
            self.tokenMenuRequested.emit(over.turn, hit[1] if hit is not None else -1, event.globalPos())

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Schedule the popover for the token under the pointer, and show a hand cursor over the thinking header."""
        point = event.position() - self._origin
        is_on_head = any(bubble.thinking_header_rect.contains(point) for bubble in self._bubbles.all)
        shape = Qt.CursorShape.PointingHandCursor if is_on_head else Qt.CursorShape.ArrowCursor
        self.viewport().setCursor(shape)
        over = self._bubbles.bubble_at_height(point.y())
        if over is not None and over.turn is not self.current_turn and not self.bar.underMouse():
            self._chosen = over.turn
            self._place_tools()
        hit = self._token_at(event.position())
        if hit == self._hovered:
            return
        self.leave()
        self._hovered = hit
        if hit is not None:
            self._timer.start()

    @Slot()
    def _show_token_popover(self) -> None:
        if self._hovered is None or not self.isVisible():
            return
        bubble, token = self._hovered
        run, column = bubble.turn.run, bubble.column
        if run is None or column is None or token >= len(run.tokens):
            return
        rect = column.rects(token)[0].translated(self._origin).toAlignedRect()
        rect.moveTo(self.viewport().mapToGlobal(rect.topLeft()))
        chosen = run.tokens[token]
        vocabulary = run.started.vocabulary if run.started else 0
        self.popover.show_rows(token_text(chosen.piece, chosen.is_special), popover_rows(chosen, vocabulary), rect)

    @Slot()
    def leave(self) -> None:
        """Clear the hovered token and hide its popover."""
        self._hovered = None
        self._timer.stop()
        self.popover.hide()
        self.viewport().update()

    def scrollContentsBy(self, dx: int, dy: int) -> None:
        """Move the tools with their turn."""
        super().scrollContentsBy(dx, dy)
        start = self.verticalScrollBar().value() - self._padding.y()
        if any(bubble.is_pending for bubble in self._bubbles.visible(start, start + self.viewport().height())):
            self._layout_timer.start()
        self._place_tools()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Leave all keys to the view, so that nothing scrolls by itself."""
        event.ignore()


_TURN_DESCRIPTIONS = {
    "system": mark("Turn {number}, system prompt: {words}"),
    "user": mark("Turn {number}, you: {words}"),
    "assistant": mark("Turn {number}, model: {words}"),
}


def _accessible_text(bubble: Bubble, number: int) -> str:
    turn = bubble.turn
    column = None if bubble.is_formatted else bubble.column
    content = turn.content if column is None or bubble.is_pending else column.text.text[: column.limit]
    if bubble.is_formatted and bubble.rich.answer.thinking and not bubble.rich.is_thinking_expanded:
        content = f"{bubble.rich.thinking_header}. {bubble.rich.answer.body.strip()}"
    return tr(_TURN_DESCRIPTIONS[turn.role]).format(number=number, words=content or "…")
