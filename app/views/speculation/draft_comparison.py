"""Whether the draft was worth it: the shown run is run once more without a draft, and once more with it."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import QObject, Slot

from app.state.run import Run
from app.state.worker_messages import RunRequest, without_speculation
from app.views.base import ViewSignals
from app.views.speculation.cards import SpeculationCards
from app.views.speculation.round_selection import RoundSelection


class DraftComparison(QObject):
    """Asks for both runs when the cards want them, and hands their figures to the cards."""

    def __init__(self, cards: SpeculationCards, place: RoundSelection, signals: ViewSignals) -> None:
        super().__init__(cards)
        self._cards, self._selection, self._signals = cards, place, signals
        cards.measureWanted.connect(self._request_runs)

    @Slot()
    def _request_runs(self) -> None:
        if self._selection.run is not None:
            request = self._selection.run.request
            self._signals.sideRunsRequested.emit([without_speculation(request), request])

    def add_result(self, run: Run) -> None:
        """The figures of a measured run, if it is one of the two."""
        shown = self._selection.run
        if shown is None:
            return
        if _is_same_request(run.request, without_speculation(shown.request)):
            self._cards.show_plain(run.finished)
        elif _is_same_request(run.request, shown.request):
            self._cards.show_drafted(run.finished)


def _is_same_request(one: RunRequest, other: RunRequest) -> bool:
    """Whether two requests ask for the same; a measurement begins from nothing and stays with its cache."""
    return replace(one, prefix_budget=0, memory_fallback=False) == replace(
        other, prefix_budget=0, memory_fallback=False
    )
