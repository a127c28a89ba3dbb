"""The first comparison, begun on the empty page: a run, and then the same with other strategies."""

from __future__ import annotations

from PySide6.QtCore import QObject, QTimer, Slot

from app.state.run import Run
from app.views.compare.compare_head import CompareHead
from app.views.compare.comparison_kinds import STRATEGIES
from app.widgets.empty_offer import FillButton


class FirstComparisonStarter(QObject):
    """Once the run that `offer` has begun is there, chooses the strategies and presses the button."""

    def __init__(self, offer: FillButton, head: CompareHead) -> None:
        super().__init__(head)
        self._head = head
        self._is_waiting = False
        self._run: Run | None = None
        offer.fillRequested.connect(self._on_requested)

    @Slot()
    def _on_requested(self) -> None:
        self._is_waiting = True

    def on_run_ended(self, run: Run) -> None:
        """A run has ended; it may be the one that is waited for."""
        if self._is_waiting:
            self._is_waiting, self._run = False, run
            QTimer.singleShot(0, self, self._begin)

    @Slot()
    def _begin(self) -> None:
        run, self._run = self._run, None
        if run is not None and run.finished is not None:
            self._head.kind.set_value(STRATEGIES)
            self._head.kind.chosen.emit(STRATEGIES)
            self._head.button.click()
