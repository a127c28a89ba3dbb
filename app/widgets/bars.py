"""Rows of bars: their layout, painting and widget."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

from PySide6.QtCore import QEvent, QPointF, QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QContextMenuEvent,
    QFontMetricsF,
    QGuiApplication,
    QHelpEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QResizeEvent,
)
from PySide6.QtWidgets import QMenu, QSizePolicy, QWidget

from decodescope.app.theme.theme import Theme
from decodescope.app.theme.themed import Themed
from decodescope.app.widgets.accessibility import AccessiblePart, AccessibleWidget, Role
from decodescope.app.widgets.plain_text import show_tooltip
from decodescope.resources.language import join_names, tr, trn

MIN_BAR_WIDTH = 40
"""Minimum track width in pixels at 100 % to be placed beside its label."""


@dataclass(frozen=True, slots=True)
class BarRow:
    """One row. `lengths` are fractions of the track: the upper bar is grey, the lower one has the accent colour."""

    label: str
    lengths: tuple[float, ...]
    figures: tuple[str, ...]
    strong: bool = False
    faint: bool = False
    tip: str = ""
    bar_colors: tuple[str, ...] = ()
    """Colour names of the bars, if they differ from the defaults."""
    key: int | None = None
    """Value of `rowPicked` when the row is clicked; None: not clickable."""
    hints: tuple[float, ...] = ()
    """Lengths of faint strokes as fractions of the track, on their own scale, for bars that would be too short."""
    skipped: int = 0
    """Number of rows left out above it: a gap with dots stands for them."""

    @property
    def colors(self) -> tuple[str, ...]:
        """Colour names of the bars."""
        return self.bar_colors or (("faint", "accent") if len(self.lengths) == 2 else ("accent",))


@dataclass(frozen=True)
class BarsLayout:
    """Rows below a header, `width` pixels wide: label at the left, bars, right-aligned columns of figures.

    `widest_figure`: the longest possible figure; `fits_labels`: the label column is as wide as its longest label.
    Measurements are cached.
    """

    theme: Theme
    width: int
    rows: tuple[BarRow, ...] = ()
    head: tuple[str, ...] = ()
    widest_figure: str = ""
    fits_labels: bool = False

    @cached_property
    def columns(self) -> list[tuple[float, float]]:
        """(left, width) of each right-aligned column of figures; independent of the rows' values."""
        theme = self.theme
        count = max((len(row.figures) for row in self.rows), default=0)
        min_width = QFontMetricsF(theme.font(13, 600, tabular=True)).horizontalAdvance(self.widest_figure)
        small = QFontMetricsF(theme.font(11))
        heads = [small.horizontalAdvance(text) + theme.px(10) for text in self.head]
        widths = [max(min_width, heads[n] if n < len(heads) else 0.0) for n in range(count)]
        gap, edge, columns = theme.px(10), float(self.width), []
        for width in reversed(widths):
            columns.append((edge - width, width))
            edge -= width + gap
        return columns[::-1]

    @cached_property
    def label_width(self) -> float:
        """Width of the label column."""
        if not self.fits_labels:
            return min(self.theme.px(88), self.width * 0.3)
        metrics = QFontMetricsF(self.theme.font(13, 600))
        longest = max((metrics.horizontalAdvance(row.label) for row in self.rows), default=0.0)
        return min(longest + self.theme.px(12), self.width * 0.45)

    @cached_property
    def bar_width(self) -> float:
        """Width left for bars between labels and figures."""
        columns = self.columns
        return (columns[0][0] if columns else self.width) - self.theme.px(12) - self.label_width

    @cached_property
    def is_stacked(self) -> bool:
        """Whether the bars are below the labels because the figures leave too little room beside them."""
        is_narrow = bool(self.rows) and self.bar_width < self.theme.px(MIN_BAR_WIDTH)
        return is_narrow or any(len(row.figures) > 2 for row in self.rows)

    @property
    def row_height(self) -> int:
        """Distance between rows in pixels."""
        return self.theme.px(36 if self.is_stacked else 23)

    @property
    def head_height(self) -> int:
        """Height above the first row in pixels."""
        return self.theme.px(18) if self.head else 0

    @property
    def gap_height(self) -> int:
        """Height of the gap that stands for rows left out, in pixels."""
        return self.theme.px(14)

    @cached_property
    def tops(self) -> tuple[int, ...]:
        """The y position of each row."""
        tops, y = [], self.head_height
        for row in self.rows:
            y += self.gap_height if row.skipped else 0
            tops.append(y)
            y += self.row_height
        return tuple(tops)

    @property
    def height(self) -> int:
        """Total height in pixels."""
        return self.tops[-1] + self.row_height if self.rows else self.head_height

    def row_at(self, y: int) -> BarRow | None:
        """Return the row at a y position, or None."""
        number = bisect_right(self.tops, y) - 1
        return self.rows[number] if number >= 0 and y < self.tops[number] + self.row_height else None


