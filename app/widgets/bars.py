"""Rows of bars: a label, one or two bars, and figures at the right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from PySide6.QtCore import QEvent, QRectF, QSize, Qt
from PySide6.QtGui import QContextMenuEvent, QFontMetricsF, QGuiApplication, QHelpEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QMenu, QSizePolicy, QToolTip, QWidget

from app.theme import Theme


@dataclass(frozen=True, slots=True)
class BarRow:
    """One row. `lengths` are shares of the track: the upper bar grey, the lower one in the accent colour."""

    label: str
    lengths: tuple[float, ...]
    figures: tuple[str, ...]
    strong: bool = False
    faint: bool = False
    tip: str = ""
    strokes: tuple[str, ...] = field(default=())
    """Colour names of the bars, where they differ from the usual ones."""


class Bars(QWidget):
    """Painted rows; the tip of a row appears on hover, and the whole can be copied as a table."""

    def __init__(self, theme: Theme, label: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme, self._label = theme, label
        self._head: tuple[str, ...] = ()
        self._rows: tuple[BarRow, ...] = ()
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(label)

    def set_theme(self, theme: Theme) -> None:
        """Take other colours and sizes."""
        self._theme = theme
        self.updateGeometry()
        self.update()

    def set_rows(self, rows: Sequence[BarRow], head: Sequence[str] = ()) -> None:
        """Show these rows; `head` names the columns of figures."""
        resized = (len(rows), bool(head)) != (len(self._rows), bool(self._head))
        self._rows, self._head = tuple(rows), tuple(head)
        self.setAccessibleDescription("; ".join(f"{row.label} {' '.join(row.figures)}" for row in rows))
        if resized:
            self.updateGeometry()
        self.update()

    @property
    def rows(self) -> tuple[BarRow, ...]:
        """What is shown."""
        return self._rows

    def table(self) -> str:
        """The rows as tab-separated text."""
        head = ["\t".join((self._label, *self._head))] if self._head else []
        return "\n".join([*head, *("\t".join((row.label, *row.figures)) for row in self._rows)])

    def sizeHint(self) -> QSize:
        """As high as the rows."""
        height = self._theme.px(23) * len(self._rows) + (self._theme.px(18) if self._head else 0)
        return QSize(self._theme.px(240), height)

    def minimumSizeHint(self) -> QSize:
        """Narrow, but never cut off below."""
        return QSize(self._theme.px(160), self.sizeHint().height())

    def paintEvent(self, event: QPaintEvent) -> None:
        """Head, then the rows."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        columns = self._columns()
        top = 0.0
        if self._head:
            painter.setFont(self._theme.font(11))
            painter.setPen(self._theme.color("muted"))
            for text, (left, width) in zip(self._head, columns, strict=False):
                cell = QRectF(left, 0, width, self._theme.px(16))
                painter.drawText(cell, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, text)
            top = self._theme.px(18)
        for row in self._rows:
            self._paint_row(painter, row, top, columns)
            top += self._theme.px(23)

    def _columns(self) -> list[tuple[float, float]]:
        """(left, width) of each column of figures, set flush right."""
        metrics = QFontMetricsF(self._theme.font(13, 600, tabular=True))
        small = QFontMetricsF(self._theme.font(11))
        count = max((len(row.figures) for row in self._rows), default=0)
        widths = []
        for n in range(count):
            cells = [metrics.horizontalAdvance(row.figures[n]) for row in self._rows if n < len(row.figures)]
            cells.append(metrics.horizontalAdvance("00.0 %"))
            if n < len(self._head):
                cells.append(small.horizontalAdvance(self._head[n]))
            widths.append(max(cells))
        gap, edge, columns = self._theme.px(10), float(self.width()), []
        for width in reversed(widths):
            columns.append((edge - width, width))
            edge -= width + gap
        return columns[::-1]

    def _paint_row(self, painter: QPainter, row: BarRow, top: float, columns: list[tuple[float, float]]) -> None:
        theme, height = self._theme, self._theme.px(23)
        label_width = theme.px(88)
        font = theme.font(13, 600 if row.strong else 400, tabular=True)
        color = "accent" if row.strong else "muted" if row.faint else "text"
        painter.setFont(font)
        painter.setPen(theme.color(color))
        shown = QFontMetricsF(font).elidedText(row.label, Qt.TextElideMode.ElideRight, label_width - theme.px(6))
        painter.drawText(QRectF(0, top, label_width, height), Qt.AlignmentFlag.AlignVCenter, shown)
        for text, (left, width) in zip(row.figures, columns, strict=False):
            flags = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
            painter.drawText(QRectF(left, top, width, height), flags, text)
        right = columns[0][0] - theme.px(12) if columns else float(self.width())
        if right - label_width > 12:
            self._paint_bars(painter, row, QRectF(label_width, top, right - label_width, height))

    def _paint_bars(self, painter: QPainter, row: BarRow, cell: QRectF) -> None:
        theme = self._theme
        thick, count = theme.px(5), max(1, len(row.lengths))
        block = thick * count + (count - 1)
        top = cell.top() + (cell.height() - block) / 2
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.color("line", 0.5))
        painter.drawRoundedRect(QRectF(cell.left(), top, cell.width(), block), 2, 2)
        colors = row.strokes or (("faint", "accent") if count == 2 else ("accent",))
        for n, (length, color) in enumerate(zip(row.lengths, colors, strict=False)):
            width = cell.width() * min(max(length, 0.0), 1.0)
            if width > 0:
                painter.setBrush(theme.color(color))
                bar = QRectF(cell.left(), top + n * (thick + 1), max(width, 1.5), thick)
                painter.drawRoundedRect(bar, 2, 2)

    def event(self, event: QEvent) -> bool:
        """Tell of the row under the pointer."""
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            top = self._theme.px(18) if self._head else 0
            row = (event.pos().y() - top) // self._theme.px(23)
            tip = self._rows[row].tip if 0 <= row < len(self._rows) else ""
            QToolTip.showText(event.globalPos(), tip, self)
            return True
        return super().event(event)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        """Offer to copy the rows."""
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.addAction("Copy as a table", self.copy)
        menu.popup(event.globalPos())

    def copy(self) -> None:
        """Put the rows on the clipboard."""
        QGuiApplication.clipboard().setText(self.table())
