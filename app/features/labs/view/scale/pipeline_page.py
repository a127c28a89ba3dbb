"""The pipeline page: the schedule of every device over time, step by step."""

from __future__ import annotations

from bisect import bisect_left

from PySide6.QtCore import Slot
from PySide6.QtWidgets import QWidget

from decodescope.app.features.labs.view.scale.lanes import ScheduleLanes
from decodescope.app.features.labs.view.scale.scale_page import (
    ScaleForm,
    ScalePage,
    boxes_table,
    horizontal_scroll_area,
)
from decodescope.app.features.labs.view.scale.scrubber import StepScrubber
from decodescope.app.theme.theme import Theme
from decodescope.app.views.base import Table
from decodescope.app.widgets.building import STRETCH, arrange, set_up
from decodescope.app.widgets.labels import WrappedLabel
from decodescope.core import together
from decodescope.core.labs import scale
from decodescope.resources.language import tr


class PipelinePage(ScalePage):
    """Settings, the lanes, a slider over all times at which something starts or ends, and a description of that
    time.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(tr("Pipeline"), parent)
        self.boxes: tuple[scale.Box, ...] = ()
        self._times: list[float] = [0.0]
        self.lanes = ScheduleLanes()
        self._scroll = horizontal_scroll_area(self.lanes)
        bar = self._scroll.horizontalScrollBar()
        bar.valueChanged.connect(self.lanes.set_left)
        bar.rangeChanged.connect(self._scroll_to_cursor)
        self.scrubber = StepScrubber(self)
        self.scrubber.moved.connect(self._show_moment)
        self.moment = set_up(WrappedLabel("", self), name="scaleMoment")
        arrange(self.body, self._scroll, self.scrubber, self.moment, STRETCH)
        _add_settings(self.form)
        self.form.changed.connect(self.refresh)
        self.lanes.picked.connect(self.go_to_time)
        self.refresh()

    def restyle(self, theme: Theme) -> None:
        self._update_height()

    @Slot()
    def refresh(self) -> None:
        """Compute the configured schedule and show all of it."""
        form, kind = self.form, self.form.choice_value("kind")
        form.set_editor_enabled("weights", kind == "pipedream")
        self.boxes = scale.schedule(
            form.number_value("stages"),
            form.number_value("count"),
            kind,
            forward=form.number_value("forward"),
            backward=form.number_value("backward"),
            hop=form.number_value("hop") / 10,
            weights=form.choice_value("weights"),
        )
        self._times = sorted({time for box in self.boxes for time in (box.start, box.stop)})
        self.lanes.show_boxes(self.boxes)
        self._update_height()
        self.scrubber.show_steps(len(self._times), len(self._times) - 1)
        self.wording_changed()

    def wording_changed(self) -> None:
        """Rebuild all texts."""
        kind, stages, count = (
            self.form.choice_value("kind"),
            self.form.number_value("stages"),
            self.form.number_value("count"),
        )
        idle = scale.idle_share(self.boxes)
        self.set_sentence(scale.words.explain_idle(kind, stages, count, idle, self.form.number_value("hop") == 0))
        self._show_moment()

    def export_table(self) -> Table:
        """Return the schedule, one row for each piece of work."""
        return boxes_table(self.boxes)

    @Slot(float)
    def go_to_time(self, time: float) -> None:
        """Go to the last event before or at `time`."""
        self.scrubber.go_to(max(0, bisect_left(self._times, time + 1e-9) - 1))

    def _update_height(self) -> None:
        """Set the height so that all lanes and the scroll bar are visible."""
        bar = self._scroll.horizontalScrollBar().sizeHint().height()
        self._scroll.setFixedHeight(self.lanes.sizeHint().height() + bar)

    @Slot()
    def _show_moment(self) -> None:
        time = self._times[min(self.scrubber.step, len(self._times) - 1)]
        self.lanes.set_cursor(time)
        self._scroll_to_cursor()
        self.moment.setText(
            "\n".join(self._device_sentence(device, time) for device in range(self.form.number_value("stages")))
        )
        self.scrubber.slider.setAccessibleDescription(self.moment.text())

    @Slot()
    def _scroll_to_cursor(self) -> None:
        """Scroll to the cursor."""
        self._scroll.ensureVisible(self.lanes.x_of(self.lanes.time), 0, 140, 0)

    def _device_sentence(self, device: int, time: float) -> str:
        """Describe what a device does from that time on."""
        own = [box for box in self.boxes if box.device == device]
        current = [box for box in own if box.start <= time < box.stop]
        updates = [box for box in own if box.kind == "update" and box.start == box.stop == time]
        sentences = [scale.words.explain_box(box) for box in (*updates, *current)]
        computes = any(box.kind != "send" for box in current)
        if not computes:
            is_done = all(box.stop <= time for box in own)
            sentences.append(scale.words.explain_waiting(device, time, is_done))
        return together(*sentences)


def _add_settings(form: ScaleForm) -> None:
    titles, weights = scale.words.KIND_TITLES, scale.words.WEIGHTS_TITLES
    form.add_choice("kind", tr("Schedule"), [(name, tr(title)) for name, title in titles.items()])
    form.add_number("stages", tr("Devices"), 4, 1, 16)
    form.add_number("count", tr("Micro-batches"), 8, 1, 64)
    form.add_choice("weights", tr("Backward weights"), [(name, tr(title)) for name, title in weights.items()])
    form.add_number("forward", tr("Forward time"), 1, 1, 9)
    form.add_number("backward", tr("Backward time"), 2, 1, 9)
    form.add_number("hop", tr("Communication time (tenths)"), 0, 0, 20)
