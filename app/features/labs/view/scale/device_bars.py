"""Legend of the memory parts; wraps in a narrow view."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from PySide6.QtCore import QEvent, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QFontMetricsF, QHelpEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from decodescope.app.theme.theme import Theme, theme_for
from decodescope.app.theme.themed import Themed
from decodescope.app.widgets.accessibility import AccessiblePart, AccessibleWidget, Role
from decodescope.app.widgets.building import set_up
from decodescope.app.widgets.flow_layout import FlowRow
from decodescope.app.widgets.plain_text import show_tooltip
from decodescope.core.labs import scale
from decodescope.resources.language import join_names, join_sentences, tr

PART_COLORS = {
    "parameters": "kept",
    "gradients": "best",
    "optimizer": "accent",
    "activations": "finished",
    "buffers": "refused",
    "cache": "pruned",
}
CAPACITY, EXPECTED = "room", "expected"
"""Strokes across the bars: the device's capacity, and the predicted total."""


class _LegendEntry(QWidget):
    """A colour swatch with its label."""

    def __init__(self, part: str, parent: QWidget) -> None:
        super().__init__(parent)
        self.part, self.theme = part, theme_for("light")

    def sizeHint(self) -> QSize:
        width = QFontMetricsF(self.theme.font(12)).horizontalAdvance(self._text)
        return QSize(round(width) + self.theme.px(19), self.theme.px(20))

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter, px = QPainter(self), self.theme.px
        if self.part in PART_COLORS:
            painter.fillRect(QRectF(0, px(5), px(10), px(10)), self.theme.color(PART_COLORS[self.part]))
        else:
            style = Qt.PenStyle.SolidLine if self.part == CAPACITY else Qt.PenStyle.DashLine
            painter.setPen(QPen(self.theme.color("text"), px(2), style))
            painter.drawLine(px(5), px(2), px(5), px(18))
        painter.setFont(self.theme.font(12))
        painter.setPen(self.theme.color("muted"))
        painter.drawText(self.rect().adjusted(px(15), 0, 0, 0), Qt.AlignmentFlag.AlignVCenter, self._text)

    @property
    def _text(self) -> str:
        strokes = {CAPACITY: tr("memory per device"), EXPECTED: tr("predicted")}
        return strokes.get(self.part) or tr(scale.words.PART_TITLES[self.part])


