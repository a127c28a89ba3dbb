"""The map of an atlas: the tree of texts over the values of a setting, painted from top to bottom."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

from PySide6.QtCore import QEvent, QPointF, QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QFontMetricsF, QHelpEvent, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from decodescope.app.features.same_noise.state import AtlasResult, band_cells, mean_probability, value_label
from decodescope.app.theme.theme import Theme, blend, fill_rect
from decodescope.app.theme.themed import Themed
from decodescope.app.widgets.accessibility import AccessiblePart, AccessibleWidget, Role
from decodescope.app.widgets.building import set_up
from decodescope.app.widgets.plain_text import show_tooltip
from decodescope.core import words
from decodescope.resources.language import tr

ROW_HEIGHT, MIN_ROW_HEIGHT, MAX_HEIGHT = 20, 4, 380
"""Pixels at 100 %: height of a token's row, its minimum, and the height up to which rows keep their height."""
_AXIS_HEIGHT, _STRIP_HEIGHT = 36, 6
"""Pixels at 100 %: height of the axis with ticks, title and the strip of probabilities above it."""
_TINT = 0.22
"""Opacity of a cell's colour: text on it keeps its contrast."""
_MIN_LABEL = 14
"""Pixels at 100 % below which a cell has no label."""
_TICKS = 6


def range_text(result: AtlasResult, number: int, name: str) -> str:
    """Return the range of a text: `0.41 < temperature ≤ 0.53`."""
    one = result.atlas[number]
    return f"{value_label(one.low)} < {name} ≤ {value_label(one.high)}"


