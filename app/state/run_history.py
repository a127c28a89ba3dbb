"""The runs that a window has shown, in order, and which of them it shows now. No Qt in here."""

from __future__ import annotations

from collections.abc import Collection

from app.state.run import Run

MOST_HELD = 6
"""Runs that are held whole; others are read from their recordings again, where they were kept."""


class Generations:
    """A run that is made or opened is the last one, whatever was shown before: going back loses nothing."""

    def __init__(self) -> None:
        self.ids: list[str] = []
        self.place = -1
        """Of the shown run; −1 before there is one."""
        self._held: dict[str, Run] = {}

    @property
    def shown(self) -> str | None:
        """The shown run's id."""
        return self.ids[self.place] if self.place >= 0 else None

    def show(self, run: Run) -> None:
        """`run` is shown now."""
        self._held.pop(run.id, None)
        self._held[run.id] = run
        while len(self._held) > MOST_HELD:
            del self._held[next(iter(self._held))]
        if run.id != self.shown:
            self.ids = [one for one in self.ids if one != run.id] + [run.id]
            self.place = len(self.ids) - 1

    def begin_with(self, run: str) -> None:
        """That one was made before all of these: it is where going back from the first one leads."""
        self.ids.insert(0, run)
        self.place += 1

    def held(self, run: str) -> Run | None:
        """The run, where it is still in memory."""
        return self._held.get(run)

    def beside(self, step: int) -> str | None:
        """The run so many places further on (before: below 0), if there is one."""
        place = self.place + step
        return self.ids[place] if 0 <= place < len(self.ids) else None

    def go(self, run: str) -> None:
        """The shown run is that one of these from now on."""
        self.place = self.ids.index(run)

    def drop(self, gone: Collection[str]) -> None:
        """These are no more; the shown one stays."""
        shown = self.shown
        self.ids = [run for run in self.ids if run not in gone or run == shown]
        self.place = self.ids.index(shown) if shown is not None else -1
        self._held = {run: held for run, held in self._held.items() if run in self.ids}
