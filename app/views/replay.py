"""Replay of a run: the cursor moves on its own at a speed, or one token per press."""

from __future__ import annotations

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from decodescope.app.state.run import Run
from decodescope.resources.language import mark

STEP_SPEED = 0.0
"""Speed at which Play moves one token and pauses."""
SPEEDS = {STEP_SPEED: mark("Step"), 0.25: "¼×", 0.5: "½×", 1.0: "1×", 2.0: "2×", 4.0: "4×"}
"""Label of each speed."""
TOKENS_PER_SECOND = 8.0
"""Replay rate at speed 1."""


class Replay(QObject):
    """Requests cursor positions one after another for `run`."""

    cursorRequested = Signal(int)
    """Move the cursor to this number of tokens, or steps of a beam search."""
    playingChanged = Signal(bool)

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self.run: Run | None = None
        self.speed = 1.0
        self._timer = QTimer(self)
        self._timer.timeout.connect(self._advance)

    @property
    def is_playing(self) -> bool:
        """Whether the replay is running."""
        return self._timer.isActive()

    @property
    def interval(self) -> int:
        """Milliseconds between tokens."""
        return round(1000 / (TOKENS_PER_SECOND * (self.speed or 1.0)))

    @Slot()
    def play(self) -> None:
        """Run the cursor to the end, starting over if it is already there."""
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
        """Pause the replay."""
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
        """Replay at `speed` times the normal rate, one of `SPEEDS`."""
        self.speed = speed
        if self.is_playing and speed == STEP_SPEED:
            self.pause()
        elif self.is_playing:
            self._timer.start(self.interval)

    def step(self, by: int) -> None:
        """Move by a number of tokens, forwards or backwards, and pause."""
        if self.run is not None:
            self.go_to(self.run.cursor + by)

    @Slot(int)
    def go_to(self, count: int) -> None:
        """Pause at a position, limited to the run's length."""
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
