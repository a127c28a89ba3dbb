"""Playing a run on a stage: slowly, and behind a run that is still being written."""

from __future__ import annotations

from PySide6.QtCore import QObject, Slot

from app.state.run import Run
from app.views.replay import TOKENS_PER_SECOND, Replay

PACES = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
"""Tokens a second."""
DEFAULT_PACE = 1.0


class Playback(Replay):
    """A replay at one of `PACES` that waits for tokens which are not written yet."""

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self.pace = DEFAULT_PACE
        self.set_pace(DEFAULT_PACE)

    def set_pace(self, pace: float) -> None:
        """So many tokens a second, one of `PACES`."""
        self.pace = pace
        self.set_speed(pace / TOKENS_PER_SECOND)

    def change_pace(self, steps: int) -> None:
        """So many paces faster, or slower, as far as they go."""
        index = min(max(PACES.index(self.pace) + steps, 0), len(PACES) - 1)
        self.set_pace(PACES[index])

    @Slot()
    def play(self) -> None:
        """Let the cursor run to the end; from the start again where an ended run is there already."""
        run = self.run
        if run is None or not (run.length or is_growing(run)):
            return
        self._start()
        if run.cursor >= run.length and not is_growing(run):
            self.cursorRequested.emit(0)

    @Slot()
    def _advance(self) -> None:
        run = self.run
        if run is None or (run.cursor >= run.length and not is_growing(run)):
            self.pause()
        elif run.cursor < run.length:
            self.cursorRequested.emit(run.cursor + 1)


def is_growing(run: Run) -> bool:
    """Whether more may come."""
    return run.outcome is None and run.finished is None
