"""The runs that a window has shown, in order, and which of them it shows now. No Qt in here."""

from __future__ import annotations

from collections.abc import Collection

from app.state.run import Run

MAX_RUNS_IN_MEMORY = 6
"""Runs that are held whole; others are read from their recordings again, where they were kept."""


class NavigationHistory:
    """A run that is made or opened is the last one, whatever was shown before: going back loses nothing."""

    def __init__(self) -> None:
        self.ids: list[str] = []
        self.index = -1
        """Of the shown run; −1 before there is one."""
        self._runs_in_memory: dict[str, Run] = {}

    @property
    def shown(self) -> str | None:
        """The shown run's id."""
        return self.ids[self.index] if self.index >= 0 else None

    def show(self, run: Run) -> None:
        """`run` is shown now."""
        self._runs_in_memory.pop(run.id, None)
        self._runs_in_memory[run.id] = run
        while len(self._runs_in_memory) > MAX_RUNS_IN_MEMORY:
            del self._runs_in_memory[next(iter(self._runs_in_memory))]
        if run.id != self.shown:
            self.ids = [one for one in self.ids if one != run.id] + [run.id]
            self.index = len(self.ids) - 1

    def insert_first(self, run: str) -> None:
        """That one was made before all of these: it is where going back from the first one leads."""
        self.ids.insert(0, run)
        self.index += 1

    def run_in_memory(self, run: str) -> Run | None:
        """The run, where it is still in memory."""
        return self._runs_in_memory.get(run)

    def neighbour(self, step: int) -> str | None:
        """The run so many places further on (before: below 0), if there is one."""
        place = self.index + step
        return self.ids[place] if 0 <= place < len(self.ids) else None

    def go(self, run: str) -> None:
        """The shown run is that one of these from now on."""
        self.index = self.ids.index(run)

    def remove(self, deleted: Collection[str]) -> None:
        """These are no more; the shown one stays."""
        shown = self.shown
        self.ids = [run for run in self.ids if run not in deleted or run == shown]
        self.index = self.ids.index(shown) if shown is not None else -1
        self._runs_in_memory = {run: held for run, held in self._runs_in_memory.items() if run in self.ids}
