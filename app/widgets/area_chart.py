"""A stacked area over a run, with lines across it, a cursor, and what is under the mouse."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QBrush,
    QFocusEvent,
    QFontMetricsF,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPainterPath,
    QPaintEvent,
    QPen,
    QPolygonF,
)
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from app.theme.theme import Theme, theme_for

_UNITS = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "bytes"))
_HEADROOM = 1.04


@dataclass(frozen=True, slots=True)
class Layer:
    """One of the areas that lie on each other, a value for every x of the chart."""

    name: str
    colour: str
    """A colour of the theme."""
    values: tuple[float, ...]
    hatched: bool = False


@dataclass(frozen=True, slots=True)
class Line:
    """A line across the areas, named at its right end."""

    name: str
    colour: str
    points: tuple[tuple[float, float], ...]
    dashes: tuple[float, ...] = ()
    """Lengths of dash and gap in pen widths; () for a solid line."""


class AreaChart(QWidget):
    """`hovered(x)`: the place under the mouse, -1 for none; `picked(x)`: the place that was pressed or dragged to."""

    hovered = Signal(int)
    picked = Signal(int)

    def __init__(self, label: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme_for("light")
        self._xs: tuple[float, ...] = ()
        self._layers: tuple[Layer, ...] = ()
        self._lines: tuple[Line, ...] = ()
        self._right, self._top, self._cursor, self._hover = 1.0, 1.0, 0, -1
        self._is_tabbed = False
        self.describe: Callable[[int], str] | None = None
        """What the tip says of a place."""
        self.setAccessibleName(label)
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)

    def set_theme(self, theme: Theme) -> None:
        """Take other colours and sizes."""
        self._theme = theme
        self.updateGeometry()
        self.update()

    def set_data(self, xs: Sequence[float], layers: Sequence[Layer], lines: Sequence[Line], right: float) -> None:
        """Draw these; `right` is where the axis ends."""
        self._xs, self._layers, self._lines = tuple(xs), tuple(layers), tuple(lines)
        self._right = max(1.0, right)
        whole = [sum(layer.values[n] for layer in layers) for n in range(len(xs))]
        self._top = max(1.0, *whole, *(y for line in lines for _, y in line.points)) * _HEADROOM
        self.update()

    def set_cursor(self, x: int, words: str = "") -> None:
        """Mark a place; `words` tell of it to a screen reader."""
        self._cursor = x
        self.setAccessibleDescription(words)
        self.update()

    def unit(self) -> tuple[int, str]:
        """What the axis counts in: (bytes, name)."""
        return next((size, name) for size, name in _UNITS if self._top >= size)

    def sizeHint(self) -> QSize:
        """Room for a curve."""
        return QSize(self._theme.px(520), self._theme.px(260))

    def minimumSizeHint(self) -> QSize:
        """As small as it still says something."""
        return QSize(self._theme.px(120), self._theme.px(150))

    # Places

    def area(self) -> QRectF:
        """Where the curves are."""
        theme, fm = self._theme, QFontMetricsF(self._theme.font(11, tabular=True))
        left = max((fm.horizontalAdvance(text) for _, text in self._ticks()), default=0.0) + theme.px(10)
        return QRectF(self.rect()).adjusted(left, theme.px(16), -theme.px(2), -fm.height() - theme.px(6))

    def place(self, x: float, y: float) -> QPointF:
        """Pixel of a value."""
        area = self.area()
        return QPointF(area.left() + area.width() * x / self._right, area.bottom() - area.height() * y / self._top)

    def _x_at(self, pixel: float) -> int:
        area = self.area()
        return round(min(max((pixel - area.left()) / max(area.width(), 1.0), 0.0), 1.0) * self._right)

    def _ticks(self) -> list[tuple[float, str]]:
        size, _ = self.unit()
        step = nice_step(self._top / size, 6)
        count = int(self._top / size / step + 1e-9)
        return [(n * step * size, f"{n * step:g}") for n in range(count + 1)]

    # Painting

    def paintEvent(self, event: QPaintEvent) -> None:
        """Grid, areas, lines, cursor."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        self._paint_grid(painter)
        if self._xs:
            self._paint_layers(painter)
        for line in self._lines:
            self._paint_line(painter, line)
        self._paint_names(painter)
        self._paint_marks(painter)
        painter.end()

    def _paint_grid(self, painter: QPainter) -> None:
        theme, area = self._theme, self.area()
        painter.setFont(theme.font(11, tabular=True))
        fm = QFontMetricsF(painter.font())
        for value, text in self._ticks():
            y = self.place(0, value).y()
            painter.setPen(QPen(theme.color("line"), 1))
            painter.drawLine(QPointF(area.left(), y), QPointF(area.right(), y))
            painter.setPen(theme.color("muted"))
            box = QRectF(0, y - fm.height() / 2, area.left() - theme.px(8), fm.height())
            painter.drawText(box, int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter), text)
        step = nice_step(self._right, 8, whole=True)
        for n in range(int(self._right / step + 1e-9) + 1):
            text = f"{n * step:,.0f}"
            x = self.place(n * step, 0).x()
            half = fm.horizontalAdvance(text) / 2
            x = min(max(x, area.left() + half), area.right() - half)
            painter.drawText(QPointF(x - half, area.bottom() + theme.px(4) + fm.ascent()), text)

    def _paint_layers(self, painter: QPainter) -> None:
        theme, below = self._theme, [0.0] * len(self._xs)
        for layer in self._layers:
            above = [low + value for low, value in zip(below, layer.values, strict=True)]
            top = [self.place(x, y) for x, y in zip(self._xs, above, strict=True)]
            bottom = [self.place(x, y) for x, y in zip(self._xs, below, strict=True)]
            path = QPainterPath()
            path.addPolygon(QPolygonF([*top, *reversed(bottom)]))
            path.closeSubpath()
            painter.fillPath(path, theme.color(layer.colour, 0.22 if layer.hatched else 0.38))
            if layer.hatched:
                painter.fillPath(path, QBrush(theme.color(layer.colour, 0.7), Qt.BrushStyle.BDiagPattern))
            if any(layer.values):
                painter.strokePath(_through(top), QPen(theme.color(layer.colour), 1.6 * theme.scale))
            below = above

    def _paint_line(self, painter: QPainter, line: Line) -> None:
        pen = QPen(self._theme.color(line.colour), 1.4 * self._theme.scale)
        if line.dashes:
            pen.setDashPattern(list(line.dashes))
            pen.setCapStyle(Qt.PenCapStyle.FlatCap)
        painter.save()
        painter.setClipRect(self.area().adjusted(-1, -2, 1, 2))
        painter.strokePath(_through([self.place(x, y) for x, y in line.points]), pen)
        painter.restore()

    def _paint_names(self, painter: QPainter) -> None:
        """The names of the lines above their right ends, one never over another."""
        theme, taken = self._theme, []
        painter.setFont(theme.font(11))
        fm, area = QFontMetricsF(painter.font()), self.area()
        named = [line for line in self._lines if line.points and line.name]
        for line in sorted(named, key=lambda line: -line.points[-1][1]):
            width = fm.horizontalAdvance(line.name)
            right = self.place(line.points[-1][0], 0).x() - theme.px(6)
            # Above the line over the whole width of the word, whatever its slope.
            y = min(
                self.place(x, y).y() for x, y in line.points if self.place(x, 0).x() >= right - width - theme.px(30)
            )
            box = QRectF(right - width, y - fm.height() - theme.px(1), width, fm.height())
            box.moveTop(max(box.top(), 0.0))
            while any(box.intersects(other) for other in taken):
                box.moveTop(box.top() + fm.height())
            taken.append(box)
            if box.bottom() <= area.bottom():
                painter.fillRect(box.adjusted(-3, 0, 3, 0), theme.color("window", 0.75))
                painter.setPen(theme.color("muted" if line.colour == "faint" else line.colour))
                painter.drawText(box, int(Qt.AlignmentFlag.AlignRight), line.name)

    def _paint_marks(self, painter: QPainter) -> None:
        theme, area = self._theme, self.area()
        for x, colour, width in ((self._hover, "faint", 1.0), (self._cursor, "text", 1.6 * theme.scale)):
            if 0 <= x <= self._right and self._xs:
                pixel = self.place(x, 0).x()
                painter.setPen(QPen(theme.color(colour), width))
                painter.drawLine(QPointF(pixel, area.top()), QPointF(pixel, area.bottom()))
        if self._is_tabbed:
            painter.setPen(QPen(theme.color("accent"), 1))
            painter.drawRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5))

    # The mouse and the keys

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Tell of the place under the mouse; drag the cursor."""
        self._hover = self._x_at(event.position().x())
        self.update()
        self.hovered.emit(self._hover)
        if event.buttons() & Qt.MouseButton.LeftButton:
            self.picked.emit(self._hover)
        if self.describe is not None and (tip := self.describe(self._hover)):
            QToolTip.showText(event.globalPosition().toPoint(), tip, self)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Go to that place."""
        if event.button() == Qt.MouseButton.LeftButton:
            self.picked.emit(self._x_at(event.position().x()))

    def focusInEvent(self, event: QFocusEvent) -> None:
        """A frame for those who come by keyboard."""
        self._is_tabbed = event.reason() in (Qt.FocusReason.TabFocusReason, Qt.FocusReason.BacktabFocusReason)
        super().focusInEvent(event)
        self.update()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        """The frame goes."""
        self._is_tabbed = False
        super().focusOutEvent(event)
        self.update()

    def leaveEvent(self, event: QEvent) -> None:
        """Nothing is under the mouse any more."""
        self._hover = -1
        self.hovered.emit(-1)
        self.update()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Arrows walk, with Shift ten tokens at a time; Home and End go to the ends."""
        step = 10 if event.modifiers() & Qt.KeyboardModifier.ShiftModifier else 1
        moves = {Qt.Key.Key_Left: self._cursor - step, Qt.Key.Key_Right: self._cursor + step, Qt.Key.Key_Home: 0,
                 Qt.Key.Key_End: int(self._right)}  # fmt: skip
        if event.key() in moves:
            self.picked.emit(max(0, min(int(self._right), moves[Qt.Key(event.key())])))
        else:
            super().keyPressEvent(event)


def nice_step(span: float, most: int, whole: bool = False) -> float:
    """The smallest of 1, 2, 4, 5 times a power of ten that cuts `span` into at most `most` pieces."""
    least = span / most
    power = 10 ** math.floor(math.log10(least)) if least > 0 else 1
    step = next(factor * power for factor in (1, 2, 4, 5, 10) if factor * power >= least * (1 - 1e-9))
    return max(1.0, step) if whole else step


def _through(points: Sequence[QPointF]) -> QPainterPath:
    path = QPainterPath()
    if points:
        path.moveTo(points[0])
        for point in points[1:]:
            path.lineTo(point)
    return path
