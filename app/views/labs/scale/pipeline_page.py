"""Pipelines: every device over time, scrubbed step by step."""

from __future__ import annotations

from bisect import bisect_left

from PySide6.QtCore import Slot
from PySide6.QtWidgets import QWidget

from app.theme.theme import Theme
from app.views.labs.scale.form import ScaleForm
from app.views.labs.scale.lanes import Lanes
from app.views.labs.scale.page import ScalePage, lying_wide
from app.views.labs.scale.scrubber import Scrubber
from app.widgets.wrapped_label import WrappedLabel
from core import together
from core.labs import scale
from resources.language import tr


class PipelinePage(ScalePage):
    """Settings, the lanes, a slider over every moment at which something begins or ends, and what happens then."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(tr("Pipeline"), parent)
        self.boxes: tuple[scale.Box, ...] = ()
        self._moments: list[float] = [0.0]
        self.lanes = Lanes()
        self._scroll = lying_wide(self.lanes)
        bar = self._scroll.horizontalScrollBar()
        bar.valueChanged.connect(self.lanes.set_left)
        bar.rangeChanged.connect(self._keep_in_sight)
        self.scrubber = Scrubber(self)
        self.scrubber.moved.connect(self._on_moment)
        self.moment = WrappedLabel("", self)
        self.moment.setObjectName("scaleMoment")
        self._lay_out()
        _add_settings(self.form)
        self.form.changed.connect(self.refresh)
        self.lanes.picked.connect(self.go_to)
        self.refresh()

    def set_theme(self, theme: Theme) -> None:
        """Take other colours and sizes."""
        super().set_theme(theme)
        self.lanes.set_theme(theme)
        self.scrubber.set_theme(theme)
        self._fit()

    @Slot()
    def refresh(self) -> None:
        """Make the schedule that is set, and show all of it."""
        form, kind = self.form, self.form.text("kind")
        form.enable_one("weights", kind == "pipedream")
        self.boxes = scale.schedule(
            form.number("stages"), form.number("count"), kind, forward=form.number("forward"),
            backward=form.number("backward"), hop=form.number("hop") / 10, weights=form.text("weights"),
        )  # fmt: skip
        self._moments = sorted({time for box in self.boxes for time in (box.start, box.stop)})
        self.lanes.show_boxes(self.boxes)
        self._fit()
        self.scrubber.show_steps(len(self._moments), len(self._moments) - 1)
        self.words_changed()

    def words_changed(self) -> None:
        """Say it all again."""
        kind, stages, count = self.form.text("kind"), self.form.number("stages"), self.form.number("count")
        share = scale.idle_share(self.boxes)
        self.say(scale.words.explain_idle(kind, stages, count, share, self.form.number("hop") == 0))
        self._on_moment()

    @Slot(float)
    def go_to(self, time: float) -> None:
        """The last moment by then."""
        self.scrubber.go_to(max(0, bisect_left(self._moments, time + 1e-9) - 1))

    def _lay_out(self) -> None:
        for part in (self._scroll, self.scrubber, self.moment):
            self.body.addWidget(part)
        self.body.addStretch(1)

    def _fit(self) -> None:
        """All lanes are seen; the scroll bar below them has its own room."""
        bar = self._scroll.horizontalScrollBar().sizeHint().height()
        self._scroll.setFixedHeight(self.lanes.sizeHint().height() + bar)

    @Slot()
    def _on_moment(self) -> None:
        time = self._moments[min(self.scrubber.step, len(self._moments) - 1)]
        self.lanes.set_cursor(time)
        self._keep_in_sight()
        self.moment.setText("\n".join(self._told(device, time) for device in range(self.form.number("stages"))))
        self.scrubber.slider.setAccessibleDescription(self.moment.text())

    @Slot()
    def _keep_in_sight(self) -> None:
        """The cursor, when it moves, and when there is more or less room for it."""
        self._scroll.ensureVisible(self.lanes.place_of(self.lanes.time), 0, 140, 0)

    def _told(self, device: int, time: float) -> str:
        """What a device does from that moment on."""
        now = [box for box in self.boxes if box.device == device]
        doing = [box for box in now if box.start <= time < box.stop]
        done = [box for box in now if box.kind == "update" and box.start == box.stop == time]
        told = [scale.words.explain_box(box) for box in (*done, *doing)]
        computes = any(box.kind != "send" for box in doing)
        if not computes:
            is_done = all(box.stop <= time for box in now)
            told.append(scale.words.explain_waiting(device, time, is_done))
        return together(*told)


def _add_settings(form: ScaleForm) -> None:
    titles, weights = scale.words.KIND_TITLES, scale.words.WEIGHTS_TITLES
    form.add_choice("kind", tr("Order"), [(name, tr(title)) for name, title in titles.items()])
    form.add_number("stages", tr("Devices"), 4, 1, 16)
    form.add_number("count", tr("Micro-batches"), 8, 1, 64)
    form.add_choice("weights", tr("Backward by which weights"), [(name, tr(title)) for name, title in weights.items()])
    form.add_number("forward", tr("Forward takes"), 1, 1, 9)
    form.add_number("backward", tr("Backward takes"), 2, 1, 9)
    form.add_number("hop", tr("Sending takes, in tenths"), 0, 0, 20)
