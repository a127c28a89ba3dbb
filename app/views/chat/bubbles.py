"""Bubbles of a chat: their layout and painting. Answers are columns of tokens."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from time import perf_counter

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import (
    QAbstractTextDocumentLayout,
    QFont,
    QFontMetricsF,
    QPainter,
    QPalette,
    QPen,
    QTextDocument,
    QTextOption,
)

from decodescope.app.state.conversation import Conversation, ConversationTurn
from decodescope.app.theme.theme import Theme, tab_distance
from decodescope.app.views.chat.formatted_answer import FormattedAnswer, has_formatting, plain_text_reason, shown_text
from decodescope.app.views.text.column import TokenColumn
from decodescope.app.views.text.row_painting import PaintOptions, paint_rows
from decodescope.app.views.tokens.token_columns import drawn_count
from decodescope.app.widgets.text_documents import wrap_mode
from decodescope.core.thinking import NO_THINKING, AnswerThinking
from decodescope.resources.language import mark, tr

MAX_WIDTH, INDENT, PAD_X, PAD_Y, FOOT_HEIGHT, GAP = 760, 72, 16, 10, 28, 8
"""Pixels at 100 %: maximum bubble width, indent on the other side, horizontal and vertical padding, height of the line
below a bubble with its cost and its buttons, gap between bubbles.
"""
DIVIDER_HEIGHT = 40
DROPPED_OPACITY = 0.68
"""Opacity of turns that the model no longer reads. A lower value would be illegible."""
DROPPED_LABEL = mark("↑ dropped: the context was full")


class Bubble:
    """One turn: its rectangle in the page and, for an answer, its column of tokens."""

    def __init__(self, turn: ConversationTurn, theme: Theme) -> None:
        self.turn, self.theme, self.run = turn, theme, turn.run
        self.column = TokenColumn(theme, turn.run.shown_index, (), ()) if turn.run is not None else None
        self._beginning: object = ()
        """The beginning of the answer that `column` contains."""
        self.rect = QRectF()
        self.edited_height = 0.0
        """Height of the editor that covers the bubble; 0 if the turn is not being edited."""
        self.prompt_document = QTextDocument()
        self.rich = FormattedAnswer()
        self._room = 0.0
        self.is_formatted = False
        """Whether the turn is shown as formatted text instead of tokens or plain text."""
        self._layout_key: tuple[object, ...] = ()
        self.is_pending = True
        """Whether its layout is only estimated."""
        self._document_key: tuple[str, float, float] | None = None
        self._format_check: tuple[object, bool] = (None, False)
        self._answer_key: tuple[object, ...] = ()
        self._answer = NO_THINKING
        self.plain_reason = ""
        """Why an answer with markup is shown as text; empty if it is not."""
        self.is_last_dropped = False
        """Whether this is the last of the turns that the model no longer reads."""

    @property
    def is_answer(self) -> bool:
        """Whether the assistant wrote this turn."""
        return self.turn.role == "assistant"

    @property
    def can_be_formatted(self) -> bool:
        """Whether this is a finished answer that formatting would change."""
        if not self.is_answer or self.turn.is_open:
            return False
        if (answer := self.answer) is not self._format_check[0]:
            self._format_check = (answer, has_formatting(answer))
            self.plain_reason = plain_text_reason(answer)
        return self._format_check[1]

    @property
    def answer(self) -> AnswerThinking:
        """The answer, its thinking split off."""
        key = (self.turn.content, self.turn.run)
        if key != self._answer_key:
            self._answer_key, self._answer = key, self.turn.thinking
        return self._answer

    @property
    def _content_origin(self) -> QPointF:
        """Position where the text begins."""
        return QPointF(self.rect.left() + self.theme.px(PAD_X), self.rect.top() + self.theme.px(PAD_Y))

    @property
    def thinking_header_rect(self) -> QRectF:
        """Rectangle of the line that folds the thinking; empty if there is none."""
        if not self.is_formatted:
            return QRectF()
        rect = self.rich.head_rect(self.theme)
        return rect.translated(self._content_origin) if not rect.isEmpty() else rect

    def lay_out(self, top: float, width: float, theme: Theme, formats_answers: bool = False) -> float:
        """Lay the bubble out from `top` in a page of that width, and return the top of the next one.

        `formats_answers`: format finished answers that contain Markdown or thinking.
        """
        key = self._state_key(width, theme, formats_answers)
        if key == self._layout_key:
            self._move_to(top)
            return self._bottom
        self._layout_key, self.is_pending = key, False
        self.is_formatted = formats_answers and self.can_be_formatted
        if theme is not self.theme and self.column is not None:
            self.column.restyle(theme)
        self.theme = theme
        room = min(width - theme.px(INDENT), theme.px(MAX_WIDTH)) - 2 * theme.px(PAD_X)
        if self.edited_height:
            size = room, self.edited_height - 2 * theme.px(PAD_Y)
        elif self.is_formatted:
            size = self.rich.lay_out(self.answer, self.turn.thinking_tokens, room, theme)
        else:
            size = self._answer_size(room) if self.column is not None else self._text_size(room)
        outer = QRectF(0, top, size[0] + 2 * theme.px(PAD_X), size[1] + 2 * theme.px(PAD_Y))
        if not self.is_answer:
            outer.moveLeft(width - outer.width())
        self.rect = outer
        self._room = room
        self._move_to(top)
        return self._bottom

    def place(self, top: float, width: float, theme: Theme, formats_answers: bool) -> float:
        """Place the bubble like `lay_out`, but with an estimated height if its layout has changed, and note that it
        must be laid out (`is_pending`). The answer being written is laid out at once.
        """
        if self.turn.is_open or self._state_key(width, theme, formats_answers) == self._layout_key:
            return self.lay_out(top, width, theme, formats_answers)
        self.theme, self.is_pending = theme, True
        if self.rect.isEmpty():
            room = min(width - theme.px(INDENT), theme.px(MAX_WIDTH)) - 2 * theme.px(PAD_X)
            rows = sum(1 + len(line) * theme.px(8) // max(1, room) for line in self.turn.content.split("\n"))
            row = theme.px(35 if self.column is not None and not formats_answers else 22)
            self.rect = QRectF(0, top, room, rows * row + 2 * theme.px(PAD_Y))
        self.rect.moveTop(top)
        return self._bottom

    def _state_key(self, width: float, theme: Theme, formats_answers: bool) -> tuple[object, ...]:
        """Return what the layout depends on, so that a turn that has not changed is only moved."""
        run = self.turn.run
        tokens = (id(run.started), run.shown_index, len(run.tokens), run.cursor) if run is not None else ()
        return (
            width, id(theme), formats_answers, self.turn.content, self.turn.is_open, self.edited_height, tokens,
            self.rich.is_thinking_expanded,
        )  # fmt: skip

    def _move_to(self, top: float) -> None:
        self.rect.moveTop(top)
        if self.column is not None and not self.is_formatted:
            pad = self.theme.px(PAD_X), self.theme.px(PAD_Y)
            self.column.set_geometry(self.rect.left() + pad[0], top + pad[1], self._room)

    @property
    def _bottom(self) -> float:
        """Top of the next bubble."""
        more = DIVIDER_HEIGHT if self.is_last_dropped else 0
        return self.rect.bottom() + self.theme.px(FOOT_HEIGHT + GAP + more)

    def _answer_size(self, available_width: float) -> tuple[float, float]:
        """Return the size of the tokens drawn so far. A single row is as wide as its text."""
        column, run = self.column, self.turn.run
        assert column is not None
        assert run is not None
        if run.beginning != self._beginning:
            self._beginning = run.beginning
            column = self.column = TokenColumn(self.theme, run.shown_index, (), run.beginning)
        if available_width != column.width:
            column.set_geometry(0, 0, available_width)
        sequence = run.sequence
        column.sync(
            sequence.tokens, sequence.finished.tail if sequence.finished else "", drawn_count(run, run.shown_index)
        )
        column.show_thinking(run.thinking.ranges)
        if len(column.flow.rows) > 1:
            return available_width, column.height
        return max(column.shaped_row(0).line.text_end, self.theme.px(28)), column.height

    def _text_size(self, available_width: float) -> tuple[float, float]:
        """Return the size of the user's message, laid out once per width."""
        key = self._plain_text, available_width, self.theme.scale
        if key != self._document_key:
            self._document_key, self.prompt_document = (
                key,
                plain_document(self._plain_text, self.theme.font(15), available_width),
            )
        return max(self.prompt_document.textWidth(), self.theme.px(28)), self.prompt_document.size().height()

    @property
    def _plain_text(self) -> str:
        return self.turn.content or "…"

    def paint(self, painter: QPainter, options: PaintOptions, top: float, bottom: float) -> None:
        """Paint the frame, the content and the cost line, faded if the model no longer reads the turn."""
        painter.save()
        painter.setOpacity(1.0 if self.turn.is_in_context else DROPPED_OPACITY)
        if self.edited_height:
            painter.restore()
            return
        self._paint_frame(painter)
        if self.is_pending:
            painter.restore()
            return
        if self.is_formatted:
            self.rich.paint(painter, self._content_origin, self.theme)
        elif self.column is not None:
            paint_rows(painter, self.column, options, top, bottom)
        else:
            self._paint_prompt(painter)
        painter.restore()
        if self.is_last_dropped:
            self._paint_divider(painter)

    def _paint_prompt(self, painter: QPainter) -> None:
        context = QAbstractTextDocumentLayout.PaintContext()
        context.palette.setColor(QPalette.ColorRole.Text, self.theme.color("text"))
        painter.translate(self.rect.left() + self.theme.px(PAD_X), self.rect.top() + self.theme.px(PAD_Y))
        self.prompt_document.documentLayout().draw(painter, context)
        painter.translate(-self.rect.left() - self.theme.px(PAD_X), -self.rect.top() - self.theme.px(PAD_Y))

    def _paint_frame(self, painter: QPainter) -> None:
        radius = self.theme.px(14)
        painter.setPen(QPen(self.theme.color("line"), 1) if self.is_answer else Qt.PenStyle.NoPen)
        painter.setBrush(self.theme.color("panel" if self.is_answer else "tint"))
        painter.drawRoundedRect(self.rect.adjusted(0.5, 0.5, -0.5, -0.5), radius, radius)

    def foot_rect(self, page_width: float) -> QRectF:
        """Rectangle of the line below the bubble, as wide as the page."""
        return QRectF(0, self.rect.bottom(), page_width, self.theme.px(FOOT_HEIGHT))

    @property
    def foot_text(self) -> str:
        """Text of the line below: which version it is, which model and adapters wrote an answer if these are others
        than before, and its cost.
        """
        count = len(self.turn.siblings)
        version = f"{self.turn.number}/{count}" if count > 1 else ""
        author = self.turn.author if self.is_answer and self.turn.is_author_new else ""
        cost = self.turn.cost_text if self.is_answer else ""
        if self.is_answer and not cost and self.turn.is_open:
            cost = tr("reading…")
        plain = tr("shown as text: {reason}").format(reason=self.plain_reason) if self.plain_reason else ""
        return " · ".join(filter(None, (version, author, cost, plain)))

    def paint_foot(self, painter: QPainter, left: float, right: float, text: str) -> None:
        """Paint `text` below the bubble, between two positions of the page."""
        font = self.theme.font(12, tabular=True)
        painter.setFont(font)
        painter.setPen(self.theme.color("muted"))
        shown = QFontMetricsF(font).elidedText(text, Qt.TextElideMode.ElideRight, right - left)
        rect = QRectF(left, self.rect.bottom(), right - left, self.theme.px(FOOT_HEIGHT))
        side = Qt.AlignmentFlag.AlignLeft if self.is_answer else Qt.AlignmentFlag.AlignRight
        painter.drawText(rect, side | Qt.AlignmentFlag.AlignVCenter, shown)

    def _paint_divider(self, painter: QPainter) -> None:
        theme, width = self.theme, painter.viewport().width()
        y = self.rect.bottom() + theme.px(FOOT_HEIGHT + GAP + DIVIDER_HEIGHT / 2 - 6)
        painter.setFont(theme.font(12))
        painter.setPen(theme.color("muted"))
        width_of = QFontMetricsF(painter.font()).horizontalAdvance(tr(DROPPED_LABEL))
        painter.drawText(QPointF(theme.px(28), y + theme.px(4)), tr(DROPPED_LABEL))
        painter.setPen(QPen(theme.color("line"), 1))
        painter.drawLine(QPointF(0, y), QPointF(theme.px(20), y))
        painter.drawLine(QPointF(theme.px(36) + width_of, y), QPointF(width - 2 * theme.px(26), y))


