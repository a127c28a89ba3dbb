"""A formatted answer in its bubble: the thinking, folded or not, and the answer below it."""

from __future__ import annotations

import math

from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QAbstractTextDocumentLayout, QFontMetricsF, QPainter, QPalette, QTextDocument

from app.theme.theme import Theme
from app.views.chat.markdown import SplitAnswer, markdown_document, split_thinking, thinking_document
from resources.language import tr, trn

HEADER_HEIGHT, GAP = 24, 8
"""Pixels at 100 %: the line that folds the thinking, and the space below it."""


class FormattedAnswer:
    """Laid out once for a text, a width and a look."""

    def __init__(self) -> None:
        self.is_thinking_expanded = False
        """Whether the thinking is shown."""
        self.answer = SplitAnswer("", "")
        self._key: tuple[object, ...] = ()
        self._theme: Theme | None = None
        self._thinking_document: QTextDocument | None = None
        self._body_document: QTextDocument | None = None
        self._width = 0.0

    @property
    def thinking_header(self) -> str:
        """The line that folds the thinking; empty where there is none."""
        if not self.answer.thinking:
            return ""
        count = len(self.answer.thinking.split())
        words = trn("{n:,} word", "{n:,} words", count).format(n=count)
        mark = "▾" if self.is_thinking_expanded else "▸"
        return f"{mark} {tr('Thinking')} · {words}"

    def lay_out(self, text: str, width: float, theme: Theme) -> tuple[float, float]:
        """Width and height in at most that width."""
        key = (text, width, theme, self.is_thinking_expanded)
        if key != self._key:
            self._key, self._theme = key, theme
            self.answer = split_thinking(text)
            shows = self.is_thinking_expanded and self.answer.thinking
            self._thinking_document = thinking_document(self.answer.thinking, theme, width) if shows else None
            self._body_document = (
                markdown_document(self.answer.body, theme, width) if self.answer.body.strip() else None
            )
            ideal = max(
                (part.idealWidth() for part in (self._thinking_document, self._body_document) if part is not None),
                default=0.0,
            )
            head = QFontMetricsF(theme.font(13)).horizontalAdvance(self.thinking_header)
            self._width = min(width, math.ceil(max(ideal, head)) + 1)
            for part in (self._thinking_document, self._body_document):
                if part is not None:
                    part.setTextWidth(self._width)  # so that the ground of code ends with the bubble
        return max(self._width, theme.px(28)), self._height(theme)

    def head_rect(self, theme: Theme) -> QRectF:
        """Where the folding line stands, from the answer's own corner; empty where there is no thinking."""
        return QRectF(0, 0, self._width, theme.px(HEADER_HEIGHT)) if self.answer.thinking else QRectF()

    def toggle_thinking(self) -> None:
        """Show the thinking, or fold it."""
        self.is_thinking_expanded = not self.is_thinking_expanded

    def paint(self, painter: QPainter, corner: QPointF, theme: Theme) -> None:
        """Draw it with its corner there."""
        painter.save()
        painter.translate(corner)
        if self.answer.thinking:
            painter.setFont(theme.font(13))
            painter.setPen(theme.color("muted"))
            painter.drawText(QPointF(0, theme.px(HEADER_HEIGHT) - theme.px(8)), self.thinking_header)
            painter.translate(0, theme.px(HEADER_HEIGHT))
        for part, color in ((self._thinking_document, "muted"), (self._body_document, "text")):
            if part is None:
                continue
            context = QAbstractTextDocumentLayout.PaintContext()
            context.palette.setColor(QPalette.ColorRole.Text, theme.color(color))
            part.documentLayout().draw(painter, context)
            painter.translate(0, part.size().height() + theme.px(GAP))
        painter.restore()

    def _height(self, theme: Theme) -> float:
        parts = [part.size().height() for part in (self._thinking_document, self._body_document) if part is not None]
        height = sum(parts) + theme.px(GAP) * max(0, len(parts) - 1)
        return height + (theme.px(HEADER_HEIGHT) if self.answer.thinking else 0)