_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter


def paint_bars(painter: QPainter, layout: BarsLayout) -> None:
    """Paint the header, then the rows."""
    if layout.head:
        _paint_head(painter, layout)
    columns, label_width = layout.columns, layout.label_width
    stacked, room = layout.is_stacked, layout.bar_width
    line, theme = layout.theme.px(23), layout.theme
    for row, top in zip(layout.rows, layout.tops, strict=True):
        if row.skipped:
            paint_gap_dots(painter, theme, QPointF(0, top - layout.gap_height / 2))
        _paint_words(painter, theme, row, QRectF(0, top, label_width, line), columns)
        if stacked:
            track = QRectF(0, top + line - theme.px(3), layout.width, theme.px(12))
        else:
            track = QRectF(label_width, top, room, line)
        _paint_track(painter, theme, row, track)


def paint_gap_dots(painter: QPainter, theme: Theme, start: QPointF) -> None:
    """Paint three dots, from left to right: something is left out here."""
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(theme.color("muted"))
    radius = 1.25 * theme.scale
    for number in range(3):
        painter.drawEllipse(start + QPointF(theme.px(3 + 5 * number), 0), radius, radius)


def paint_marked_row(painter: QPainter, layout: BarsLayout, number: int) -> None:
    """Paint the background of a marked row and a line at its left edge."""
    theme, top = layout.theme, layout.tops[number]
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(theme.color("tint"))
    painter.drawRoundedRect(QRectF(-theme.px(6), top, layout.width + theme.px(12), layout.row_height), 4, 4)


def _paint_head(painter: QPainter, layout: BarsLayout) -> None:
    """Paint the column names, each with a swatch of its bar's colour."""
    theme, height, rows = layout.theme, layout.theme.px(16), layout.rows
    painter.setFont(theme.font(11))
    colors = rows[0].colors if rows and len(rows[0].lengths) > 1 else ()
    for n, (text, (left, width)) in enumerate(zip(layout.head, layout.columns, strict=False)):
        painter.setPen(theme.color("muted"))
        painter.drawText(QRectF(left, 0, width, height), _RIGHT, text)
        if n < len(colors):
            x = left + width - QFontMetricsF(painter.font()).horizontalAdvance(text) - theme.px(9)
            swatch = QRectF(x, height / 2 - theme.px(2), theme.px(5), theme.px(5))
            painter.fillRect(swatch, theme.color(colors[n]))


def _paint_words(
    painter: QPainter, theme: Theme, row: BarRow, cell: QRectF, columns: list[tuple[float, float]]
) -> None:
    """Paint the label, elided to its cell, and the figures in their columns."""
    font = theme.font(13, 600 if row.strong else 400, tabular=True)
    painter.setFont(font)
    painter.setPen(theme.color("accent" if row.strong else "muted" if row.faint else "text"))
    shown = QFontMetricsF(font).elidedText(row.label, Qt.TextElideMode.ElideRight, cell.width() - theme.px(6))
    painter.setLayoutDirection(Qt.LayoutDirection.LayoutDirectionAuto)  # draw each token in its own text direction
    painter.drawText(cell, Qt.AlignmentFlag.AlignVCenter, shown)
    for text, (left, width) in zip(row.figures, columns, strict=False):
        painter.drawText(QRectF(left, cell.top(), width, cell.height()), _RIGHT, text)


def _paint_track(painter: QPainter, theme: Theme, row: BarRow, cell: QRectF) -> None:
    """Paint the track, its hints and the bars."""
    thick, count = theme.px(5), max(1, len(row.lengths))
    block = thick * count + (count - 1)
    top = cell.top() + (cell.height() - block) / 2
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(theme.color("line", 0.5))
    painter.drawRoundedRect(QRectF(cell.left(), top, cell.width(), block), 2, 2)
    for n, (length, color) in enumerate(zip(row.hints, row.colors, strict=False)):
        stroke = theme.px(1)
        middle = top + n * (thick + 1) + (thick - stroke) / 2
        painter.fillRect(QRectF(cell.left(), middle, cell.width() * length, stroke), theme.color(color))
    for n, (length, color) in enumerate(zip(row.lengths, row.colors, strict=False)):
        width = cell.width() * min(max(length, 0.0), 1.0)
        if width > 0:
            painter.setBrush(theme.color(color))
            painter.drawRoundedRect(QRectF(cell.left(), top + n * (thick + 1), max(width, 1.5), thick), 2, 2)