def plain_document(text: str, font: QFont, width: float) -> QTextDocument:
    """Return plain text laid out within `width`: each paragraph has its own direction, and words break only if longer
    than a line.
    """
    option = QTextOption()
    option.setWrapMode(wrap_mode(text))
    option.setTabStopDistance(tab_distance(font))
    result = QTextDocument()
    result.setDocumentMargin(0)
    result.setDefaultFont(font)
    result.setDefaultTextOption(option)
    result.setPlainText(shown_text(text))
    result.setTextWidth(width)
    result.setTextWidth(min(width, math.ceil(result.idealWidth()) + 1))
    return result


class BubbleColumn:
    """All turns of a conversation, stacked vertically."""

    def __init__(self) -> None:
        self.all: list[Bubble] = []
        self.height = 0.0
        self.formats_answers = True
        """Whether answers that contain Markdown or thinking are formatted."""

    def arrange(
        self,
        conversation: Conversation,
        size: tuple[float, float],
        theme: Theme,
        start: float | None,
        seconds: float,
    ) -> bool:
        """Lay out the turns of `conversation`: create bubbles for new turns and drop those of removed turns. Return
        whether turns are left whose height is only estimated.

        `size` is the width of the page and the height of the visible part, which begins at `start`; None means that
        the end of the page is visible. Visible turns are laid out in any case, others from the last on for about
        `seconds`.
        """
        width, height = size
        known = {id(bubble.turn): bubble for bubble in self.all if bubble.run is bubble.turn.run}
        self.all = [known.get(id(turn)) or Bubble(turn, theme) for turn in conversation.turns]
        self._stack(width, theme)
        end = perf_counter() + seconds
        while pending := [bubble for bubble in self.all if bubble.is_pending]:
            top = self.height - height if start is None else start
            visible = [bubble for bubble in self.visible(top, top + height) if bubble.is_pending]
            if not visible and perf_counter() > end:
                return True
            for bubble in visible or pending[-8:]:
                bubble.lay_out(bubble.rect.top(), width, theme, self.formats_answers)
            self._stack(width, theme)
        return False

    def _stack(self, width: float, theme: Theme) -> None:
        """Place all bubbles below each other."""
        top = 0.0
        for index, bubble in enumerate(self.all):
            after = self.all[index + 1].turn if index + 1 < len(self.all) else None
            bubble.is_last_dropped = not bubble.turn.is_in_context and (after is None or after.is_in_context)
            top = bubble.place(top, width, theme, self.formats_answers)
        self.height = top

    def complete(self, bubble: Bubble, width: float, theme: Theme) -> None:
        """Lay out a bubble whose height is only estimated."""
        if bubble.is_pending:
            bubble.lay_out(bubble.rect.top(), width, theme, self.formats_answers)
            self._stack(width, theme)

    def visible(self, top: float, bottom: float) -> list[Bubble]:
        """Return the bubbles between two heights of the page."""
        first = bisect_left(self.all, top, key=lambda bubble: bubble.rect.bottom())
        last = bisect_right(self.all, bottom, key=lambda bubble: bubble.rect.top())
        return self.all[first:last]

    def bubble_at_height(self, y: float) -> Bubble | None:
        """Return the bubble at a height of the page, with the line below it."""
        place = bisect_right(self.all, y, key=lambda bubble: bubble.rect.top()) - 1
        return self.all[place] if place >= 0 and y <= self.all[place].foot_rect(0).bottom() else None

    def bubble_at(self, x: float, y: float) -> Bubble | None:
        """Return the bubble at a point of the page."""
        return next((bubble for bubble in self.visible(y, y) if bubble.rect.contains(x, y)), None)
