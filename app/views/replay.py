"""Playing a run again: the cursor moves by itself, at a speed or one token a press."""

from __future__ import annotations

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from app.state.run import Run
from resources.language import mark

STEP_SPEED = 0.0
"""The speed at which Play goes one token on and holds."""
SPEEDS = {STEP_SPEED: mark("Step"), 0.25: "¼×", 0.5: "½×", 1.0: "1×", 2.0: "2×", 4.0: "4×"}
"""How each speed is written."""
TOKENS_PER_SECOND = 8.0
"""Replayed at speed 1."""


class Replay(QObject):
    """Asks for one place of the cursor after another; `run` is the one that is played."""

    cursorRequested = Signal(int)
    """The cursor is to go there: so many tokens, or steps of a beam search."""
    playingChanged = Signal(bool)

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self.run: Run | None = None
        self.speed = 1.0
        self._timer = QTimer(self)
        self._timer.timeout.connect(self._advance)

    @property
    def is_playing(self) -> bool:
        """Whether the cursor moves by itself."""
        return self._timer.isActive()

    @property
    def interval(self) -> int:
        """Milliseconds from one token to the next."""
        return round(1000 / (TOKENS_PER_SECOND * (self.speed or 1.0)))

    @Slot()
    def play(self) -> None:
        """Let the cursor run to the end; from the start again where it is there already."""
        run = self.run
        if run is None or not run.length:
            return
        if self.speed == STEP_SPEED:
            self.go_to(run.cursor + 1 if run.cursor < run.length else 0)
            return
        self._start()
        if run.cursor >= run.length:
            self.cursorRequested.emit(0)

    def _start(self) -> None:
        self._timer.start(self.interval)
        self.playingChanged.emit(True)

    @Slot()
    def pause(self) -> None:
        """Hold the cursor."""
        self._timer.stop()
        self.playingChanged.emit(False)

    @Slot()
    def toggle(self) -> None:
        """Play or pause."""
        if self.is_playing:
            self.pause()
        else:
            self.play()

    def set_speed(self, speed: float) -> None:
        """Replay `speed` times as fast as usual, one of `SPEEDS`."""
        self.speed = speed
        if self.is_playing and speed == STEP_SPEED:
            self.pause()
        elif self.is_playing:
            self._timer.start(self.interval)

    def step(self, by: int) -> None:
        """So many tokens on, or back, and hold there."""
        if self.run is not None:
            self.go_to(self.run.cursor + by)

    @Slot(int)
    def go_to(self, count: int) -> None:
        """Hold the cursor at that place, or at the nearest that there is."""
        self.pause()
        if self.run is not None:
            self.cursorRequested.emit(min(max(count, 0), self.run.length))

    @Slot()
    def _advance(self) -> None:
        run = self.run
        if run is None or run.cursor >= run.length:
            self.pause()
            return
        self.cursorRequested.emit(run.cursor + 1)
