"""The run that is shown, and the place in it that the reader stands at."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal

from app.state.run import Run


class ShownRun(QObject):
    """What the views draw: one run, up to its cursor."""

    cursorMoved = Signal(object)
    selectionChanged = Signal(object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._run: Run | None = None

    @property
    def run(self) -> Run | None:
        """The latest run, under way or ended."""
        return self._run

    def select_token(self, index: int | None) -> None:
        """Let the inspector speak of that token of the shown text; None for no one in particular."""
        if self._run is not None and self._run.select(index):
            self.selectionChanged.emit(self._run)

    def move_cursor(self, count: int) -> None:
        """Draw the first `count` tokens only."""
        if self._run is not None and self._run.move_cursor(count):
            self.cursorMoved.emit(self._run)

    def show_sequence(self, index: int) -> None:
        """Show another of the run's texts."""
        if self._run is not None and index != self._run.shown_index:
            self._run.show_sequence(index)
            self.selectionChanged.emit(self._run)
            self.cursorMoved.emit(self._run)
