"""Weights dialog: the precision of a model's weights, with the size and speed of each choice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QButtonGroup, QDialogButtonBox, QHBoxLayout, QRadioButton, QVBoxLayout, QWidget

from decodescope.app.panels.settings.form import make_remark
from decodescope.app.state.worker_messages import ALL_IN_MEMORY, AS_FITS, is_quantized
from decodescope.app.widgets.building import STRETCH, Gap, arrange, set_up, show_text
from decodescope.app.widgets.dialog import ScrolledDialog
from decodescope.app.widgets.inputs import DoubleSpinBox
from decodescope.app.widgets.labels import WrappedLabel
from decodescope.app.widgets.plain_text import PlainLabel, caption, window_title
from decodescope.resources.language import tr

_MIB_PER_GIB = 1024
"""MiB per GiB."""


class WeightsMemorySelector(QWidget):
    """Selector for the memory of the weights. Emits `changed(MiB)` with a number of MiB, `ALL_IN_MEMORY` or
    `AS_FITS`.
    """

    changed = Signal(int)

    def __init__(self, memory: int, default: int) -> None:
        """`default`: the MiB to propose while no number has been set."""
        super().__init__()
        self.all_button, self.fit_button = QRadioButton(tr("All of them")), QRadioButton(tr("As much as fits"))
        self.limit_button = QRadioButton(tr("At most"))
        self.amount = DoubleSpinBox(decimals=2, minimum=0.01, maximum=_MIB_PER_GIB, singleStep=0.5, suffix=" GiB")
        self.amount.setObjectName("weightsMemoryAmount")
        self.amount.setAccessibleName(tr("Memory for the weights, in GiB"))
        self.amount.setKeyboardTracking(False)
        self.amount.setValue(max(memory if memory > 0 else default, 1) / _MIB_PER_GIB)
        self._group = QButtonGroup(self)
        for name, button in (("all", self.all_button), ("fit", self.fit_button), ("most", self.limit_button)):
            button.setObjectName(f"weightsMemory.{name}")
            self._group.addButton(button)
        self._button_of(memory).setChecked(True)
        self.about = make_remark("")
        self.speed_label = set_up(make_remark(""), name="weightsPace")
        self._lay_out()
        self.set_reason("")
        self._group.buttonClicked.connect(self._on_chosen)
        self.amount.valueChanged.connect(self._on_amount)

    @property
    def memory(self) -> int:
        """The selected amount."""
        if self.all_button.isChecked():
            return ALL_IN_MEMORY
        return AS_FITS if self.fit_button.isChecked() else max(1, round(self.amount.value() * _MIB_PER_GIB))

    def choose(self, memory: int) -> None:
        """Select an amount and emit `changed`."""
        if memory > 0:
            self.amount.setValue(memory / _MIB_PER_GIB)
        self._button_of(memory).click()

    def set_reason(self, reason: str) -> None:
        """Disable the selector and show the reason; an empty reason enables it."""
        for part in (self.all_button, self.fit_button, self.limit_button):
            part.setEnabled(not reason)
        self.amount.setEnabled(not reason and self.limit_button.isChecked())
        explanation = tr(
            "The remaining layers are read from disk for every token, so a model larger than memory runs, but slowly."
        )
        self.about.setText(reason or explanation)
        self.speed_label.setVisible(bool(self.speed_label.text()) and not reason)

    @Slot(str)
    def show_speed(self, sentence: str) -> None:
        """Show the predicted speed; empty if all weights are in memory."""
        show_text(self.speed_label, sentence)

    def _button_of(self, memory: int) -> QRadioButton:
        return {ALL_IN_MEMORY: self.all_button, AS_FITS: self.fit_button}.get(memory, self.limit_button)

    def _lay_out(self) -> None:
        column, line = QVBoxLayout(self), QHBoxLayout()
        column.setContentsMargins(0, 8, 0, 0)
        column.setSpacing(4)
        heading = set_up(PlainLabel(tr("Memory for the weights").upper()), role="heading")
        arrange(line, self.limit_button, self.amount, STRETCH)
        arrange(column, heading, (self.all_button, 0, Qt.AlignmentFlag.AlignLeft))
        arrange(column, (self.fit_button, 0, Qt.AlignmentFlag.AlignLeft), line, self.about, self.speed_label)

    @Slot()
    def _on_chosen(self) -> None:
        self.amount.setEnabled(self.limit_button.isChecked())
        self._emit_changed()

    @Slot()
    def _on_amount(self) -> None:
        if self.limit_button.isChecked():
            self._emit_changed()

    def _emit_changed(self) -> None:
        self.show_speed("" if self.all_button.isChecked() else tr("Estimating the speed…"))
        self.changed.emit(self.memory)


_INDENT = 28
"""Indentation of a description below its button, in points."""


class WeightsOption(NamedTuple):
    """A weights precision: its name in the settings, its title, and a description of size and speed."""

    kind: str
    title: str
    about: str
    reason: str = ""
    """Why it cannot be selected; empty if it can."""


class WeightsDialog(ScrolledDialog):
    """Weights dialog; changes apply at once. Emits `chosen(kind)`, `memoryChosen(MiB)`, and `measureRequested` to
    measure the quality loss of the selected kind.
    """

    chosen = Signal(str)
    memoryChosen = Signal(int)
    measureRequested = Signal()

    def __init__(
        self,
        title: str,
        lines: Sequence[WeightsOption],
        kind: str,
        memory: WeightsMemorySelector,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.setObjectName("weightsDialog")
        self.setWindowTitle(window_title(title))
        self._lines = {line.kind: line for line in lines}
        self._buttons: dict[str, QRadioButton] = {}
        content = QWidget()
        self._column = arrange(QVBoxLayout(content), margins=(20, 16, 20, 8), spacing=4)
        for line in lines:
            self._add(line, line.kind == kind)
        self.memory = memory
        memory.changed.connect(self.memoryChosen)
        arrange(self._column, memory, Gap(8))
        self.foot = WrappedLabel(
            tr("The measurement scores the prompt twice: with these weights, and with the original weights in float32.")
        )
        self.foot.setProperty("role", "muted")
        arrange(self._column, self.foot, STRETCH)
        self.set_content(content, self._footer())
        self._show_measure()
        self.setMinimumWidth(460)

    @property
    def kind(self) -> str:
        """The selected kind."""
        return next((kind for kind, button in self._buttons.items() if button.isChecked()), "auto")

    def choose(self, kind: str) -> None:
        """Select a kind by name."""
        self._buttons[kind].setChecked(True)

    def _add(self, line: WeightsOption, is_chosen: bool) -> None:
        button = set_up(QRadioButton(caption(line.title)), name=f"weights.{line.kind}")
        button.setChecked(is_chosen)
        button.setEnabled(not line.reason)
        button.setAccessibleDescription(line.reason or line.about)
        button.toggled.connect(self._on_toggled)
        about = set_up(WrappedLabel(line.reason or line.about), role="muted")
        below = arrange(QVBoxLayout(), about, margins=(_INDENT, 0, 0, 6))
        self._buttons[line.kind] = button
        arrange(self._column, button, below)

    def _footer(self) -> QWidget:
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close, self)
        self.measure_button = buttons.addButton(tr("Measure quality loss"), QDialogButtonBox.ButtonRole.ActionRole)
        self.measure_button.setObjectName("measureWeights")
        self.measure_button.clicked.connect(self._on_measure)
        buttons.rejected.connect(self.close)
        return buttons

    def _show_measure(self) -> None:
        self.measure_button.setEnabled(self.kind not in ("auto", "float32"))
        is_packed = is_quantized(self.kind)
        self.memory.set_reason(
            tr("Quantized weights must all be in memory; choose float32 or bfloat16 to leave some on disk.")
            if is_packed
            else ""
        )

    @Slot(bool)
    def _on_toggled(self, on: bool) -> None:
        if on:
            self._show_measure()
            self.chosen.emit(self.kind)

    @Slot()
    def _on_measure(self) -> None:
        self.close()
        self.measureRequested.emit()
