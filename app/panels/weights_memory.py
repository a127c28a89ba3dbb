"""How much memory a model's weights may take: all of them, as many as fit, or so many gigabytes."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QButtonGroup, QHBoxLayout, QRadioButton, QVBoxLayout, QWidget

from app.panels.settings.fields import make_remark
from app.state.worker_messages import ALL_IN_MEMORY, AS_FITS
from app.widgets.inputs import DoubleSpinBox
from app.widgets.plain_text import PlainLabel
from resources.language import tr

_MIB_PER_GIB = 1024
"""MiB."""


class WeightsMemorySelector(QWidget):
    """`changed(MiB)` once another is chosen: MiB, `ALL_IN_MEMORY` or `AS_FITS`."""

    changed = Signal(int)

    def __init__(self, memory: int, default: int) -> None:
        """`default`: the MiB that are proposed where no number has been given yet."""
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
        self.speed_label = make_remark("")
        self.speed_label.setObjectName("weightsPace")
        self._lay_out()
        self.set_reason("")
        self._group.buttonClicked.connect(self._on_chosen)
        self.amount.valueChanged.connect(self._on_amount)

    @property
    def memory(self) -> int:
        """What is chosen."""
        if self.all_button.isChecked():
            return ALL_IN_MEMORY
        return AS_FITS if self.fit_button.isChecked() else max(1, round(self.amount.value() * _MIB_PER_GIB))

    def choose(self, memory: int) -> None:
        """As a hand would."""
        if memory > 0:
            self.amount.setValue(memory / _MIB_PER_GIB)
        self._button_of(memory).click()

    def set_reason(self, reason: str) -> None:
        """Why there is nothing to choose; empty when there is."""
        for part in (self.all_button, self.fit_button, self.limit_button):
            part.setEnabled(not reason)
        self.amount.setEnabled(not reason and self.limit_button.isChecked())
        told = tr("Layers beyond are read from the disk for every token: a model larger than the memory runs, slowly.")
        self.about.setText(reason or told)
        self.speed_label.setVisible(bool(self.speed_label.text()) and not reason)

    @Slot(str)
    def show_speed(self, sentence: str) -> None:
        """How quick that is, said beforehand; empty where all is in memory."""
        self.speed_label.setText(sentence)
        self.speed_label.setVisible(bool(sentence))

    def _button_of(self, memory: int) -> QRadioButton:
        return {ALL_IN_MEMORY: self.all_button, AS_FITS: self.fit_button}.get(memory, self.limit_button)

    def _lay_out(self) -> None:
        column, line = QVBoxLayout(self), QHBoxLayout()
        column.setContentsMargins(0, 8, 0, 0)
        column.setSpacing(4)
        heading = PlainLabel(tr("Memory for the weights"))
        heading.setProperty("role", "heading")
        line.addWidget(self.limit_button)
        line.addWidget(self.amount)
        line.addStretch(1)
        column.addWidget(heading)
        column.addWidget(self.all_button, 0, Qt.AlignmentFlag.AlignLeft)
        column.addWidget(self.fit_button, 0, Qt.AlignmentFlag.AlignLeft)
        column.addLayout(line)
        column.addWidget(self.about)
        column.addWidget(self.speed_label)

    @Slot()
    def _on_chosen(self) -> None:
        self.amount.setEnabled(self.limit_button.isChecked())
        self._emit_changed()

    @Slot()
    def _on_amount(self) -> None:
        if self.limit_button.isChecked():
            self._emit_changed()

    def _emit_changed(self) -> None:
        self.show_speed("" if self.all_button.isChecked() else tr("Looking how quick that is…"))
        self.changed.emit(self.memory)
