"""Back, on, a slider over every step between, and a button that plays them."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QHideEvent
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QWidget

from app.theme.theme import Theme, theme_for
from app.widgets.icons import icon
from app.widgets.inputs import Slider
from app.widgets.plain_text import PlainLabel, tooltip
from resources.language import tr

BEAT_MS = 600
"""How long a step stays while they are played."""


class Scrubber(QWidget):
    """`moved(step)` whenever the step is another."""

    moved = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme_for("light")
        self.slider = Slider(Qt.Orientation.Horizontal, self)
        self.slider.setObjectName("scaleSlider")
        self.slider.setAccessibleName(tr("Moment"))
        self.slider.setPageStep(1)
        self.place = PlainLabel("", self)
        self.place.setProperty("role", "muted")
        self.beat = QTimer(self, interval=BEAT_MS)
        self.beat.timeout.connect(self._on_beat)
        self.play = self._button("scalePlay", "", tr("Play it"))
        self.play.clicked.connect(self._on_play)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(self.play)
        for name, sign, told, by in (
            ("scaleBack", "‹", tr("A moment back"), -1), ("scaleOn", "›", tr("A moment on"), 1)
        ):  # fmt: skip
            button = self._button(name, sign, told)
            button.clicked.connect(lambda _on=False, by=by: self.go_to(self.step + by))
            row.addWidget(button)
        row.addWidget(self.slider, 1)
        row.addWidget(self.place)
        self.slider.valueChanged.connect(self._on_moved)

    @property
    def step(self) -> int:
        """Where it stands; counted from 0."""
        return self.slider.value()

    def set_theme(self, theme: Theme) -> None:
        """Take other colours and sizes."""
        self._theme = theme
        self._show_playing()

    def show_steps(self, count: int, step: int) -> None:
        """There are so many, and it stands at `step`."""
        self._pause()
        self.slider.setRange(0, max(0, count - 1))
        self.slider.setValue(step)
        self._show_place()

    def go_to(self, step: int) -> None:
        """Stand elsewhere."""
        self.slider.setValue(step)

    def hideEvent(self, event: QHideEvent) -> None:
        """What nobody sees does not play."""
        self._pause()
        super().hideEvent(event)

    def _button(self, name: str, sign: str, told: str) -> QPushButton:
        button = QPushButton(sign, self)
        button.setObjectName(name)
        button.setAccessibleName(told)
        button.setToolTip(tooltip(told))
        button.setProperty("role", "quiet")
        button.setAutoDefault(False)
        return button

    @Slot()
    def _on_play(self) -> None:
        """From here on, or from the beginning where it has ended."""
        if self.beat.isActive():
            self._pause()
            return
        if self.step == self.slider.maximum():
            self.go_to(0)
        self.beat.start()
        self._show_playing()

    @Slot()
    def _on_beat(self) -> None:
        self.go_to(self.step + 1)
        if self.step == self.slider.maximum():
            self._pause()

    def _pause(self) -> None:
        self.beat.stop()
        self._show_playing()

    def _show_playing(self) -> None:
        px, on = self._theme.px(16), self.beat.isActive()
        told = tr("Pause") if on else tr("Play it")
        self.play.setIconSize(QSize(px, px))
        self.play.setIcon(icon("pause" if on else "play", self._theme.text, px))
        self.play.setAccessibleName(told)
        self.play.setToolTip(tooltip(told))

    def _show_place(self) -> None:
        self.place.setText(f"{self.step} / {self.slider.maximum()}")

    @Slot(int)
    def _on_moved(self, step: int) -> None:
        self._show_place()
        self.moved.emit(step)
