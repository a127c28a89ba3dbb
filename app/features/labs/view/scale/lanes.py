"""A lane for every device: its computation over time, micro-batches numbered as in the papers' figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from PySide6.QtCore import QPointF, QRect, QRectF, QSize, Qt, Signal, Slot
from PySide6.QtGui import QFontMetricsF, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QVBoxLayout, QWidget

from decodescope.app.features.labs.view.scale.scale_page import horizontal_scroll_area
from decodescope.app.theme.theme import Theme
from decodescope.app.theme.themed import Themed
from decodescope.app.widgets.accessibility import AccessiblePart, AccessibleWidget, Role
from decodescope.app.widgets.building import arrange, set_up
from decodescope.app.widgets.labels import WrappedLabel
from decodescope.app.widgets.plain_text import PlainLabel
from decodescope.core.labs import scale
from decodescope.resources.language import join_sentences, tr

LANE_HEIGHT, UNIT_WIDTH, NAME_WIDTH, HEAD_HEIGHT = 44, 20, 78, 26
"""Pixels at 100 %: height of a lane, minimum width of a time unit, width of the names, height of the head."""
LANE_COLORS = {"forward": "kept", "backward": "finished", "update": "accent", "send": "best", "wait": "refused"}
THIN_KINDS = ("update", "send", "wait")
"""Kinds drawn as thin strips, because they are not computation."""


class ScheduleLanes(Themed, QWidget, AccessibleWidget):
    """The schedule of all devices; boxes after the cursor are faint. `picked(time)` on a click."""

    picked = Signal(float)
    accessible_role = Role.List

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        set_up(self, name="scaleLanes", accessible_name=tr("Computation of each device over time"))
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._boxes: Sequence[scale.Box] = ()
        self._devices, self._end, self.time = 1, 1.0, 0.0
        self._shows_versions = False
        self._left = 0
        self._min_width = 0

    def show_boxes(self, boxes: Sequence[scale.Box], min_end: float = 0.0, min_width: int = 0) -> None:
        """Show a schedule, at least up to the time `min_end` and at least `min_width` pixels (at 100 %) if the times
        are not small integers.
        """
        self._boxes, self._min_width = boxes, min_width
        self._devices = max((box.device for box in boxes), default=0) + 1
        self._end = max([min_end, *(box.stop for box in boxes)]) or 1.0
        self._shows_versions = len({box.version for box in boxes if box.kind in ("forward", "backward")}) > 1
        self.updateGeometry()
        self.update()

    def set_cursor(self, time: float) -> None:
        """Move the time cursor."""
        self.time = time
        self.update()

    def accessible_parts(self) -> list[AccessiblePart]:
        """Return one part per box, in order of time."""
        return [
            AccessiblePart(
                scale.words.explain_box(box),
                partial(_box_rect, self._rect, box),
                press=partial(self.picked.emit, box.start),
            )
            for box in self._boxes
        ]

    def sizeHint(self) -> QSize:
        """Return a size in which the narrowest box fits its number."""
        px = self._theme.px
        wide = px(self._min_width) if self._min_width else round(self._end * px(UNIT_WIDTH))
        return QSize(px(NAME_WIDTH) + wide + px(8), self._height)

    def minimumSizeHint(self) -> QSize:
        """Return the full size: the widget is scrolled."""
        return self.sizeHint()

    @Slot(int)
    def set_left(self, left: int) -> None:
        """Set the first visible pixel, where the names stay during scrolling."""
        self._left = left
        self.update()

    def x_of(self, time: float) -> int:
        """Return the x coordinate of a time."""
        return round(self._x(time))

    @property
    def _height(self) -> int:
        return self._theme.px(HEAD_HEIGHT) + self._devices * self._theme.px(LANE_HEIGHT)

    @property
    def _unit(self) -> float:
        return (self.width() - self._theme.px(NAME_WIDTH) - self._theme.px(8)) / self._end

    def _x(self, time: float) -> float:
        return self._theme.px(NAME_WIDTH) + time * self._unit

    def _rect(self, box: scale.Box) -> QRectF:
        px = self._theme.px
        top = px(HEAD_HEIGHT) + box.device * px(LANE_HEIGHT)
        left, width = self._x(box.start), (box.stop - box.start) * self._unit
        if box.kind in THIN_KINDS:  # at the bottom of the lane
            return QRectF(left, top + px(LANE_HEIGHT - 9), max(px(3), width), px(6))
        return QRectF(left + 1, top + px(3), width - 2, px(LANE_HEIGHT - 14))

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the names, the visible boxes, and the cursor."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        self._paint_tracks(painter)
        for box in self._boxes:
            rect = self._rect(box)
            if rect.intersects(QRectF(event.rect())):
                self._paint_box(painter, box, rect)
        self._paint_legend(painter)
        painter.setPen(QPen(self._theme.color("text"), self._theme.px(2)))
        x = self._x(self.time)
        painter.drawLine(QPointF(x, self._theme.px(HEAD_HEIGHT - 4)), QPointF(x, self._height))
        self._paint_names(painter)

    def _paint_tracks(self, painter: QPainter) -> None:
        px = self._theme.px
        for device in range(self._devices):
            top = px(HEAD_HEIGHT) + device * px(LANE_HEIGHT) + px(3)
            ground = QRectF(px(NAME_WIDTH), top, self.width() - px(NAME_WIDTH), px(LANE_HEIGHT - 14))
            painter.fillRect(ground, self._theme.color("field"))

    def _paint_names(self, painter: QPainter) -> None:
        theme, px = self._theme, self._theme.px
        painter.fillRect(QRectF(self._left, px(HEAD_HEIGHT), px(NAME_WIDTH) - 2, self.height()), theme.color("panel"))
        painter.setFont(theme.font(13))
        painter.setPen(theme.color("muted"))
        for device in range(self._devices):
            name = QRectF(
                self._left, px(HEAD_HEIGHT) + device * px(LANE_HEIGHT) + px(3), px(NAME_WIDTH), px(LANE_HEIGHT - 14)
            )
            painter.drawText(name, Qt.AlignmentFlag.AlignVCenter, tr("Device {number}").format(number=device + 1))

    def _paint_box(self, painter: QPainter, box: scale.Box, rect: QRectF) -> None:
        theme, color = self._theme, LANE_COLORS[box.kind]
        opacity = 1.0 if box.start < self.time or box.stop <= self.time else 0.25
        if box.kind in THIN_KINDS:
            painter.fillRect(rect, theme.color(color, opacity))
            return
        painter.setPen(QPen(theme.color(color, opacity), theme.px(1.4)))
        painter.setBrush(theme.color(color, 0.28 * opacity))
        painter.drawRoundedRect(rect, 3, 3)
        self._paint_numbers(painter, box, rect, opacity)

    def _paint_numbers(self, painter: QPainter, box: scale.Box, rect: QRectF, opacity: float) -> None:
        """Paint the micro-batch number (from 1), and the weight version if there is more than one."""
        theme, number = self._theme, str(box.micro_batch + 1)
        painter.setPen(theme.color("text", max(opacity, 0.6)))
        painter.setFont(theme.font(12, 600, tabular=True))
        if QFontMetricsF(painter.font()).horizontalAdvance(number) > rect.width():
            return
        half = rect.height() / 2 if self._shows_versions else rect.height()
        upper = QRectF(rect.left(), rect.top() + 1, rect.width(), half)
        painter.drawText(upper, Qt.AlignmentFlag.AlignCenter, number)
        if self._shows_versions:
            painter.setFont(theme.font(11, tabular=True))
            lower = QRectF(rect.left(), rect.top() + half - 1, rect.width(), half)
            painter.drawText(lower, Qt.AlignmentFlag.AlignCenter, f"v{box.version}")

    def _paint_legend(self, painter: QPainter) -> None:
        theme, x = self._theme, float(self._left + self._theme.px(NAME_WIDTH))
        painter.setFont(theme.font(12))
        titles = _kind_titles()
        for kind in (kind for kind in titles if any(box.kind == kind for box in self._boxes)):
            painter.fillRect(QRectF(x, theme.px(6), theme.px(10), theme.px(10)), theme.color(LANE_COLORS[kind]))
            painter.setPen(theme.color("muted"))
            width = QFontMetricsF(painter.font()).horizontalAdvance(titles[kind])
            words = QRectF(x + theme.px(15), 0, width + 2, theme.px(22))
            painter.drawText(words, Qt.AlignmentFlag.AlignVCenter, titles[kind])
            x += width + theme.px(33)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Go to the clicked time."""
        time = (event.position().x() - self._theme.px(NAME_WIDTH)) / self._unit
        self.picked.emit(min(max(time, 0.0), self._end))


