"""Collectives, seen: what each device holds after each step around the ring."""

from __future__ import annotations

import random

from PySide6.QtCore import Slot
from PySide6.QtWidgets import QWidget

from app.theme.theme import Theme
from app.views.labs.scale.page import ScalePage, horizontal_scroll_area
from app.views.labs.scale.ring_grid import RingGrid
from app.views.labs.scale.scrubber import StepScrubber
from app.widgets.wrapped_label import WrappedLabel
from core.labs import scale
from resources.language import tr

BYTES_PER_FLOAT = 4
"""Bytes of a number."""


class RingPage(ScalePage):
    """Which collective among how many; a slider over its steps."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(tr("Collective"), parent)
        self.steps: tuple[scale.RingStep, ...] = ()
        titles = scale.RING_TITLES
        self.form.add_choice("ring", tr("Collective"), [(name, tr(title)) for name, title in titles.items()])
        self.form.add_number("ringDevices", tr("Devices"), 4, 2, 8)
        self.form.add_number("numbers", tr("Numbers in a part"), 2, 1, 4)
        self.grid = RingGrid()
        self._scroll = horizontal_scroll_area(self.grid)
        self.scrubber = StepScrubber(self)
        self.transfers = WrappedLabel("", self)
        self.transfers.setObjectName("scaleHands")
        for part in (self._scroll, self.scrubber, self.transfers):
            self.body.addWidget(part)
        self.body.addStretch(1)
        self.form.changed.connect(self.refresh)
        self.scrubber.moved.connect(self.words_changed)
        self.refresh()

    def set_theme(self, theme: Theme) -> None:
        """Take other colours and sizes."""
        super().set_theme(theme)
        self.grid.set_theme(theme)
        self.scrubber.set_theme(theme)
        self._update_height()

    @Slot()
    def refresh(self) -> None:
        """Begin anew with what is set: small whole numbers, the same every time."""
        count, length = self.form.number_value("ringDevices"), self.form.number_value("numbers")
        generator = random.Random(0)
        tensors = [[float(generator.randint(1, 9)) for _ in range(count * length)] for _ in range(count)]
        self.steps = scale.ring(self.form.choice_value("ring"), tensors)
        self.scrubber.show_steps(len(self.steps), 0)
        self.words_changed()
        self._update_height()

    @Slot()
    def words_changed(self) -> None:
        """Show the step that is chosen, and say it again."""
        step = self.steps[min(self.scrubber.step, len(self.steps) - 1)]
        total_bytes = BYTES_PER_FLOAT * self.form.number_value("ringDevices") * self.form.number_value("numbers")
        self.grid.show_step(step)
        self.set_sentence(scale.explain_ring(self.form.choice_value("ring"), step, total_bytes))
        self.transfers.setText("\n".join(map(scale.explain_hand, step.hands)))

    def _update_height(self) -> None:
        bar = self._scroll.horizontalScrollBar().sizeHint().height()
        self._scroll.setFixedHeight(self.grid.sizeHint().height() + bar)