class PartLegend(Themed, FlowRow):
    """The present parts in their colours, and the strokes."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent, 14)
        self._names = {part: _LegendEntry(part, self) for part in (*PART_COLORS, CAPACITY, EXPECTED)}
        for name in self._names.values():
            self.flow.addWidget(name)

    def restyle(self, theme: Theme) -> None:
        for name in self._names.values():
            name.theme = theme
            name.updateGeometry()
            name.update()

    def show_parts(self, parts: Sequence[str]) -> None:
        """Show only these parts."""
        for part, name in self._names.items():
            name.setVisible(part in parts)
        self.setVisible(bool(parts))


ROW_HEIGHT, LABEL_WIDTH, FIGURE_WIDTH = 34, 104, 78
"""Pixels at 100 %: height of a row, widths to the left and right of its bar."""
_ALIGN_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter


class DeviceBar(NamedTuple):
    """One row: label, memory by part, and the expected total."""

    label: str
    parts: scale.Parts
    expected: int = 0
    """Predicted bytes, marked by a dashed stroke; 0 for none."""


class DeviceBars(Themed, QWidget, AccessibleWidget):
    """Memory bars of the devices; the longest bar or the capacity fills the width."""

    accessible_role = Role.List

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        set_up(self, name="scaleBars", accessible_name=tr("Memory of each device, by part"))
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._rows: Sequence[DeviceBar] = ()
        self._capacity = 0.0

    @property
    def rows(self) -> Sequence[DeviceBar]:
        """The drawn rows."""
        return self._rows

    def show_rows(self, rows: Sequence[DeviceBar], capacity: float = 0.0) -> None:
        """Show these rows; `capacity` is each device's capacity, 0 for none."""
        self._rows, self._capacity = rows, capacity
        self.setAccessibleDescription(join_sentences(*map(_row_sentence, rows)))
        self.updateGeometry()
        self.update()

    def accessible_parts(self) -> list[AccessiblePart]:
        """Return one part per device."""
        return [
            AccessiblePart(_row_sentence(row), partial(self._row_rect, number)) for number, row in enumerate(self._rows)
        ]

    def sizeHint(self) -> QSize:
        """Return a height of one line per row."""
        return QSize(self._theme.px(420), self._theme.px(ROW_HEIGHT * len(self._rows)))

    def minimumSizeHint(self) -> QSize:
        """Return the minimum size."""
        return QSize(self._theme.px(200), self.sizeHint().height())

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the visible bars."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        for number, row in enumerate(self._rows):
            if event.rect().intersects(self._row_rect(number)):
                self._paint_row(painter, row, QRectF(self._row_rect(number)))

    def event(self, event: QEvent) -> bool:
        """Show a tooltip with a device's memory."""
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            found = (row for number, row in enumerate(self._rows) if self._row_rect(number).contains(event.pos()))
            show_tooltip(event.globalPos(), next(map(_row_sentence, found), ""), self)
            return True
        return super().event(event)

    def _row_rect(self, number: int) -> QRect:
        px = self._theme.px
        return QRect(0, number * px(ROW_HEIGHT), self.width(), px(ROW_HEIGHT))

    @property
    def parts(self) -> list[str]:
        """Names of the parts present in any row."""
        return [name for name in PART_COLORS if any(row.parts[name] for row in self._rows)]

    def _paint_row(self, painter: QPainter, row: DeviceBar, cell: QRectF) -> None:
        theme = self._theme
        painter.setFont(theme.font(13, tabular=True))
        painter.setPen(theme.color("text"))
        left, right = theme.px(LABEL_WIDTH), theme.px(FIGURE_WIDTH)
        label = QFontMetricsF(painter.font()).elidedText(row.label, Qt.TextElideMode.ElideRight, left - theme.px(8))
        painter.drawText(QRectF(0, cell.top(), left, cell.height()), Qt.AlignmentFlag.AlignVCenter, label)
        is_over = bool(self._capacity) and row.parts.total > self._capacity
        painter.setPen(theme.ink("danger" if is_over else "text"))
        figure = scale.decimal_bytes(row.parts.total)
        painter.drawText(QRectF(cell.right() - right, cell.top(), right, cell.height()), _ALIGN_RIGHT, figure)
        track = QRectF(
            left, cell.top() + theme.px(7), cell.width() - left - right - theme.px(10), theme.px(ROW_HEIGHT - 14)
        )
        self._paint_parts(painter, row, track)

    def _paint_parts(self, painter: QPainter, row: DeviceBar, track: QRectF) -> None:
        theme = self._theme
        full_scale = max([self._capacity, *(max(other.parts.total, other.expected) for other in self._rows)]) or 1
        painter.setFont(theme.font(11))
        painter.fillRect(track, theme.color("field"))
        x, capacity_x = track.left(), track.left() + track.width() * self._capacity / full_scale
        for name in self.parts:
            width = track.width() * row.parts[name] / full_scale
            box = QRectF(x, track.top(), max(0.0, width - 1), track.height())
            painter.fillRect(box, theme.color(PART_COLORS[name], 0.45))
            painter.fillRect(QRectF(box.left(), box.bottom() - theme.px(3), box.width(), theme.px(3)),
                             theme.color(PART_COLORS[name]))  # fmt: skip
            self._paint_name(painter, name, box, capacity_x)
            x += width
        if self._capacity:
            self._stroke(painter, track, capacity_x, Qt.PenStyle.SolidLine)
        if row.expected:
            self._stroke(painter, track, track.left() + track.width() * row.expected / full_scale, Qt.PenStyle.DashLine)

    def _paint_name(self, painter: QPainter, name: str, box: QRectF, capacity_x: float) -> None:
        """Write the part's name into its box, beside the capacity stroke at `capacity_x`: a second cue besides
        colour.
        """
        if self._capacity and box.left() < capacity_x < box.right():
            left, right = QRectF(box), QRectF(box)
            left.setRight(capacity_x)
            right.setLeft(capacity_x)
            box = max(left, right, key=QRectF.width)
        words = tr(scale.words.PART_TITLES[name])
        if QFontMetricsF(painter.font()).horizontalAdvance(words) + self._theme.px(8) < box.width():
            painter.setPen(self._theme.color("text"))
            painter.drawText(box, Qt.AlignmentFlag.AlignCenter, words)

    def _stroke(self, painter: QPainter, track: QRectF, x: float, style: Qt.PenStyle) -> None:
        painter.setPen(QPen(self._theme.color("text"), self._theme.px(2), style))
        over = self._theme.px(4)
        painter.drawLine(round(x), round(track.top() - over), round(x), round(track.bottom() + over))


def _row_sentence(row: DeviceBar) -> str:
    """Return a row in words."""
    parts = join_names(
        f"{tr(scale.words.PART_TITLES[name])} {scale.decimal_bytes(count)}"
        for name, count in row.parts.items()
        if count
    )
    return tr("{device}: {total} ({parts}).").format(
        device=row.label, total=scale.decimal_bytes(row.parts.total), parts=parts
    )
