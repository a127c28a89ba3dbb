"""Tokens as small cells, coloured by their state in the cache."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from PySide6.QtCore import QEvent, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QFontMetricsF, QHelpEvent, QPainter, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from decodescope.app.theme.theme import Theme
from decodescope.app.theme.themed import Themed
from decodescope.app.views.memory.cached_tokens import (
    EVICTED,
    EXACT,
    HELD,
    PACKED,
    RECENT,
    ROOM,
    SINK,
    SOURCE,
    STATE_NAMES,
    CachedTokenRow,
)
from decodescope.app.widgets.accessibility import AccessiblePart, AccessibleWidget, Role
from decodescope.app.widgets.plain_text import show_tooltip
from decodescope.resources.language import join_names, tr

STATE_COLOURS = {HELD: "kept", SINK: "best", RECENT: "kept", EVICTED: "pruned", PACKED: "kept", EXACT: "refused",
           ROOM: "pruned", SOURCE: "finished"}  # fmt: skip
HOLLOW_STATES = (EVICTED, ROOM)
_PITCHES = (14, 11, 9, 7, 5, 4)
"""Pixels from cell to cell; the largest pitch that fits is used."""
MAX_HEIGHT = 108
"""Maximum height in pixels of all cells."""


class TokenCells(Themed, QWidget, AccessibleWidget):
    """A grid of cells below a title for each part of the cache; `describe(row, place)` returns a token's tooltip."""

    accessible_role = Role.List

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._rows: tuple[CachedTokenRow, ...] = ()
        self.describe: Callable[[int, int], str] | None = None
        self._tokens_per_cell, self._announced_height = 1, -1
        self._columns, self._pitch = 1, float(_PITCHES[0])
        self.setAccessibleName(tr("Tokens in the cache"))
        self.setMouseTracking(True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def restyle(self, theme: Theme) -> None:
        self._update_layout()

    def set_rows(self, rows: Sequence[CachedTokenRow]) -> None:
        """Show these tokens."""
        if tuple(rows) != self._rows:
            self._rows = tuple(rows)
            self.setAccessibleDescription("; ".join(_row_sentence(row) for row in rows))
            self._update_layout()

    def accessible_parts(self) -> list[AccessiblePart]:
        """Return one part per row, with the count of tokens in each state."""
        return [
            AccessiblePart(_row_sentence(row), partial(self._row_rect, number)) for number, row in enumerate(self._rows)
        ]

    def _row_rect(self, number: int) -> QRect:
        top = self._tops()[number] - self._title_height
        lines = -(-self._cells(self._rows[number]) // self._columns)
        return QRectF(0, top, self.width(), self._title_height + lines * self._pitch).toAlignedRect()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Update the layout for a new width."""
        super().resizeEvent(event)
        self._update_layout()

    def _update_layout(self) -> None:
        """Choose the largest cells that fit, or put several tokens in a cell."""
        max_height, self._tokens_per_cell = self._theme.px(MAX_HEIGHT), 1
        for pitch in _PITCHES:
            self._pitch = float(self._theme.px(pitch))
            self._columns = max(1, int(self.width() / self._pitch))
            if self._lines() * self._pitch <= max_height:
                break
        while self._lines() * self._pitch > max_height and self._tokens_per_cell < 1 << 20:
            self._tokens_per_cell += 1
        if self._height() != self._announced_height:
            self._announced_height = self._height()
            self.updateGeometry()
        self.update()

    def _cells(self, row: CachedTokenRow) -> int:
        return -(-len(row.states) // self._tokens_per_cell)

    def _lines(self) -> int:
        return sum(-(-self._cells(row) // self._columns) for row in self._rows)

    @property
    def _title_height(self) -> float:
        return QFontMetricsF(self._theme.font(11)).height() + self._theme.px(5)

    def _height(self) -> int:
        gaps = self._theme.px(8) * max(0, len(self._rows) - 1)
        return round(self._lines() * self._pitch + len(self._rows) * self._title_height + gaps)

    def sizeHint(self) -> QSize:
        """Return a height for all lines."""
        return QSize(self._theme.px(120), self._height())

    minimumSizeHint = sizeHint

    def _tops(self) -> list[float]:
        """Return the y coordinate of each row's cells."""
        tops, y = [], 0.0
        for row in self._rows:
            y += self._title_height
            tops.append(y)
            y += -(-self._cells(row) // self._columns) * self._pitch + self._theme.px(8)
        return tops

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the titles and cells."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setFont(self._theme.font(11))
        for row, top in zip(self._rows, self._tops(), strict=True):
            painter.setPen(self._theme.color("muted"))
            merged = tr("{title} · {count} tokens per cell").format(title=row.title, count=self._tokens_per_cell)
            base = top - self._theme.px(5) - QFontMetricsF(painter.font()).descent()
            painter.drawText(0, round(base), merged if self._tokens_per_cell > 1 else row.title)
            self._paint_row(painter, row, top)
        painter.end()

    def _paint_row(self, painter: QPainter, row: CachedTokenRow, top: float) -> None:
        theme, gap = self._theme, max(1.0, self._pitch * 0.16)
        radius = min(2.5 * theme.scale, self._pitch * 0.2)
        for cell in range(self._cells(row)):
            state = row.states[cell * self._tokens_per_cell]
            box = QRectF(cell % self._columns * self._pitch, top + cell // self._columns * self._pitch,
                         self._pitch - gap, self._pitch - gap)  # fmt: skip
            if state in HOLLOW_STATES:
                painter.setPen(QPen(theme.color(STATE_COLOURS[state]), 1, _pen_style(state)))
                painter.setBrush(Qt.BrushStyle.NoBrush)
                box.adjust(0.5, 0.5, -0.5, -0.5)
            else:
                painter.setPen(Qt.PenStyle.NoPen)
                painter.setBrush(theme.color(STATE_COLOURS[state]))
            painter.drawRoundedRect(box, radius, radius)
            if state == EVICTED and self._pitch >= 7:
                painter.drawLine(box.bottomLeft(), box.topRight())

    def cell_rect(self, row: int, index: int) -> QRectF:
        """Return the rectangle of token `index` in a row."""
        cell = index // self._tokens_per_cell
        return QRectF(cell % self._columns * self._pitch, self._tops()[row] + cell // self._columns * self._pitch,
                      self._pitch, self._pitch)  # fmt: skip

    def token_at(self, x: float, y: float) -> tuple[int, int] | None:
        """Return (row, index) of the token at a pixel."""
        for number, (row, top) in enumerate(zip(self._rows, self._tops(), strict=True)):
            column, line = int(x // self._pitch), int((y - top) // self._pitch)
            place = (line * self._columns + column) * self._tokens_per_cell
            if y >= top and 0 <= column < self._columns and 0 <= place < len(row.states):
                return number, place
        return None

    def event(self, event: QEvent) -> bool:
        """Show the tooltip of the token under the mouse."""
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            found = self.token_at(event.pos().x(), event.pos().y())
            tip = self.describe(*found) if found is not None and self.describe is not None else ""
            show_tooltip(event.globalPos(), tip, self)
            return True
        return super().event(event)


def _pen_style(state: str) -> Qt.PenStyle:
    return Qt.PenStyle.DotLine if state == ROOM else Qt.PenStyle.SolidLine


def _row_sentence(row: CachedTokenRow) -> str:
    counts = {state: row.states.count(state) for state in dict.fromkeys(row.states)}
    parts = (
        tr("{count:,} {state}").format(count=count, state=tr(STATE_NAMES[state])) for state, count in counts.items()
    )
    return tr("{what}: {figures}").format(what=row.title, figures=join_names(parts))
