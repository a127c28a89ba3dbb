"""Whether the draft was worth it: the shown run is run once more without a draft, and once more with it."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import QObject, Slot

from app.state.run import Run
from app.state.worker_messages import RunRequest, plain_request
from app.views.base import ViewSignals
from app.views.speculation.cards import SpecCards
from app.views.speculation.round_selection import RoundPlace


class DraftComparison(QObject):
    """Asks for both runs when the cards want them, and hands their figures to the cards."""

    def __init__(self, cards: SpecCards, place: RoundPlace, signals: ViewSignals) -> None:
        super().__init__(cards)
        self._cards, self._place, self._signals = cards, place, signals
        cards.measureWanted.connect(self._ask)

    @Slot()
    def _ask(self) -> None:
        if self._place.run is not None:
            request = self._place.run.request
            self._signals.measureWanted.emit([plain_request(request), request])

    def take(self, run: Run) -> None:
        """The figures of a measured run, if it is one of the two."""
        shown = self._place.run
        if shown is None:
            return
        if _alike(run.request, plain_request(shown.request)):
            self._cards.show_plain(run.finished)
        elif _alike(run.request, shown.request):
            self._cards.show_drafted(run.finished)


def _alike(one: RunRequest, other: RunRequest) -> bool:
    """Whether two requests ask for the same; a measurement begins from nothing and stays with its cache."""
    return replace(one, prefix_budget=0, memory_fallback=False) == replace(
        other, prefix_budget=0, memory_fallback=False
    )
