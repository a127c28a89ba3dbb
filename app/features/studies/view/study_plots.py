"""Painted plots of a study: curves with intervals, and a heat map. Points and cells can be chosen."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFontMetricsF, QHelpEvent, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from decodescope.app.features.studies.state import HeatMapData, PlotCurve, PlotData, PlotPoint
from decodescope.app.theme.theme import Theme, blend, contrast
from decodescope.app.theme.themed import Themed
from decodescope.app.widgets.accessibility.accessible_widget import AccessiblePart, AccessibleWidget, Role
from decodescope.app.widgets.legend import LegendKey
from decodescope.app.widgets.plain_text import show_tooltip
from decodescope.core import studies
from decodescope.resources.language import tr

COLOURS = ("kept", "refused", "finished", "thinking", "best", "pruned")
"""Theme colours of curves."""
_REACH = 14.0
"""Pixels around a point in which a click chooses it."""
_SHIFT = 8.0
"""Pixels between curves at one place, so that their intervals are distinguishable."""


def ticks(low: float, high: float, count: int) -> list[float]:
    """Return at most `count` + 1 round numbers between two values."""
    if not high > low or not math.isfinite(high - low):
        return [low]
    step = 10 ** math.floor(math.log10((high - low) / count))
    step = next((step * factor for factor in (1, 2, 5) if (high - low) / (step * factor) <= count), step * 10)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [number * step for number in range(first, last + 1)]


def axis_value_text(value: float) -> str:
    """Return a value of an axis."""
    return (f"{value:.3g}" if abs(value) < 1e5 else f"{value:.1e}").replace("-", "−")


def legend_keys(data: PlotData) -> list[LegendKey]:
    """Return the legend of curves; none for a single one."""
    if len(data.curves) < 2:
        return []
    return [LegendKey(curve.name, COLOURS[number], "cell") for number, curve in enumerate(data.curves)]


class _ChosenPart(Themed, QWidget, AccessibleWidget):
    """Base of plots with parts that can be chosen by mouse and keyboard. `chosen(label)`: a cell of the study."""

    chosen = Signal(str)
    accessible_role = Role.Chart

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setMouseTracking(True)
        self.current: int | None = None
        """The marked part."""

    def parts(self) -> Sequence[tuple[QRectF, str, str]]:
        """Return rectangle, text and cell of each part."""
        raise NotImplementedError

    def part_at(self, position: QPointF) -> int | None:
        """Return the part at a position."""
        raise NotImplementedError

    def sizeHint(self) -> QSize:
        return QSize(self._theme.px(520), self._theme.px(320))

    def minimumSizeHint(self) -> QSize:
        return QSize(self._theme.px(240), self._theme.px(160))

    def accessible_parts(self) -> list[AccessiblePart]:
        return [
            AccessiblePart(
                text, partial(QRectF.toAlignedRect, box), selected=number == self.current,
                press=partial(self.chosen.emit, cell),
            )
            for number, (box, text, cell) in enumerate(self.parts())
        ]  # fmt: skip

    def _mark(self, number: int | None) -> None:
        if number != self.current:
            self.current = number
            self.update()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        number = self.part_at(event.position())
        self._mark(number)
        self.setCursor(Qt.CursorShape.ArrowCursor if number is None else Qt.CursorShape.PointingHandCursor)

    def leaveEvent(self, event: QEvent) -> None:
        if not self.hasFocus():
            self._mark(None)
        super().leaveEvent(event)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        number = self.part_at(event.position())
        if number is not None and event.button() == Qt.MouseButton.LeftButton:
            self._mark(number)
            self.chosen.emit(self.parts()[number][2])

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            number = self.part_at(QPointF(event.pos()))
            show_tooltip(event.globalPos(), "" if number is None else self.parts()[number][1], self)
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        count = len(self.parts())
        key = event.key()
        if not count or key not in (*_MOVES, Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space):
            super().keyPressEvent(event)
        elif key in _MOVES:
            self._mark(self.neighbour(*_MOVES[Qt.Key(key)]) if self.current is not None else 0)
        elif self.current is not None and self.current < count:
            self.chosen.emit(self.parts()[self.current][2])

    def neighbour(self, right: int, down: int) -> int:
        """Return the part next to the marked one."""
        count = len(self.parts())
        return max(0, min(count - 1, (self.current or 0) + right + down))


_MOVES = {
    Qt.Key.Key_Left: (-1, 0), Qt.Key.Key_Right: (1, 0), Qt.Key.Key_Up: (0, -1), Qt.Key.Key_Down: (0, 1),
}  # fmt: skip


class IntervalPlot(_ChosenPart):
    """Curves of means with their intervals."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.data = PlotData()
        self._limits = (0.0, 1.0)

    def show_data(self, data: PlotData) -> None:
        """Show other curves."""
        self.data, self.current = data, None
        values = [
            value
            for _number, _curve, point in self._points()
            for value in (point.estimate.mean, point.estimate.low, point.estimate.high)
            if value is not None
        ]
        low, high = (min(values), max(values)) if values else (0.0, 1.0)
        room = (high - low) * 0.07 or abs(high) * 0.1 or 1.0
        self._limits = low - room, high + room
        self.setAccessibleName(data.title or tr("Plot"))
        self.update()

    def _points(self) -> Iterator[tuple[int, PlotCurve, PlotPoint]]:
        for number, curve in enumerate(self.data.curves):
            for point in curve.points:
                yield number, curve, point

    def _area(self) -> QRectF:
        theme = self._theme
        fm = QFontMetricsF(theme.font(12))
        left = max((fm.horizontalAdvance(axis_value_text(y)) for y in ticks(*self._limits, 5)), default=0) + theme.px(
            12
        )
        bottom = 2 * fm.lineSpacing() + theme.px(10)
        return QRectF(self.rect()).adjusted(left, theme.px(10), -theme.px(14), -bottom)

    def _labels(self) -> dict[float, str]:
        return {point.x: point.label for _number, _curve, point in self._points()}

    def _place(self, number: int, x: float, y: float) -> QPointF:
        """Return the place of a value; curves are shifted a little against each other."""
        area, (low, high) = self._area(), self._limits
        xs = self._labels()
        first, last = (min(xs), max(xs)) if xs else (0.0, 1.0)
        inset = min(area.width() * 0.08, 40 * self._theme.scale)
        share = (x - first) / (last - first) if last > first else 0.5
        shift = (number - (len(self.data.curves) - 1) / 2) * _SHIFT * self._theme.scale
        return QPointF(
            area.left() + inset + share * (area.width() - 2 * inset) + shift,
            area.bottom() - (y - low) / (high - low) * area.height(),
        )

    def parts(self) -> Sequence[tuple[QRectF, str, str]]:
        found = []
        for number, curve, point in self._points():
            at = self._place(number, point.x, point.estimate.mean)
            reach = self._theme.px(7)
            box = QRectF(at.x() - reach, at.y() - reach, 2 * reach, 2 * reach)
            name = "" if len(self.data.curves) < 2 else f"{curve.name}: "
            x = f"{self.data.x_title} {point.label}".strip()
            text = f"{name}{x}: {studies.estimate_text(point.estimate, self.data.digits)}"
            found.append((box, text, point.cell))
        return found

    def part_at(self, position: QPointF) -> int | None:
        distances = [
            (math.hypot(*(box.center() - position).toTuple()), number)
            for number, (box, _text, _cell) in enumerate(self.parts())
        ]
        near = min(distances, default=(math.inf, 0))
        return near[1] if near[0] <= _REACH * self._theme.scale else None

    def paintEvent(self, event: QPaintEvent) -> None:
        theme, painter = self._theme, QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setFont(theme.font(12, tabular=True))
        if self.data.curves:
            self._paint_axes(painter, theme)
            for number, curve in enumerate(self.data.curves):
                self._paint_curve(painter, theme, number, curve)
        if self.current is not None and self.current < len(self.parts()):
            painter.setPen(QPen(theme.color("accent"), 2))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawEllipse(self.parts()[self.current][0].adjusted(-2, -2, 2, 2))
        elif self.hasFocus():
            painter.setPen(QPen(theme.color("accent"), 1))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), 6, 6)
        painter.end()

    def _paint_axes(self, painter: QPainter, theme: Theme) -> None:
        area, fm = self._area(), QFontMetricsF(painter.font())
        for y in ticks(*self._limits, 5):
            at = self._place(0, 0, y).y()
            painter.setPen(QPen(theme.color("line"), 1))
            painter.drawLine(QPointF(area.left(), at), QPointF(area.right(), at))
            painter.setPen(theme.color("muted"))
            box = QRectF(0, at - fm.height() / 2, area.left() - theme.px(8), fm.height())
            painter.drawText(box, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, axis_value_text(y))
        middle = (len(self.data.curves) - 1) / 2
        end, room = -math.inf, theme.px(8)
        for x, label in sorted(self._labels().items()):
            at = self._place(0, x, 0).x() + middle * _SHIFT * theme.scale
            shown = fm.elidedText(label, Qt.TextElideMode.ElideRight, self._label_width(area))
            width = fm.horizontalAdvance(shown)
            if at - width / 2 < end + room:
                continue
            end = at + width / 2
            painter.drawText(QPointF(at - width / 2, area.bottom() + theme.px(6) + fm.ascent()), shown)
        title = fm.elidedText(self.data.x_title, Qt.TextElideMode.ElideRight, area.width())
        box = QRectF(area.left(), area.bottom() + theme.px(8) + fm.lineSpacing(), area.width(), fm.height())
        painter.drawText(box, Qt.AlignmentFlag.AlignHCenter, title)

    def _label_width(self, area: QRectF) -> float:
        return max(40.0, area.width() / max(1, len(self._labels())) - 4)

    def _paint_curve(self, painter: QPainter, theme: Theme, number: int, curve: PlotCurve) -> None:
        colour = theme.color(COLOURS[number])
        places = [self._place(number, point.x, point.estimate.mean) for point in curve.points]
        painter.setPen(QPen(colour, 1.6 * theme.scale))
        if self.data.is_numeric and len(places) > 1:
            painter.drawPolyline(places)
        for point, at in zip(curve.points, places, strict=True):
            found = point.estimate
            painter.setPen(QPen(colour, 1.6 * theme.scale))
            if found.low is not None and found.high is not None:
                low, high = (self._place(number, point.x, y).y() for y in (found.low, found.high))
                cap = 4 * theme.scale
                painter.drawLine(QPointF(at.x(), low), QPointF(at.x(), high))
                for y in (low, high):
                    painter.drawLine(QPointF(at.x() - cap, y), QPointF(at.x() + cap, y))
            painter.setPen(QPen(theme.color("panel"), 1.2))
            painter.setBrush(colour)
            painter.drawEllipse(at, 4.2 * theme.scale, 4.2 * theme.scale)
            painter.setBrush(Qt.BrushStyle.NoBrush)


