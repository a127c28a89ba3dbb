"""Demo dialog: file format, speed, size and theme of the recorded video."""

from __future__ import annotations

from typing import NamedTuple

from PySide6.QtCore import QSize, Signal, Slot
from PySide6.QtWidgets import QDialogButtonBox, QGridLayout, QVBoxLayout, QWidget

from decodescope.app.features.presentation.store import KINDS, PNGS, WEBM, webm_unsupported_reason
from decodescope.app.widgets.building import STRETCH, arrange, set_up
from decodescope.app.widgets.dialog import BaseDialog
from decodescope.app.widgets.inputs import ComboBox, DoubleSpinBox
from decodescope.app.widgets.labels import WrappedLabel
from decodescope.app.widgets.plain_text import PlainLabel
from decodescope.resources.language import mark, tr, trn

SIZES = ((1280, 720), (1920, 1080), (960, 540))
THEMES = (("", mark("As shown")), ("light", mark("Light")), ("dark", mark("Dark")))
MIN_SPEED, MAX_SPEED, DEFAULT_SPEED = 0.1, 25.0, 2.0
"""Slowest, fastest and default speed in tokens per second."""
ENDS_MS = 4500
"""Total time for which the first and the last frame are shown, in ms."""


class DemoOptions(NamedTuple):
    """Options of a demo recording."""

    kind: str
    tokens_per_second: float
    size: QSize
    theme: str
    """`light`, `dark`, or empty for the current theme."""


class DemoDialog(BaseDialog):
    """Options of a demo recording. Emits `chosen(Demo)` on Save."""

    chosen = Signal(object)

    def __init__(self, steps: int, parent: QWidget | None = None) -> None:
        super().__init__(parent, "demoDialog", tr("Record demo"))
        self._steps = steps
        self.kind, self.size_box, self.theme = ComboBox(self), ComboBox(self), ComboBox(self)
        self.speed_box = DoubleSpinBox(self)
        self.message = set_up(WrappedLabel("", self), role="muted")
        self._fill()
        self._lay_out()
        self._update_message()

    @property
    def options(self) -> DemoOptions:
        """The selected options."""
        return DemoOptions(
            self.kind.currentData(),
            self.speed_box.value(),
            QSize(*self.size_box.currentData()),
            self.theme.currentData(),
        )

    def _fill(self) -> None:
        for name, kind in KINDS.items():
            self.kind.addItem(tr(kind.title), name)
        for size in SIZES:
            self.size_box.addItem("{} × {}".format(*size), size)
        for name, title in THEMES:
            self.theme.addItem(tr(title), name)
        self.speed_box.setRange(MIN_SPEED, MAX_SPEED)
        self.speed_box.setDecimals(1)
        self.speed_box.setSingleStep(0.5)
        self.speed_box.setSuffix(" " + tr("tokens/s"))
        self.speed_box.setValue(DEFAULT_SPEED)
        self.kind.currentIndexChanged.connect(self._update_message)
        self.speed_box.valueChanged.connect(self._update_message)

    def _lay_out(self) -> None:
        form = QGridLayout()
        form.setHorizontalSpacing(18)
        form.setVerticalSpacing(10)
        form.setColumnStretch(1, 1)
        for row, (title, field) in enumerate((
            (tr("Format"), self.kind),
            (tr("Speed"), self.speed_box),
            (tr("Size"), self.size_box),
            (tr("Theme"), self.theme),
        )):  # fmt: skip
            field.setAccessibleName(title)
            label = PlainLabel(title, self)
            label.setBuddy(field)
            form.addWidget(label, row, 0)
            form.addWidget(field, row, 1)
        buttons = QDialogButtonBox(self)
        self.save = buttons.addButton(tr("Save…"), QDialogButtonBox.ButtonRole.AcceptRole)
        buttons.addButton(QDialogButtonBox.StandardButton.Cancel)
        buttons.accepted.connect(self._on_save)
        buttons.rejected.connect(self.close)
        arrange(QVBoxLayout(self), form, self.message, STRETCH, buttons, margins=(20, 16, 20, 16), spacing=14)
        self.setMinimumWidth(430)

    @Slot()
    def _update_message(self) -> None:
        """Show whether the format is available, and how long the demo will be."""
        why_not = webm_unsupported_reason() if self.kind.currentData() == WEBM else ""
        self.save.setEnabled(not why_not)
        seconds = self._steps / self.speed_box.value() + ENDS_MS / 1000
        message = trn("{steps:,} step, {seconds:.0f} s.", "{steps:,} steps, {seconds:.0f} s.", self._steps)
        message = message.format(steps=self._steps, seconds=seconds)
        if self.kind.currentData() == PNGS:
            message += " " + tr("The images are saved in a folder with the name you choose.")
        self.message.setText(why_not or message)

    @Slot()
    def _on_save(self) -> None:
        self.chosen.emit(self.options)
        self.close()
