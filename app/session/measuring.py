"""Runs beside the shown one, so that things can be compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from app.state.requests import RunRequest


class Measuring:
    """The runs that are still to be measured, one after another.

    Each begins from nothing and stays with its cache, so that they can be compared; one that fails leaves the others
    their turn.
    """

    def __init__(self) -> None:
        self._waiting: list[RunRequest] = []

    @property
    def is_done(self) -> bool:
        """Whether none is left."""
        return not self._waiting

    def plan(self, requests: Sequence[RunRequest]) -> None:
        """Measure these, and nothing planned before."""
        self._waiting = [replace(request, prefix_budget=0, memory_fallback=False) for request in requests]

    def next(self) -> RunRequest:
        """The next one. Raises IndexError when none is left."""
        return self._waiting.pop(0)

    def drop(self) -> None:
        """Leave out what has not begun."""
        self._waiting.clear()