def _kind_titles() -> dict[str, str]:
    return {
        "forward": tr("forward"), "backward": tr("backward"), "update": tr("update"), "send": tr("sending"),
        "wait": tr("waiting"),
    }  # fmt: skip


def _box_rect(rect: Callable[[scale.Box], QRectF], box: scale.Box) -> QRect:
    return rect(box).toAlignedRect()


LANES_WIDTH = 480
"""Minimum width of both, in pixels at 100 %."""


class ScheduleComparison(Themed, QWidget):
    """Two schedules; a click on either describes what each device did at that time."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.expected, self.measured = ScheduleLanes(), ScheduleLanes()
        self.moment = set_up(WrappedLabel("", self), name="scaleMeasuredMoment")
        self._boxes: tuple[scale.Box, ...] = ()
        self._time = 0.0
        self._lanes = lanes = QWidget()
        column = arrange(QVBoxLayout(lanes), margins=0)
        for words, shown in ((tr("Predicted"), self.expected), (tr("Measured"), self.measured)):
            heading = set_up(PlainLabel(words.upper(), lanes), role="heading")
            arrange(column, heading, shown)
            shown.setAccessibleName(words)
            shown.picked.connect(self.set_time)
        self._scroll = set_up(horizontal_scroll_area(lanes), accessible_name=tr("Computation of each device over time"))
        for shown in (self.expected, self.measured):
            self._scroll.horizontalScrollBar().valueChanged.connect(shown.set_left)
        arrange(QVBoxLayout(self), self._scroll, self.moment, margins=0)

    def restyle(self, theme: Theme) -> None:
        self._update_height()

    def show_measured(self, measured: scale.RankMeasurement | None) -> None:
        """Show the measurement; hide the widget if it has no times."""
        self._boxes = measured.boxes if measured is not None else ()
        self.setVisible(bool(self._boxes))
        if measured is None or not self._boxes:
            return
        until = max(box.stop for box in (*measured.boxes, *measured.expected_boxes))
        self.expected.show_boxes(measured.expected_boxes, until, LANES_WIDTH)
        self.measured.show_boxes(measured.boxes, until, LANES_WIDTH)
        self._update_height()
        self.set_time(until)

    @Slot(float)
    def set_time(self, time: float) -> None:
        """Set the described time, in milliseconds."""
        self._time = time
        self.expected.set_cursor(time)
        self.measured.set_cursor(time)
        self.wording_changed()

    @Slot()
    def wording_changed(self) -> None:
        """Rebuild the description."""
        devices = sorted({box.device for box in self._boxes})
        self.moment.setText("\n".join(self._device_sentence(device) for device in devices))

    def _device_sentence(self, device: int) -> str:
        current = [box for box in self._boxes if box.device == device and box.start <= self._time < box.stop]
        is_done = all(box.stop <= self._time for box in self._boxes if box.device == device)
        if not current:
            return scale.words.explain_waiting(device, self._time, is_done)
        return join_sentences(*map(scale.words.explain_box, current))

    def _update_height(self) -> None:
        bar = self._scroll.horizontalScrollBar().sizeHint().height()
        self._scroll.setFixedHeight(self._lanes.sizeHint().height() + bar)
