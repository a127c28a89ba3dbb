"""The bubbles of a chat: where each turn stands, and how it is painted. Answers are columns of tokens."""

from __future__ import annotations

import math

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

from app.state.conversation import Conversation, ConversationTurn
from app.theme.tabs import tab_distance
from app.theme.theme import Theme
from app.views.chat.markdown import is_formatted
from app.views.chat.rich_answer import RichAnswer
from app.views.text.column import Column
from app.views.text.row_painting import PaintOptions, paint_rows
from app.views.tokens.token_columns import drawn_count
from app.widgets.long_words import wrap_mode
from resources.language import mark, tr

MEASURE, INDENT, PAD_X, PAD_Y, COST, GAP = 760, 72, 16, 10, 24, 14
"""Pixels at 100 %: widest bubble, what it leaves free on its other side, room within, line below, space between."""
DIVIDER = 40
FADED = 0.68
"""Opacity of what the model no longer reads; less, and it could not be read by people either."""
GONE = mark("↑ no longer read: the context was full")


class Bubble:
    """One turn: its frame in the page, and for an answer the column of its tokens."""

    def __init__(self, turn: ConversationTurn, theme: Theme) -> None:
        self.turn, self.theme = turn, theme
        self.column = Column(theme, turn.run.shown, ()) if turn.run is not None else None
        self.rect = QRectF()
        self.asked = QTextDocument()
        self.rich = RichAnswer()
        self.is_formatted = False
        """Whether it is shown as formatted text, not as tokens or plain text."""
        self._set: tuple[str, float, float] | None = None
        self._judged = ("", False)
        self.ends_gone = False
        """Whether it is the last turn that the model no longer reads."""

    @property
    def is_answer(self) -> bool:
        """Whether it stands on the assistant's side."""
        return self.turn.role == "assistant"

    @property
    def can_be_formatted(self) -> bool:
        """Whether it is a whole answer that looks different when it is formatted."""
        if not self.is_answer or self.turn.is_open:
            return False
        if self._judged[0] != self.turn.content:
            self._judged = (self.turn.content, is_formatted(self.turn.content))
        return self._judged[1]

    @property
    def _corner(self) -> QPointF:
        """Where its words begin."""
        return QPointF(self.rect.left() + self.theme.px(PAD_X), self.rect.top() + self.theme.px(PAD_Y))

    @property
    def head_rect(self) -> QRectF:
        """Where the line stands that folds the thinking; empty where there is none."""
        if not self.is_formatted:
            return QRectF()
        found = self.rich.head_rect(self.theme)
        return found.translated(self._corner) if not found.isEmpty() else found

    def place(self, top: float, width: float, theme: Theme, formats: bool = False) -> float:
        """Take a place in a page of that width; returns where the next one begins. `formats`: answers with Markdown or
        thinking are formatted once they are written."""
        self.is_formatted = formats and self.can_be_formatted
        if theme is not self.theme and self.column is not None:
            self.column.restyle(theme)
        self.theme = theme
        room = min(width - theme.px(INDENT), theme.px(MEASURE)) - 2 * theme.px(PAD_X)
        if self.is_formatted:
            size = self.rich.lay_out(self.turn.content, room, theme)
        else:
            size = self._answer_size(room) if self.column is not None else self._text_size(room)
        outer = QRectF(0, top, size[0] + 2 * theme.px(PAD_X), size[1] + 2 * theme.px(PAD_Y))
        if not self.is_answer:
            outer.moveLeft(width - outer.width())
        self.rect = outer
        if self.column is not None and not self.is_formatted:
            self.column.place(outer.left() + theme.px(PAD_X), top + theme.px(PAD_Y), room)
        below = theme.px(COST) if self.is_answer else 0
        return outer.bottom() + below + theme.px(GAP + (DIVIDER if self.ends_gone else 0))

    def _answer_size(self, room: float) -> tuple[float, float]:
        """Of the tokens drawn so far; a single row is as wide as its text."""
        column, run = self.column, self.turn.run
        assert column is not None
        assert run is not None
        if room != column.width:
            column.place(0, 0, room)
        sequence = run.sequence
        column.sync(sequence.tokens, sequence.finished.tail if sequence.finished else "", drawn_count(run, run.shown))
        if len(column.flow.rows) > 1:
            return room, column.height
        return max(column.art(0).line.right, self.theme.px(28)), column.height

    def _text_size(self, room: float) -> tuple[float, float]:
        """Of what somebody asked, which is set once for a width."""
        key = self._words, room, self.theme.scale
        if key != self._set:
            self._set, self.asked = key, document(self._words, self.theme.font(16), room)
        return max(self.asked.textWidth(), self.theme.px(28)), self.asked.size().height()

    @property
    def _words(self) -> str:
        return self.turn.content or "…"

    def paint(self, painter: QPainter, look: PaintOptions, top: float, bottom: float) -> None:
        """Frame, words or tokens, and the line that tells what the answer cost; faded when it is read no more."""
        painter.save()
        painter.setOpacity(1.0 if self.turn.held else FADED)
        self._paint_frame(painter)
        if self.is_formatted:
            self.rich.paint(painter, self._corner, self.theme)
        elif self.column is not None:
            paint_rows(painter, self.column, look, top, bottom)
        else:
            self._paint_asked(painter)
        self._paint_cost(painter)
        painter.restore()
        if self.ends_gone:
            self._paint_divider(painter)

    def _paint_asked(self, painter: QPainter) -> None:
        look = QAbstractTextDocumentLayout.PaintContext()
        look.palette.setColor(QPalette.ColorRole.Text, self.theme.color("text"))
        painter.translate(self.rect.left() + self.theme.px(PAD_X), self.rect.top() + self.theme.px(PAD_Y))
        self.asked.documentLayout().draw(painter, look)
        painter.translate(-self.rect.left() - self.theme.px(PAD_X), -self.rect.top() - self.theme.px(PAD_Y))

    def _paint_frame(self, painter: QPainter) -> None:
        radius = self.theme.px(14)
        painter.setPen(QPen(self.theme.color("line"), 1) if self.is_answer else Qt.PenStyle.NoPen)
        painter.setBrush(self.theme.color("panel" if self.is_answer else "tint"))
        painter.drawRoundedRect(self.rect.adjusted(0.5, 0.5, -0.5, -0.5), radius, radius)

    def _paint_cost(self, painter: QPainter) -> None:
        words = self.turn.cost if self.is_answer else ""
        if self.is_answer and not words and self.turn.is_open:
            words = tr("reading…")
        painter.setFont(self.theme.font(12, tabular=True))
        painter.setPen(self.theme.color("muted" if self.turn.held else "text"))
        place = QPointF(self.rect.left() + self.theme.px(PAD_X), self.rect.bottom() + self.theme.px(17))
        painter.drawText(place, words)

    def _paint_divider(self, painter: QPainter) -> None:
        theme, width = self.theme, painter.viewport().width()
        y = self.rect.bottom() + theme.px((COST if self.is_answer else 0) + GAP + DIVIDER / 2 - 6)
        painter.setFont(theme.font(12))
        painter.setPen(theme.color("muted"))
        width_of = QFontMetricsF(painter.font()).horizontalAdvance(tr(GONE))
        painter.drawText(QPointF(theme.px(28), y + theme.px(4)), tr(GONE))
        painter.setPen(QPen(theme.color("line"), 1))
        painter.drawLine(QPointF(0, y), QPointF(theme.px(20), y))
        painter.drawLine(QPointF(theme.px(36) + width_of, y), QPointF(width - 2 * theme.px(26), y))


