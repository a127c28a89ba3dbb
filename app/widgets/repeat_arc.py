"""An arc from where a text stands now to an earlier passage that it would go on repeating."""

from __future__ import annotations

from typing import NamedTuple

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QPainterPath, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.theme.theme import Theme
from app.widgets.plain_text import tooltip
from resources.language import tr


class RepeatedPassage(NamedTuple):
    """What the picture shows, in words."""

    passage: str
    """What stands twice."""
    earlier_continuation: str
    """What came behind it then."""
    current_continuation: str
    """What came behind it this time."""
    penalty: str


class RepeatArc(QWidget):
    """Two lines: the passage as it stood before, and as it stands now; an arc joins what came behind each."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._shown = RepeatedPassage("", "", "", "")
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(tr("Repeated passage"))

    def set_theme(self, theme: Theme) -> None:
        """Take other colours and sizes."""
        self._theme = theme
        self.updateGeometry()
        self.update()

    def show_passage(self, shown: RepeatedPassage, description: str) -> None:
        """Show this one; `description`: the same in words."""
        self._shown = shown
        self.setAccessibleDescription(description)
        self.setToolTip(tooltip(description))
        self.update()

    @property
    def passage(self) -> RepeatedPassage:
        """What is shown."""
        return self._shown

    @property
    def _row(self) -> int:
        return round(QFontMetricsF(self._theme.font(13)).height()) + self._theme.px(8)

    def sizeHint(self) -> QSize:
        """Two lines of text."""
        return QSize(self._theme.px(240), 2 * self._row + self._theme.px(6))

    def minimumSizeHint(self) -> QSize:
        """Narrow, but never cut off below."""
        return QSize(self._theme.px(120), self.sizeHint().height())

    def paintEvent(self, event: QPaintEvent) -> None:
        """The lines, then the arc at their right."""
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
