"""Rows of bars: a label, one or two bars, and figures at the right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from PySide6.QtCore import QEvent, QRect, QSize, Qt, Signal
from PySide6.QtGui import (
    QContextMenuEvent,
    QGuiApplication,
    QHelpEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QResizeEvent,
)
from PySide6.QtWidgets import QMenu, QSizePolicy, QWidget

from app.theme.theme import Theme
from app.widgets.accessibility import AccessiblePart, AccessibleWidget, Role
from app.widgets.bars_layout import BarRow, BarsLayout
from app.widgets.bars_painting import paint_bars, paint_marked_row
from app.widgets.plain_text import show_tooltip
from resources.language import tr


class BarList(QWidget, AccessibleWidget):
    """Painted rows; the tip of a row appears on hover, and the whole can be copied as a table. Rows with a key can be
    clicked."""

    rowPicked = Signal(int)
    accessible_role = Role.List

    def __init__(self, theme: Theme, label: str, parent: QWidget | None = None, fits_labels: bool = False) -> None:
        """`fits_labels`: the column is as wide as its longest label; else the same whatever stands in it."""
        super().__init__(parent)
        self._label = label
        self._marked_key: int | None = None
        self._layout = BarsLayout(theme, self.width(), fits_labels=fits_labels)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(label)

    def set_theme(self, theme: Theme) -> None:
        """Take other colours and sizes."""
        self._layout = replace(self._layout, theme=theme, width=self.width())
        self.updateGeometry()
        self.update()

    def set_rows(self, rows: Sequence[BarRow], head: Sequence[str] = (), widest: str = "0.00") -> None:
        """Show these rows; `head` names the columns of figures, `widest` is the longest figure there can be."""
        self._lay_out(replace(
            self._layout, width=self.width(), rows=tuple(rows), head=tuple(head), widest_figure=widest
        ))  # fmt: skip
        pickable = any(row.key is not None for row in rows)
        self.setCursor(Qt.CursorShape.PointingHandCursor if pickable else Qt.CursorShape.ArrowCursor)
        self.setAccessibleDescription("; ".join(f"{row.label} {' '.join(row.figures)}" for row in rows))
        self.update()

    @property
    def rows(self) -> tuple[BarRow, ...]:
        """What is shown."""
        return self._layout.rows

    def accessible_parts(self) -> list[AccessiblePart]:
        """A row after the other, by its label and figures."""
        return [self._part(number, row) for number, row in enumerate(self.rows)]

    def _part(self, number: int, row: BarRow) -> AccessiblePart:
        figures = ", ".join(row.figures)
        press = partial(self.rowPicked.emit, row.key) if row.key is not None else None
        marked = row.key == self._marked_key if row.key is not None else None
        place = partial(self._row_rect, number)
        return AccessiblePart(
            f"{number + 1}: {row.label} {figures}", place, value=figures, selected=marked, press=press
        )

    def _row_rect(self, number: int) -> QRect:
        layout = self._layout
        return QRect(0, layout.head_height + number * layout.row_height, self.width(), layout.row_height)

    def mark_row(self, key: int | None) -> None:
        """Shade the row of that key; None for none."""
        self._marked_key = key
        self.update()

    def table_text(self) -> str:
        """The rows as tab-separated text."""
        head = ["\t".join((self._label, *self._layout.head))] if self._layout.head else []
        return "\n".join([*head, *("\t".join((row.label, *row.figures)) for row in self.rows)])

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Put the bars below the words where it gets narrow."""
        super().resizeEvent(event)
        self._lay_out(replace(self._layout, width=self.width()))

    def _lay_out(self, layout: BarsLayout) -> None:
        """Take another layout, and another height with it."""
        before, self._layout = self._layout.height, layout
        if layout.height != before:
            self.updateGeometry()

    def sizeHint(self) -> QSize:
        """As high as the rows."""
        return QSize(self._layout.theme.px(240), self._layout.height)

    def minimumSizeHint(self) -> QSize:
        """Narrow, but never cut off below."""
        return QSize(self._layout.theme.px(160), self._layout.height)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Head, then the rows."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        marked = next(
            (n for n, row in enumerate(self.rows) if row.key is not None and row.key == self._marked_key), None
        )
        if marked is not None:
            paint_marked_row(painter, self._layout, marked)
        paint_bars(painter, self._layout)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Pick a row that can be."""
        row = self._layout.row_at(round(event.position().y()))
        if event.button() == Qt.MouseButton.LeftButton and row is not None and row.key is not None:
            self.rowPicked.emit(row.key)
        else:
            super().mousePressEvent(event)

    def event(self, event: QEvent) -> bool:
        """Tell of the row under the pointer."""
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            row = self._layout.row_at(event.pos().y())
            show_tooltip(event.globalPos(), row.tip if row is not None else "", self)
            return True
        return super().event(event)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        """Offer to copy the rows."""
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.addAction(tr("Copy as a table"), self.copy_table)
        menu.popup(event.globalPos())

    def copy_table(self) -> None:
        """Put the rows on the clipboard."""
        QGuiApplication.clipboard().setText(self.table_text())
