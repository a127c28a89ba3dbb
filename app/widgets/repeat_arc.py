"""An arc from the current position to an earlier passage that would be repeated."""

from __future__ import annotations

from typing import NamedTuple

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QPainterPath, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from decodescope.app.theme.theme import Theme
from decodescope.app.theme.themed import Themed
from decodescope.app.widgets.building import set_up
from decodescope.app.widgets.plain_text import tooltip
from decodescope.resources.language import tr


class RepeatedPassage(NamedTuple):
    """The texts that the widget shows."""

    passage: str
    """The passage that occurs twice."""
    earlier_continuation: str
    """The text that followed it earlier."""
    current_continuation: str
    """The text that follows it now."""
    penalty: str


class RepeatArc(Themed, QWidget):
    """Two lines: the earlier and the current occurrence of the passage. An arc joins their continuations."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._shown = RepeatedPassage("", "", "", "")
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(tr("Repeated passage"))

    def show_passage(self, shown: RepeatedPassage, description: str) -> None:
        """Show a passage. `description`: the same as a sentence."""
        self._shown = shown
        set_up(self, description=description, tooltip=tooltip(description))
        self.update()

    @property
    def passage(self) -> RepeatedPassage:
        """The shown passage."""
        return self._shown

    @property
    def _row(self) -> int:
        return round(QFontMetricsF(self._theme.font(13)).height()) + self._theme.px(8)

    def sizeHint(self) -> QSize:
        """Return the size of two lines of text."""
        return QSize(self._theme.px(240), 2 * self._row + self._theme.px(6))

    def minimumSizeHint(self) -> QSize:
        """Return a small width and the full height."""
        return QSize(self._theme.px(120), self.sizeHint().height())

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the two lines and the arc at their right."""
        theme, painter = self._theme, QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setFont(theme.font(13))
        metrics = QFontMetricsF(painter.font())
        reach = theme.px(26) + metrics.horizontalAdvance(self._shown.penalty)
        words = (self._shown.earlier_continuation, self._shown.current_continuation)
        widest = min(max(map(metrics.horizontalAdvance, words)) + theme.px(10), (self.width() - reach) * 0.6)
        left = self.width() - reach - widest
        boxes = [QRectF(left, theme.px(2) + n * (self._row + theme.px(2)), widest, self._row) for n in range(2)]
        for box, word, colour in zip(boxes, words, ("refused", "accent"), strict=True):
            self._paint_line(painter, box, word, colour)
        self._paint_arc(painter, boxes)

    def _paint_line(self, painter: QPainter, box: QRectF, word: str, colour: str) -> None:
        theme, gap = self._theme, self._theme.px(4)
        metrics = QFontMetricsF(painter.font())
        middle = Qt.AlignmentFlag.AlignVCenter
        room = QRectF(0, box.top(), box.left() - gap, box.height())
        painter.setPen(theme.color("muted"))
        passage = metrics.elidedText(self._shown.passage, Qt.TextElideMode.ElideLeft, room.width())
        painter.drawText(room, middle | Qt.AlignmentFlag.AlignRight, passage)
        painter.setPen(QPen(theme.color(colour), theme.scale * 1.4))
        painter.setBrush(theme.color(colour, 0.1))
        painter.drawRoundedRect(box.adjusted(0, 2, 0, -2), theme.px(4), theme.px(4))
        painter.setPen(theme.color("text"))
        shown = metrics.elidedText(word, Qt.TextElideMode.ElideRight, box.width() - 2 * gap)
        painter.drawText(box, middle | Qt.AlignmentFlag.AlignHCenter, shown)

    def _paint_arc(self, painter: QPainter, boxes: list[QRectF]) -> None:
        theme = self._theme
        start = QPointF(boxes[1].right() + theme.px(2), boxes[1].center().y())
        end = QPointF(boxes[0].right() + theme.px(2), boxes[0].center().y())
        bulge, head = theme.px(24), theme.px(4)
        path = QPainterPath(start)
        path.cubicTo(start + QPointF(bulge, 0), end + QPointF(bulge, 0), end)
        path.moveTo(end + QPointF(head, -head))
        path.lineTo(end)
        path.lineTo(end + QPointF(head, head))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(theme.color("refused"), theme.scale * 1.8))
        painter.drawPath(path)
        painter.setPen(theme.color("muted"))
        left = start.x() + bulge * 0.75 + theme.px(3)
        cell = QRectF(left, boxes[0].top(), self.width() - left, boxes[1].bottom() - boxes[0].top())
        painter.drawText(cell, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, self._shown.penalty)
