"""The first comparison, begun on the empty page: a run, and then the same with other strategies."""

from __future__ import annotations

from PySide6.QtCore import QObject, QTimer, Slot

from app.state.run import Run
from app.views.compare.compare_head import CompareHead
from app.views.compare.comparison_kinds import STRATEGIES
from app.widgets.empty_offer import EmptyOffer


class FirstComparison(QObject):
    """Once the run that `offer` has begun is there, chooses the strategies and presses the button."""

    def __init__(self, offer: EmptyOffer, head: CompareHead) -> None:
        super().__init__(head)
        self._head = head
        self._waits = False
        self._run: Run | None = None
        offer.wanted.connect(self._expect)

    @Slot()
    def _expect(self) -> None:
        self._waits = True

    def ended(self, run: Run) -> None:
        """A run has ended; it may be the one that is waited for."""
        if self._waits:
            self._waits, self._run = False, run
            QTimer.singleShot(0, self, self._begin)

    @Slot()
    def _begin(self) -> None:
        run, self._run = self._run, None
        if run is not None and run.finished is not None:
            self._head.kind.set_value(STRATEGIES)
            self._head.kind.chosen.emit(STRATEGIES)
            self._head.button.click()
