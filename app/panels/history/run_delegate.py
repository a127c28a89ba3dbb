"""How a kept run looks in the list: what was asked, how the answer begins, and its figures."""

from __future__ import annotations

import time

from PySide6.QtCore import QRect, QRectF, Qt
from PySide6.QtGui import QFont, QFontMetrics, QPainter
from PySide6.QtWidgets import QStyle, QStyleOptionViewItem, QWidget

from app.panels.history import history_wording
from app.panels.history.history_model import RECORD_ROLE
from app.storage.history.history_record import HistoryRecord
from app.theme.theme import Theme
from app.widgets import icons
from app.widgets.painted_rows import ABOVE, BETWEEN, Index, LinesDelegate, paint_line

SIDE, GAP = 16, 8
MARK_WIDTH = 3
"""Width of the bar at the shown run."""


class RunDelegate(LinesDelegate):
    """Three lines; every row is as high as every other, so that a long list is laid out at once."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.shown_run = ""
        """The run that the window shows."""

    def line_fonts(self, theme: Theme) -> tuple[QFont, ...]:
        return _fonts(theme)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        record = index.data(RECORD_ROLE)
        if self.theme is None or not isinstance(record, HistoryRecord):
            return
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        self._paint_background(painter, option, record)
        lines = self._lines(option.rect)
        self._paint_name(painter, lines[0], record)
        fonts, colors = _fonts(self.theme), (self.theme.color("text"), self.theme.color("muted"))
        told = f"{history_wording.time_text(record.made, time.time())} · {history_wording.summary_text(record)}"
        for line, font, color, text in zip(lines[1:], fonts[1:], colors, (record.words or "–", told), strict=True):
            paint_line(painter, line, font, color, text)
        painter.restore()

    def updateEditorGeometry(self, editor: QWidget, option: QStyleOptionViewItem, index: Index) -> None:
        """Over the first line."""
        line = self._lines(option.rect)[0]
        height = max(line.height(), editor.sizeHint().height())
        editor.setGeometry(QRect(line.left() - 6, line.center().y() - height // 2, line.width() + 12, height))

    def _lines(self, row: QRect) -> list[QRect]:
        """Where the three lines are."""
        theme = self.theme
        if theme is None:
            return [row] * 3
        left, width = row.left() + theme.space(SIDE), row.width() - 2 * theme.space(SIDE)
        top, lines = row.top() + theme.space(ABOVE), []
        for font in _fonts(theme):
            height = QFontMetrics(font).lineSpacing()
            lines.append(QRect(left, top, width, height))
            top += height + theme.px(BETWEEN)
        return lines

    def _paint_background(self, painter: QPainter, option: QStyleOptionViewItem, record: HistoryRecord) -> None:
        theme = self.theme
        assert theme is not None
        state = option.state
        row = QRectF(option.rect)
        if state & (QStyle.StateFlag.State_Selected | QStyle.StateFlag.State_MouseOver):
            selected = bool(state & QStyle.StateFlag.State_Selected)
            painter.fillRect(row, theme.color("tint" if selected else "hover"))
        if record.id == self.shown_run:
            painter.fillRect(QRectF(row.left(), row.top(), theme.px(MARK_WIDTH), row.height()), theme.color("accent"))
        painter.fillRect(QRectF(row.left(), row.bottom() - 1, row.width(), 1), theme.color("line"))
        if state & QStyle.StateFlag.State_HasFocus:
            painter.setPen(theme.color("accent"))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRect(row.adjusted(0.5, 0.5, -0.5, -1.5))

    def _paint_name(self, painter: QPainter, line: QRect, record: HistoryRecord) -> None:
        """The name, and at the right the pin of one that is pinned."""
        theme = self.theme
        assert theme is not None
        room = QRect(line)
        if record.pinned:
            side = theme.px(13)
            left = line.right() - side
            icons.paint_icon(painter, "pin", theme.accent, QRectF(left, line.center().y() - side / 2 + 1, side, side))
            room.setRight(left - theme.px(GAP))
        paint_line(painter, room, _fonts(theme)[0], theme.color("text"), record.name)


def _fonts(theme: Theme) -> tuple[QFont, QFont, QFont]:
    return theme.font(13, 600), theme.font(12), theme.font(11, tabular=True)