class BarList(Themed, QWidget, AccessibleWidget):
    """Painted rows with a tooltip on hover; rows with a key can be clicked, and all can be copied as a table."""

    rowPicked = Signal(int)
    accessible_role = Role.List

    def __init__(self, theme: Theme, label: str, parent: QWidget | None = None, fits_labels: bool = False) -> None:
        """Create the widget. `fits_labels`: fit the label column to its longest label instead of a fixed width."""
        super().__init__(parent)
        self._label = label
        self._marked_key: int | None = None
        self._layout = BarsLayout(theme, self.width(), fits_labels=fits_labels)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(label)

    def restyle(self, theme: Theme) -> None:
        self._layout = replace(self._layout, theme=theme, width=self.width())
        self.updateGeometry()
        self.update()

    def set_rows(self, rows: Sequence[BarRow], head: Sequence[str] = (), widest: str = "0.00") -> None:
        """Show these rows. `head` names the columns of figures; `widest` is the longest possible figure."""
        self._lay_out(replace(
            self._layout, width=self.width(), rows=tuple(rows), head=tuple(head), widest_figure=widest
        ))  # fmt: skip
        pickable = any(row.key is not None for row in rows)
        self.setCursor(Qt.CursorShape.PointingHandCursor if pickable else Qt.CursorShape.ArrowCursor)
        self.setAccessibleDescription("; ".join(f"{row.label} {' '.join(row.figures)}" for row in rows))
        self.update()

    @property
    def rows(self) -> tuple[BarRow, ...]:
        """The shown rows."""
        return self._layout.rows

    def accessible_parts(self) -> list[AccessiblePart]:
        """Return one part per row, with its label and figures."""
        return [self._part(number, row) for number, row in enumerate(self.rows)]

    def _part(self, number: int, row: BarRow) -> AccessiblePart:
        figures = join_names(row.figures)
        press = partial(self.rowPicked.emit, row.key) if row.key is not None else None
        marked = row.key == self._marked_key if row.key is not None else None
        place = partial(self._row_rect, number)
        skipped = trn("after {count} token that is not shown", "after {count} tokens that are not shown", row.skipped)
        name = f"{row.label} ({skipped.format(count=row.skipped)})" if row.skipped else row.label
        return AccessiblePart(f"{number + 1}: {name} {figures}", place, value=figures, selected=marked, press=press)

    def _row_rect(self, number: int) -> QRect:
        layout = self._layout
        return QRect(0, layout.tops[number], self.width(), layout.row_height)

    def mark_row(self, key: int | None) -> None:
        """Shade the row with that key; None shades none."""
        self._marked_key = key
        self.update()

    def table_text(self) -> str:
        """Return the rows as tab-separated text."""
        head = ["\t".join((self._label, *self._layout.head))] if self._layout.head else []
        return "\n".join([*head, *("\t".join((row.label, *row.figures)) for row in self.rows)])

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Put the bars below the labels if the widget is narrow."""
        super().resizeEvent(event)
        self._lay_out(replace(self._layout, width=self.width()))

    def _lay_out(self, layout: BarsLayout) -> None:
        """Replace the layout and update the height."""
        before, self._layout = self._layout.height, layout
        if layout.height != before:
            self.updateGeometry()

    def sizeHint(self) -> QSize:
        """Return the height of all rows."""
        return QSize(self._layout.theme.px(240), self._layout.height)

    def minimumSizeHint(self) -> QSize:
        """Return a small width and the full height."""
        return QSize(self._layout.theme.px(160), self._layout.height)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the header, then the rows."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        marked = next(
            (n for n, row in enumerate(self.rows) if row.key is not None and row.key == self._marked_key), None
        )
        if marked is not None:
            paint_marked_row(painter, self._layout, marked)
        paint_bars(painter, self._layout)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Pick a row that has a key."""
        row = self._layout.row_at(round(event.position().y()))
        if event.button() == Qt.MouseButton.LeftButton and row is not None and row.key is not None:
            self.rowPicked.emit(row.key)
        else:
            super().mousePressEvent(event)

    def event(self, event: QEvent) -> bool:
        """Show the tooltip of the row under the pointer."""
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            row = self._layout.row_at(event.pos().y())
            show_tooltip(event.globalPos(), row.tip if row is not None else "", self)
            return True
        return super().event(event)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        """Show a menu for copying the rows."""
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.addAction(tr("Copy as table"), self.copy_table)
        menu.popup(event.globalPos())

    def copy_table(self) -> None:
        """Copy the rows to the clipboard."""
        QGuiApplication.clipboard().setText(self.table_text())
