"""A formatted answer in its bubble: the thinking, folded or not, and the answer below it."""

from __future__ import annotations

import math

from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QAbstractTextDocumentLayout, QFontMetricsF, QPainter, QPalette, QTextDocument

from app.theme.theme import Theme
from app.views.chat.markdown import Answer, formatted, plain, split_thinking
from resources.language import tr, trn

HEAD, GAP = 24, 8
"""Pixels at 100 %: the line that folds the thinking, and the space below it."""


class RichAnswer:
    """Laid out once for a text, a width and a look."""

    def __init__(self) -> None:
        self.is_unfolded = False
        """Whether the thinking is shown."""
        self.answer = Answer("", "")
        self._key: tuple[object, ...] = ()
        self._theme: Theme | None = None
        self._thought: QTextDocument | None = None
        self._body: QTextDocument | None = None
        self._width = 0.0

    @property
    def head(self) -> str:
        """The line that folds the thinking; empty where there is none."""
        if not self.answer.thinking:
            return ""
        count = len(self.answer.thinking.split())
        words = trn("{n:,} word", "{n:,} words", count).format(n=count)
        mark = "▾" if self.is_unfolded else "▸"
        return f"{mark} {tr('Thinking')} · {words}"

    def lay_out(self, text: str, width: float, theme: Theme) -> tuple[float, float]:
        """Width and height in at most that width."""
        key = (text, width, theme, self.is_unfolded)
        if key != self._key:
            self._key, self._theme = key, theme
            self.answer = split_thinking(text)
            shows = self.is_unfolded and self.answer.thinking
            self._thought = plain(self.answer.thinking, theme, width) if shows else None
            self._body = formatted(self.answer.body, theme, width) if self.answer.body.strip() else None
            ideal = max((part.idealWidth() for part in (self._thought, self._body) if part is not None), default=0.0)
            head = QFontMetricsF(theme.font(13)).horizontalAdvance(self.head)
            self._width = min(width, math.ceil(max(ideal, head)) + 1)
            for part in (self._thought, self._body):
                if part is not None:
                    part.setTextWidth(self._width)  # so that the ground of code ends with the bubble
        return max(self._width, theme.px(28)), self._height(theme)

    def head_rect(self, theme: Theme) -> QRectF:
        """Where the folding line stands, from the answer's own corner; empty where there is no thinking."""
        return QRectF(0, 0, self._width, theme.px(HEAD)) if self.answer.thinking else QRectF()

    def toggle(self) -> None:
        """Show the thinking, or fold it."""
        self.is_unfolded = not self.is_unfolded

    def paint(self, painter: QPainter, corner: QPointF, theme: Theme) -> None:
        """Draw it with its corner there."""
        painter.save()
        painter.translate(corner)
        if self.answer.thinking:
            painter.setFont(theme.font(13))
            painter.setPen(theme.color("muted"))
            painter.drawText(QPointF(0, theme.px(HEAD) - theme.px(8)), self.head)
            painter.translate(0, theme.px(HEAD))
        for part, color in ((self._thought, "muted"), (self._body, "text")):
            if part is None:
                continue
            look = QAbstractTextDocumentLayout.PaintContext()
            look.palette.setColor(QPalette.ColorRole.Text, theme.color(color))
            part.documentLayout().draw(painter, look)
            painter.translate(0, part.size().height() + theme.px(GAP))
        painter.restore()

    def _height(self, theme: Theme) -> float:
        parts = [part.size().height() for part in (self._thought, self._body) if part is not None]
        height = sum(parts) + theme.px(GAP) * max(0, len(parts) - 1)
        return height + (theme.px(HEAD) if self.answer.thinking else 0)