def document(text: str, font: QFont, width: float) -> QTextDocument:
    """Plain text in at most a width: a paragraph in its own direction, words whole but for one longer than a line."""
    option = QTextOption()
    option.setWrapMode(wrap_mode(text))
    option.setTabStopDistance(tab_distance(font))
    found = QTextDocument()
    found.setDocumentMargin(0)
    found.setDefaultFont(font)
    found.setDefaultTextOption(option)
    found.setPlainText(text)
    found.setTextWidth(width)
    found.setTextWidth(min(width, math.ceil(found.idealWidth()) + 1))
    return found


class Bubbles:
    """All turns of a conversation, one below the other."""

    def __init__(self) -> None:
        self.all: list[Bubble] = []
        self.height = 0.0
        self.formats = True
        """Whether answers with Markdown or thinking are formatted."""

    def arrange(self, conversation: Conversation, width: float, theme: Theme) -> None:
        """Follow the conversation: new turns get a bubble, those that are gone lose theirs."""
        known = {id(bubble.turn): bubble for bubble in self.all}
        self.all = [known.get(id(turn)) or Bubble(turn, theme) for turn in conversation.turns]
        top = 0.0
        for place, bubble in enumerate(self.all):
            after = self.all[place + 1].turn if place + 1 < len(self.all) else None
            bubble.ends_gone = not bubble.turn.held and (after is None or after.held)
            top = bubble.place(top, width, theme, self.formats)
        self.height = top

    def at(self, x: float, y: float) -> Bubble | None:
        """The bubble under a point of the page."""
        return next((bubble for bubble in self.all if bubble.rect.contains(x, y)), None)
