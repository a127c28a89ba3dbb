"""How much memory a model's weights may take: all of them, as many as fit, or so many gigabytes."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QButtonGroup, QHBoxLayout, QRadioButton, QVBoxLayout, QWidget

from app.panels.settings.fields import muted
from app.state.worker_messages import ALL_IN_MEMORY, AS_FITS
from app.widgets.inputs import DoubleSpinBox
from app.widgets.plain_text import PlainLabel
from resources.language import tr

_GIB = 1024
"""MiB."""


class WeightsMemory(QWidget):
    """`changed(MiB)` once another is chosen: MiB, `ALL_IN_MEMORY` or `AS_FITS`."""

    changed = Signal(int)

    def __init__(self, memory: int, usual: int) -> None:
        """`usual`: the MiB that are proposed where no number has been given yet."""
        super().__init__()
        self.all, self.fit = QRadioButton(tr("All of them")), QRadioButton(tr("As much as fits"))
        self.most = QRadioButton(tr("At most"))
        self.amount = DoubleSpinBox(decimals=2, minimum=0.01, maximum=_GIB, singleStep=0.5, suffix=" GiB")
        self.amount.setObjectName("weightsMemoryAmount")
        self.amount.setAccessibleName(tr("Memory for the weights, in GiB"))
        self.amount.setKeyboardTracking(False)
        self.amount.setValue(max(memory if memory > 0 else usual, 1) / _GIB)
        self._group = QButtonGroup(self)
        for name, button in (("all", self.all), ("fit", self.fit), ("most", self.most)):
            button.setObjectName(f"weightsMemory.{name}")
            self._group.addButton(button)
        self._button_of(memory).setChecked(True)
        self.about = muted("")
        self.pace = muted("")
        self.pace.setObjectName("weightsPace")
        self._lay_out()
        self.set_reason("")
        self._group.buttonClicked.connect(self._on_chosen)
        self.amount.valueChanged.connect(self._on_amount)

    @property
    def memory(self) -> int:
        """What is chosen."""
        if self.all.isChecked():
            return ALL_IN_MEMORY
        return AS_FITS if self.fit.isChecked() else max(1, round(self.amount.value() * _GIB))

    def choose(self, memory: int) -> None:
        """As a hand would."""
        if memory > 0:
            self.amount.setValue(memory / _GIB)
        self._button_of(memory).click()

    def set_reason(self, reason: str) -> None:
        """Why there is nothing to choose; empty when there is."""
        for part in (self.all, self.fit, self.most):
            part.setEnabled(not reason)
        self.amount.setEnabled(not reason and self.most.isChecked())
        told = tr("Layers beyond are read from the disk for every token: a model larger than the memory runs, slowly.")
        self.about.setText(reason or told)
        self.pace.setVisible(bool(self.pace.text()) and not reason)

    @Slot(str)
    def show_pace(self, sentence: str) -> None:
        """How quick that is, said beforehand; empty where all is in memory."""
        self.pace.setText(sentence)
        self.pace.setVisible(bool(sentence))

    def _button_of(self, memory: int) -> QRadioButton:
        return {ALL_IN_MEMORY: self.all, AS_FITS: self.fit}.get(memory, self.most)

    def _lay_out(self) -> None:
        column, line = QVBoxLayout(self), QHBoxLayout()
        column.setContentsMargins(0, 8, 0, 0)
        column.setSpacing(4)
        heading = PlainLabel(tr("Memory for the weights"))
        heading.setProperty("role", "heading")
        line.addWidget(self.most)
        line.addWidget(self.amount)
        line.addStretch(1)
        column.addWidget(heading)
        column.addWidget(self.all, 0, Qt.AlignmentFlag.AlignLeft)
        column.addWidget(self.fit, 0, Qt.AlignmentFlag.AlignLeft)
        column.addLayout(line)
        column.addWidget(self.about)
        column.addWidget(self.pace)

    @Slot()
    def _on_chosen(self) -> None:
        self.amount.setEnabled(self.most.isChecked())
        self._tell()

    @Slot()
    def _on_amount(self) -> None:
        if self.most.isChecked():
            self._tell()

    def _tell(self) -> None:
        self.show_pace("" if self.all.isChecked() else tr("Looking how quick that is…"))
        self.changed.emit(self.memory)
