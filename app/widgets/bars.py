"""Rows of bars: a label, one or two bars, and figures at the right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from PySide6.QtCore import QEvent, QRectF, QSize, Qt
from PySide6.QtGui import (
    QContextMenuEvent,
    QFontMetricsF,
    QGuiApplication,
    QHelpEvent,
    QPainter,
    QPaintEvent,
    QResizeEvent,
)
from PySide6.QtWidgets import QMenu, QSizePolicy, QToolTip, QWidget

from app.theme.theme import Theme

LEAST_BAR = 40
"""Pixels at 100 % that a track must have to stand beside its label."""


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
    hints: tuple[float, ...] = ()
    """Shares of the track that faint strokes reach, on a scale of their own, where the bars would be too short."""


class Bars(QWidget):
    """Painted rows; the tip of a row appears on hover, and the whole can be copied as a table."""

    def __init__(self, theme: Theme, label: str, parent: QWidget | None = None, whole_labels: bool = False) -> None:
        """`whole_labels`: the column is as wide as its longest label; else the same whatever stands in it."""
        super().__init__(parent)
        self._theme, self._label, self._whole_labels = theme, label, whole_labels
        self._head: tuple[str, ...] = ()
        self._rows: tuple[BarRow, ...] = ()
        self._widest = ""
        self._is_narrow = False
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(label)

    def set_theme(self, theme: Theme) -> None:
        """Take other colours and sizes."""
        self._theme = theme
        self._judge_room()
        self.updateGeometry()
        self.update()

    def set_rows(self, rows: Sequence[BarRow], head: Sequence[str] = (), widest: str = "0.00") -> None:
        """Show these rows; `head` names the columns of figures, `widest` is the longest figure there can be."""
        before = self.sizeHint()
        self._rows, self._head, self._widest = tuple(rows), tuple(head), widest
        self.setAccessibleDescription("; ".join(f"{row.label} {' '.join(row.figures)}" for row in rows))
        self._judge_room()
        if self.sizeHint() != before:
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

    @property
    def _under(self) -> bool:
        """Whether the bars lie below the words, because the figures leave no room beside them."""
        return self._is_narrow or any(len(row.figures) > 2 for row in self._rows)

    def _room(self) -> float:
        """Width that labels and figures leave for bars."""
        columns = self._columns()
        return (columns[0][0] if columns else self.width()) - self._theme.px(12) - self._label_width

    @property
    def _label_width(self) -> float:
        if not self._whole_labels:
            return min(self._theme.px(88), self.width() * 0.3)
        metrics = QFontMetricsF(self._theme.font(13, 600))
        longest = max((metrics.horizontalAdvance(row.label) for row in self._rows), default=0.0)
        return min(longest + self._theme.px(12), self.width() * 0.45)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Put the bars below the words where it gets narrow."""
        super().resizeEvent(event)
        self._judge_room()

    def _judge_room(self) -> None:
        narrow = bool(self._rows) and self._room() < self._theme.px(LEAST_BAR)
        if narrow != self._is_narrow:
            self._is_narrow = narrow
            self.updateGeometry()

    @property
    def _row_height(self) -> int:
        return self._theme.px(36 if self._under else 23)

    def sizeHint(self) -> QSize:
        """As high as the rows."""
        height = self._row_height * len(self._rows) + (self._theme.px(18) if self._head else 0)
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
            self._paint_head(painter, columns)
            top = self._theme.px(18)
        for row in self._rows:
            self._paint_row(painter, row, top, columns)
            top += self._row_height

    def _paint_head(self, painter: QPainter, columns: list[tuple[float, float]]) -> None:
        """Names of the columns, each with a swatch of the bar it belongs to."""
        theme, height = self._theme, self._theme.px(16)
        painter.setFont(theme.font(11))
        colors = _colors(self._rows[0]) if self._rows and len(self._rows[0].lengths) > 1 else ()
        for n, (text, (left, width)) in enumerate(zip(self._head, columns, strict=False)):
            painter.setPen(theme.color("muted"))
            flags = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
            painter.drawText(QRectF(left, 0, width, height), flags, text)
            if n < len(colors):
                x = left + width - QFontMetricsF(painter.font()).horizontalAdvance(text) - theme.px(9)
                swatch = QRectF(x, height / 2 - theme.px(2), theme.px(5), theme.px(5))
                painter.fillRect(swatch, theme.color(colors[n]))

    def _columns(self) -> list[tuple[float, float]]:
        """(left, width) of each column of figures, set flush right; the same for every set of rows."""
        theme = self._theme
        count = max((len(row.figures) for row in self._rows), default=0)
        least = QFontMetricsF(theme.font(13, 600, tabular=True)).horizontalAdvance(self._widest)
        small = QFontMetricsF(theme.font(11))
        heads = [small.horizontalAdvance(text) + theme.px(10) for text in self._head]
        widths = [max(least, heads[n] if n < len(heads) else 0.0) for n in range(count)]
        gap, edge, columns = theme.px(10), float(self.width()), []
        for width in reversed(widths):
            columns.append((edge - width, width))
            edge -= width + gap
        return columns[::-1]

    def _paint_row(self, painter: QPainter, row: BarRow, top: float, columns: list[tuple[float, float]]) -> None:
        theme, height = self._theme, self._theme.px(23)
        label_width = self._label_width
        font = theme.font(13, 600 if row.strong else 400, tabular=True)
        color = "accent" if row.strong else "muted" if row.faint else "text"
        painter.setFont(font)
        painter.setPen(theme.color(color))
        shown = QFontMetricsF(font).elidedText(row.label, Qt.TextElideMode.ElideRight, label_width - theme.px(6))
        painter.drawText(QRectF(0, top, label_width, height), Qt.AlignmentFlag.AlignVCenter, shown)
        for text, (left, width) in zip(row.figures, columns, strict=False):
            flags = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
            painter.drawText(QRectF(left, top, width, height), flags, text)
        if self._under:
            self._paint_bars(painter, row, QRectF(0, top + height - theme.px(3), self.width(), theme.px(12)))
            return
        self._paint_bars(painter, row, QRectF(label_width, top, self._room(), height))

    def _paint_bars(self, painter: QPainter, row: BarRow, cell: QRectF) -> None:
        theme = self._theme
        thick, count = theme.px(5), max(1, len(row.lengths))
        block = thick * count + (count - 1)
        top = cell.top() + (cell.height() - block) / 2
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.color("line", 0.5))
        painter.drawRoundedRect(QRectF(cell.left(), top, cell.width(), block), 2, 2)
        for n, (length, color) in enumerate(zip(row.hints, _colors(row), strict=False)):
            stroke = theme.px(1)
            middle = top + n * (thick + 1) + (thick - stroke) / 2
            painter.fillRect(QRectF(cell.left(), middle, cell.width() * length, stroke), theme.color(color, 0.55))
        for n, (length, color) in enumerate(zip(row.lengths, _colors(row), strict=False)):
            width = cell.width() * min(max(length, 0.0), 1.0)
            if width > 0:
                painter.setBrush(theme.color(color))
                bar = QRectF(cell.left(), top + n * (thick + 1), max(width, 1.5), thick)
                painter.drawRoundedRect(bar, 2, 2)

    def event(self, event: QEvent) -> bool:
        """Tell of the row under the pointer."""
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            top = self._theme.px(18) if self._head else 0
            row = (event.pos().y() - top) // self._row_height
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


def _colors(row: BarRow) -> tuple[str, ...]:
    """Names of the colours of a row's bars."""
    return row.strokes or (("faint", "accent") if len(row.lengths) == 2 else ("accent",))
