"""A slider over steps with buttons for back, forward and play."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QHideEvent
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QWidget

from decodescope.app.theme.theme import Theme
from decodescope.app.theme.themed import Themed
from decodescope.app.widgets.building import arrange, set_up
from decodescope.app.widgets.icons import create_icon
from decodescope.app.widgets.inputs import Slider
from decodescope.app.widgets.plain_text import PlainLabel, tooltip
from decodescope.resources.language import tr

STEP_INTERVAL_MS = 600
"""Duration of a step during playback, in ms."""


class StepScrubber(Themed, QWidget):
    """A slider through the steps with buttons to play and pause. Emits `moved(step)` when the step changes."""

    moved = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.slider = Slider(Qt.Orientation.Horizontal, self)
        self.slider.setObjectName("scaleSlider")
        self.slider.setAccessibleName(tr("Step number"))
        self.slider.setPageStep(1)
        self.position_label = set_up(PlainLabel("", self), role="muted")
        self.timer = QTimer(self, interval=STEP_INTERVAL_MS)
        self.timer.timeout.connect(self._on_timeout)
        self.play = self._button("scalePlay", "", tr("Play"))
        self.play.clicked.connect(self._on_play)
        row = arrange(QHBoxLayout(self), self.play, margins=0)
        for name, sign, label, by in (
            ("scaleBack", "‹", tr("Previous step"), -1), ("scaleOn", "›", tr("Next step"), 1)
        ):  # fmt: skip
            button = self._button(name, sign, label)
            button.clicked.connect(lambda _on=False, by=by: self.go_to(self.step + by))
            row.addWidget(button)
        arrange(row, (self.slider, 1), self.position_label)
        self.slider.valueChanged.connect(self._on_moved)

    @property
    def step(self) -> int:
        """The current step, counted from 0."""
        return self.slider.value()

    def restyle(self, theme: Theme) -> None:
        self._update_play_button()

    def show_steps(self, count: int, step: int) -> None:
        """Set the number of steps and the current one."""
        self._pause()
        self.slider.setRange(0, max(0, count - 1))
        self.slider.setValue(step)
        self._update_position()

    def go_to(self, step: int) -> None:
        """Go to a step."""
        self.slider.setValue(step)

    def hideEvent(self, event: QHideEvent) -> None:
        """Pause the playback while hidden."""
        self._pause()
        super().hideEvent(event)

    def _button(self, name: str, sign: str, tip: str) -> QPushButton:
        button = set_up(QPushButton(sign, self), name=name, accessible_name=tip, tooltip=tooltip(tip), role="quiet")
        button.setAutoDefault(False)
        return button

    @Slot()
    def _on_play(self) -> None:
        """Start playing, from the beginning if at the end; or pause."""
        if self.timer.isActive():
            self._pause()
            return
        if self.step == self.slider.maximum():
            self.go_to(0)
        self.timer.start()
        self._update_play_button()

    @Slot()
    def _on_timeout(self) -> None:
        self.go_to(self.step + 1)
        if self.step == self.slider.maximum():
            self._pause()

    def _pause(self) -> None:
        self.timer.stop()
        self._update_play_button()

    def _update_play_button(self) -> None:
        px, on = self._theme.px(16), self.timer.isActive()
        label = tr("Pause") if on else tr("Play")
        self.play.setIconSize(QSize(px, px))
        self.play.setIcon(create_icon("pause" if on else "play", self._theme.text, px))
        self.play.setAccessibleName(label)
        self.play.setToolTip(tooltip(label))

    def _update_position(self) -> None:
        self.position_label.setText(f"{self.step} / {self.slider.maximum()}")

    @Slot(int)
    def _on_moved(self, step: int) -> None:
        self._update_position()
        self.moved.emit(step)