class AtlasMap(Themed, QWidget, AccessibleWidget):
    """A row per token: neighbouring texts share a cell as long as they are equal. `picked(number)`: a text was
    clicked, or selected by an arrow key.
    """

    accessible_role = Role.List
    picked = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        set_up(
            self, name="atlasMap", accessible_name=tr("Map of texts"),
            description=tr("Arrow keys select the previous or next text."),
        )  # fmt: skip
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setMouseTracking(True)
        self._result: AtlasResult | None = None
        self._cells: list[list[tuple[int, int]]] = []
        self._name = ""
        self._has_equal_widths = self._is_logarithmic = False
        self.selected = 0

    def show_atlas(self, result: AtlasResult | None, name: str, is_whole: bool) -> None:
        """Draw an atlas of the setting called `name`; whole numbers get a logarithmic axis."""
        self._result, self._name, self._is_logarithmic = result, name, is_whole
        self._cells = band_cells([one.ids for one in result.atlas]) if result is not None else []
        self.selected = 0
        self._update_height()
        self.update()

    def set_equal_widths(self, on: bool) -> None:
        """Give every text the same width, or the width of its range."""
        self._has_equal_widths = on
        self.update()

    def select(self, number: int) -> None:
        """Mark a text."""
        self.selected = number
        self.update()

    def restyle(self, theme: Theme) -> None:
        self._update_height()
        self.update()

    def _update_height(self) -> None:
        rows = max(1, len(self._cells))
        self.setFixedHeight(round(rows * self._row_height()) + self._theme.px(_AXIS_HEIGHT + _STRIP_HEIGHT))

    def _row_height(self) -> float:
        px, rows = self._theme.px, max(1, len(self._cells))
        return max(px(MIN_ROW_HEIGHT), min(px(ROW_HEIGHT), px(MAX_HEIGHT) / rows))

    # Places

    @property
    def _count(self) -> int:
        return len(self._result.atlas) if self._result is not None else 0

    def _x(self, value: float) -> float:
        """Return the position of a value of the setting."""
        assert self._result is not None
        atlas = self._result.atlas
        if self._has_equal_widths:
            for number, one in enumerate(atlas):
                if value <= one.high:
                    return self.width() * (number + (value - one.low) / (one.high - one.low)) / self._count
            return float(self.width())
        if self._is_logarithmic:
            first, last = math.log1p(max(0.0, atlas.low)), math.log1p(atlas.high)
            return self.width() * (math.log1p(max(0.0, value)) - first) / (last - first)
        return self.width() * (value - atlas.low) / (atlas.high - atlas.low)

    def _rect(self, row: int, first: int, last: int) -> QRectF:
        assert self._result is not None
        left, right = self._x(self._result.atlas[first].low), self._x(self._result.atlas[last].high)
        height = self._row_height()
        return QRectF(left, row * height, right - left, height)

    def number_at(self, x: float) -> int | None:
        """Return the text at a horizontal position."""
        if self._result is None:
            return None
        found = (n for n, one in enumerate(self._result.atlas) if x <= self._x(one.high))
        return next(found, self._count - 1)

    def text_rect(self, number: int) -> QRect:
        """Return the column of a text."""
        return self._rect(0, number, number).toRect().adjusted(0, 0, 0, round(self._rows_height()))

    def _rows_height(self) -> float:
        return len(self._cells) * self._row_height()

    # Painting

    def sizeHint(self) -> QSize:
        return QSize(self._theme.px(480), self.minimumHeight())

    def minimumSizeHint(self) -> QSize:
        return QSize(self._theme.px(200), self.minimumHeight())

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint cells, the selected text, and the axis."""
        painter, theme = QPainter(self), self._theme
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        fill_rect(painter, QRectF(0, 0, self.width(), self._rows_height()), theme.color("field"))
        if self._result is None or not self._cells:
            return
        colors = [mean_probability(one.log_probability, len(one.ids)) for one in self._result.atlas]
        painter.setFont(theme.font(11))
        for row, cells in enumerate(self._cells):
            for first, last in cells:
                self._paint_cell(painter, row, first, last, colors)
        self._paint_strip(painter, colors)
        self._paint_selection(painter)
        self._paint_axis(painter)
        if self.hasFocus():
            painter.setPen(QPen(theme.color("accent"), 1))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRect(QRectF(0.5, 0.5, self.width() - 1, self._rows_height() - 1))

    def _paint_cell(self, painter: QPainter, row: int, first: int, last: int, colors: Sequence[float]) -> None:
        assert self._result is not None
        theme, rect = self._theme, self._rect(row, first, last)
        is_path = first <= self.selected <= last
        inside = colors[first : last + 1]
        tint = blend(theme.probability(sum(inside) / len(inside)), theme.color("panel"), _TINT)
        fill_rect(painter, rect, tint)
        painter.setPen(QPen(theme.color("line"), 1))
        painter.drawLine(rect.topLeft(), rect.topRight())
        if first:
            painter.setPen(QPen(theme.color("faint"), 1))
            painter.drawLine(rect.topLeft(), rect.bottomLeft())
        if rect.height() < theme.px(_MIN_LABEL) or rect.width() < theme.px(_MIN_LABEL):
            return
        label = self._result.pieces.get(self._result.atlas[first].ids[row], "").replace("\n", "↵").strip(" ")
        fm = QFontMetricsF(painter.font())
        shown = fm.elidedText(label, Qt.TextElideMode.ElideRight, rect.width() - theme.px(6))
        painter.setPen(theme.color("text" if is_path else "muted"))
        if shown and shown != "…":
            painter.drawText(rect, Qt.AlignmentFlag.AlignCenter, shown)

    def _paint_strip(self, painter: QPainter, colors: Sequence[float]) -> None:
        """Paint the probability of each text in full colour below its column."""
        top, height = self._rows_height(), self._theme.px(_STRIP_HEIGHT)
        for number, color in enumerate(colors):
            rect = self._rect(0, number, number)
            fill_rect(painter, QRectF(rect.left(), top, rect.width(), height), self._theme.probability(color))

    def _paint_selection(self, painter: QPainter) -> None:
        rect = self._rect(0, self.selected, self.selected)
        bottom = self._rows_height() + self._theme.px(_STRIP_HEIGHT)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(self._theme.color("accent"), 2))
        painter.drawRect(QRectF(rect.left() + 1, 1, max(2.0, rect.width() - 2), bottom - 2))

    def _paint_axis(self, painter: QPainter) -> None:
        assert self._result is not None
        theme, fm = self._theme, QFontMetricsF(self._theme.font(11))
        top = self._rows_height() + theme.px(_STRIP_HEIGHT)
        painter.setFont(theme.font(11))
        painter.setPen(theme.color("muted"))
        end = -math.inf
        for value in self._tick_values():
            x, text = self._x(value), value_label(value)
            width = fm.horizontalAdvance(text)
            left = min(max(0.0, x - width / 2), self.width() - width)
            if left < end + theme.px(10):
                continue
            painter.drawLine(QPointF(min(x, self.width() - 0.5), top), QPointF(min(x, self.width() - 0.5), top + 3))
            place = QRectF(left, top + theme.px(4), width + 1, fm.height())
            painter.drawText(place, Qt.AlignmentFlag.AlignLeft, text)
            end = left + width
        title = QRectF(0, self.height() - fm.height(), self.width(), fm.height())
        painter.drawText(title, Qt.AlignmentFlag.AlignHCenter, self._name)

    def _tick_values(self) -> list[float]:
        assert self._result is not None
        atlas = self._result.atlas
        if self._has_equal_widths:
            return [atlas.low, *(one.high for one in atlas)]
        if self._is_logarithmic:
            steps = [factor * 10.0**power for power in range(7) for factor in (1, 2, 5)]
            powers = [atlas.low, *(step for step in steps if step < 1000 or step in (1e3, 1e4, 1e5, 1e6)), atlas.high]
            return [value for value in dict.fromkeys(powers) if atlas.low <= value <= atlas.high]
        span = atlas.high - atlas.low
        step = 10.0 ** math.floor(math.log10(span / _TICKS))
        step *= next(factor for factor in (1, 2, 5, 10) if span / (step * factor) <= _TICKS)
        first = math.ceil(atlas.low / step)
        return [n * step for n in range(first, math.floor(atlas.high / step + 1e-9) + 1)]

    # Input

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Select texts with the arrow keys, Home and End."""
        keys = {
            Qt.Key.Key_Left: self.selected - 1, Qt.Key.Key_Right: self.selected + 1, Qt.Key.Key_Home: 0,
            Qt.Key.Key_End: self._count - 1,
        }  # fmt: skip
        target = keys.get(Qt.Key(event.key()))
        if target is None or not self._count:
            super().keyPressEvent(event)
        else:
            self.picked.emit(min(max(0, target), self._count - 1))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Select the text at the pointer."""
        number = self.number_at(event.position().x())
        if number is not None and event.button() == Qt.MouseButton.LeftButton:
            self.picked.emit(number)

    def event(self, event: QEvent) -> bool:
        """Show range and text at the pointer as a tooltip."""
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            number = self.number_at(event.pos().x())
            if number is not None and self._result is not None:
                show_tooltip(event.globalPos(), self._part_name(number), self)
            return True
        return super().event(event)

    def _part_name(self, number: int) -> str:
        assert self._result is not None
        one, atlas = self._result.atlas[number], self._result.atlas
        share = words.percent((one.high - one.low) / (atlas.high - atlas.low), is_exact=True)
        return f"{range_text(self._result, number, self._name)} · {share}\n{self._result.text_of(number)}"

    def accessible_parts(self) -> Sequence[AccessiblePart]:
        """Return the texts with their ranges."""
        return [
            AccessiblePart(
                self._part_name(number), partial(self.text_rect, number), selected=number == self.selected,
                press=partial(self.picked.emit, number),
            )
            for number in range(self._count)
        ]  # fmt: skip