class HeatMap(_ChosenPart):
    """A measure over two settings, coloured by its mean."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.data = HeatMapData()

    def show_data(self, data: HeatMapData) -> None:
        """Show another map."""
        self.data, self.current = data, None
        self.setAccessibleName(data.title or tr("Heat map"))
        self.updateGeometry()
        self.update()

    def _heads(self) -> tuple[float, float]:
        """Return the width of the rows' names and the height of the columns' names."""
        theme = self._theme
        fm = QFontMetricsF(theme.font(12))
        names = max((fm.horizontalAdvance(name) for name in self.data.rows), default=0)
        title = fm.horizontalAdvance(self.data.row_title)
        widest = min(max(names, title), self.width() * 0.3)
        return widest + theme.px(14), 2 * fm.lineSpacing() + theme.px(10)

    def _grid(self) -> tuple[QRectF, float, float]:
        """Return the area of the cells, and the width and height of a cell."""
        theme, (left, top) = self._theme, self._heads()
        columns, rows = max(1, len(self.data.columns)), max(1, len(self.data.rows))
        width = min((self.width() - left) / columns, theme.px(230))
        height = min((self.height() - top) / rows, theme.px(84))
        return QRectF(left, top, width * columns, height * rows), width, height

    def _order(self) -> list[tuple[int, int]]:
        return sorted(self.data.cells)

    def _box(self, place: tuple[int, int]) -> QRectF:
        area, width, height = self._grid()
        return QRectF(area.left() + place[1] * width, area.top() + place[0] * height, width, height).adjusted(
            1, 1, -1, -1
        )

    def parts(self) -> Sequence[tuple[QRectF, str, str]]:
        data = self.data
        return [
            (
                self._box(place),
                f"{data.row_title} {data.rows[place[0]]}, {data.column_title} {data.columns[place[1]]}: "
                f"{studies.estimate_text(data.cells[place].estimate, data.digits)}",
                data.cells[place].cell,
            )
            for place in self._order()
        ]

    def part_at(self, position: QPointF) -> int | None:
        return next((number for number, (box, _text, _cell) in enumerate(self.parts()) if box.contains(position)), None)

    def neighbour(self, right: int, down: int) -> int:
        order = self._order()
        row, column = order[self.current or 0]
        wanted = row + down, column + right
        return order.index(wanted) if wanted in order else (self.current or 0)

    def paintEvent(self, event: QPaintEvent) -> None:
        theme, painter = self._theme, QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        self._paint_heads(painter, theme)
        means = [cell.estimate.mean for cell in self.data.cells.values() if cell.estimate is not None]
        low, high = (min(means), max(means)) if means else (0.0, 1.0)
        for number, place in enumerate(self._order()):
            self._paint_cell(painter, theme, place, low, high, number == self.current)
        if self.hasFocus() and self.current is None:
            painter.setPen(QPen(theme.color("accent"), 1))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), 6, 6)
        painter.end()

    def _paint_heads(self, painter: QPainter, theme: Theme) -> None:
        area, width, height = self._grid()
        font = theme.font(12, tabular=True)
        painter.setFont(font)
        painter.setPen(theme.color("muted"))
        fm = QFontMetricsF(font)
        right = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        gap = theme.px(8)
        title = fm.elidedText(self.data.column_title, Qt.TextElideMode.ElideRight, area.width())
        painter.drawText(QRectF(area.left(), 0, area.width(), fm.lineSpacing()), Qt.AlignmentFlag.AlignHCenter, title)
        own = fm.elidedText(self.data.row_title, Qt.TextElideMode.ElideRight, area.left() - gap)
        painter.drawText(QRectF(0, fm.lineSpacing(), area.left() - gap, fm.lineSpacing()), right, own)
        painter.setPen(theme.color("text"))
        for number, name in enumerate(self.data.columns):
            box = QRectF(area.left() + number * width, fm.lineSpacing() + theme.px(2), width, fm.lineSpacing())
            shown = fm.elidedText(name, Qt.TextElideMode.ElideRight, width - 4)
            painter.drawText(box, Qt.AlignmentFlag.AlignHCenter, shown)
        for number, name in enumerate(self.data.rows):
            box = QRectF(0, area.top() + number * height, area.left() - gap, height)
            painter.drawText(box, right, fm.elidedText(name, Qt.TextElideMode.ElideRight, box.width()))

    def _paint_cell(
        self, painter: QPainter, theme: Theme, place: tuple[int, int], low: float, high: float, is_marked: bool
    ) -> None:
        box, found = self._box(place), self.data.cells[place].estimate
        share = 0.5 if found is None or high <= low else (found.mean - low) / (high - low)
        colour = heat_colour(theme, share) if found is not None else theme.color("window")
        painter.setPen(QPen(theme.color("accent"), 2) if is_marked else Qt.PenStyle.NoPen)
        painter.setBrush(colour)
        painter.drawRoundedRect(box, 5, 5)
        painter.setPen(ink_on(theme, colour))
        if found is None:
            painter.setFont(theme.font(13))
            painter.drawText(box, Qt.AlignmentFlag.AlignCenter, "–")
            return
        mean = studies.number_text(found.mean, self.data.digits)
        interval = studies.interval_text(found, self.data.digits)
        large, small = theme.font(13, 600, tabular=True), theme.font(11, tabular=True)
        large_fm, small_fm = QFontMetricsF(large), QFontMetricsF(small)
        fits = (
            interval
            and small_fm.horizontalAdvance(interval) <= box.width() - 6
            and large_fm.height() + small_fm.height() <= box.height() - 4
        )
        painter.setFont(large)
        centre = Qt.AlignmentFlag.AlignHCenter
        top = box.center().y() - (large_fm.height() + (small_fm.height() if fits else 0)) / 2
        painter.drawText(QRectF(box.left(), top, box.width(), large_fm.height()), centre, mean)
        if fits:
            painter.setFont(small)
            below = QRectF(box.left(), top + large_fm.height(), box.width(), small_fm.height())
            painter.drawText(below, centre, interval)


def heat_colour(theme: Theme, share: float) -> QColor:
    """Return the colour of a heat map for 0 (lowest) to 1 (highest)."""
    return blend(theme.color("kept"), theme.color("panel"), 0.10 + 0.80 * min(max(share, 0.0), 1.0))


def ink_on(theme: Theme, background: QColor) -> QColor:
    """Return black or white text, whichever is easier to read on a colour."""
    return max((QColor("#000000"), QColor("#ffffff")), key=lambda ink: contrast(ink, background))
