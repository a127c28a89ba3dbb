"""A schedule as it was reckoned and as the clock had it, one above the other on the same scale."""

from __future__ import annotations

from PySide6.QtCore import Slot
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.theme.theme import Theme
from app.views.labs.scale.lanes import ScheduleLanes
from app.views.labs.scale.page import horizontal_scroll_area
from app.widgets.plain_text import PlainLabel
from app.widgets.wrapped_label import WrappedLabel
from core.labs import scale
from resources.language import tr

LANES_WIDTH = 480
"""Pixels at 100 % of both."""


class ScheduleComparison(QWidget):
    """A click on either says what each device did then."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.expected, self.measured = ScheduleLanes(), ScheduleLanes()
        self.moment = WrappedLabel("", self)
        self.moment.setObjectName("scaleMeasuredMoment")
        self._boxes: tuple[scale.Box, ...] = ()
        self._time = 0.0
        self._lanes = lanes = QWidget()
        column = QVBoxLayout(lanes)
        column.setContentsMargins(0, 0, 0, 0)
        for words, shown in ((tr("Predicted"), self.expected), (tr("Measured"), self.measured)):
            heading = PlainLabel(words.upper(), lanes)
            heading.setProperty("role", "heading")
            column.addWidget(heading)
            column.addWidget(shown)
            shown.setAccessibleName(words)
            shown.picked.connect(self.set_time)
        self._scroll = horizontal_scroll_area(lanes)
        self._scroll.setAccessibleName(tr("What each device computes, over time"))
        for shown in (self.expected, self.measured):
            self._scroll.horizontalScrollBar().valueChanged.connect(shown.set_left)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.addWidget(self._scroll)
        whole.addWidget(self.moment)

    def set_theme(self, theme: Theme) -> None:
        """Take other colours and sizes."""
        self.expected.set_theme(theme)
        self.measured.set_theme(theme)
        self._update_height()

    def show_measured(self, found: scale.Measured | None) -> None:
        """Draw what was measured; nothing where no times were."""
        self._boxes = found.boxes if found is not None else ()
        self.setVisible(bool(self._boxes))
        if found is None or not self._boxes:
            return
        until = max(box.stop for box in (*found.boxes, *found.expected_boxes))
        self.expected.show_boxes(found.expected_boxes, until, LANES_WIDTH)
        self.measured.show_boxes(found.boxes, until, LANES_WIDTH)
        self._update_height()
        self.set_time(until)

    @Slot(float)
    def set_time(self, time: float) -> None:
        """The moment that is spoken of, in milliseconds."""
        self._time = time
        self.expected.set_cursor(time)
        self.measured.set_cursor(time)
        self.words_changed()

    @Slot()
    def words_changed(self) -> None:
        """Say it again."""
        devices = sorted({box.device for box in self._boxes})
        self.moment.setText("\n".join(self._device_sentence(device) for device in devices))

    def _device_sentence(self, device: int) -> str:
        current = [box for box in self._boxes if box.device == device and box.start <= self._time < box.stop]
        is_done = all(box.stop <= self._time for box in self._boxes if box.device == device)
        if not current:
            return scale.words.explain_waiting(device, self._time, is_done)
        return " ".join(map(scale.words.explain_box, current))

    def _update_height(self) -> None:
        bar = self._scroll.horizontalScrollBar().sizeHint().height()
        self._scroll.setFixedHeight(self._lanes.sizeHint().height() + bar)
