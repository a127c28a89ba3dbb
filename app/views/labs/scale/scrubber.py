"""Back, on, and a slider over every step between."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QSlider, QWidget

from resources.language import tr


class Scrubber(QWidget):
    """`moved(step)` whenever the step is another."""

    moved = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.slider = QSlider(Qt.Orientation.Horizontal, self)
        self.slider.setObjectName("scaleSlider")
        self.slider.setAccessibleName(tr("Moment"))
        self.slider.setPageStep(1)
        self.slider.valueChanged.connect(self.moved)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(self._button("scaleBack", "‹", tr("A moment back"), -1))
        row.addWidget(self._button("scaleOn", "›", tr("A moment on"), 1))
        row.addWidget(self.slider, 1)

    @property
    def step(self) -> int:
        """Where it stands; counted from 0."""
        return self.slider.value()

    def show_steps(self, count: int, step: int) -> None:
        """There are so many, and it stands at `step`."""
        self.slider.setRange(0, max(0, count - 1))
        self.slider.setValue(step)

    def go_to(self, step: int) -> None:
        """Stand elsewhere."""
        self.slider.setValue(step)

    def _button(self, name: str, sign: str, told: str, by: int) -> QPushButton:
        button = QPushButton(sign, self)
        button.setObjectName(name)
        button.setAccessibleName(told)
        button.setToolTip(told)
        button.setProperty("role", "quiet")
        button.setAutoDefault(False)
        button.clicked.connect(lambda: self.slider.setValue(self.slider.value() + by))
        return button
