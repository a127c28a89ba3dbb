"""Says whether the run that is set fits into memory: before anything is loaded, and whenever a setting changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer, Slot

from app.session.worker import Answer
from app.state.requests import Errand

if TYPE_CHECKING:
    from app.window.main_window import MainWindow

DELAY_MS = 300
"""After the last change; longer than the loading of a chosen model waits, which tells its shape for nothing."""
FIRST_MS = 1500
"""After the window was made: by then it has been painted."""


class FitController(QObject):
    """Asks the worker to reckon, one question at a time, and shows the answer at the foot of the setup panel."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._window = window
        self._is_asked = self._is_stale = False
        self._timer = QTimer(self, singleShot=True, interval=DELAY_MS)
        self._timer.timeout.connect(self._ask)
        self._connect()
        self._timer.start(FIRST_MS)

    def _connect(self) -> None:
        toolbar, setup, session = self._window.toolbar, self._window.setup, self._window.session
        for signal in (
            *(picker.currentIndexChanged for picker in (toolbar.model, toolbar.strategy, toolbar.cache)),
            toolbar.draft.chosenChanged,
            setup.parameters.changed,
            setup.cache_parameters.changed,
            setup.prompt.edited,
            session.modelReady,
            session.finished,
            session.measuringChanged,
        ):
            signal.connect(self.later)
        session.answered.connect(self._on_answer)
        self._window.closed.connect(self._timer.stop)

    @Slot()
    def later(self) -> None:
        """Reckon once the hand rests."""
        self._timer.start(DELAY_MS)

    @Slot()
    def _ask(self) -> None:
        window = self._window
        if self._is_asked or window.session.busy:
            self._is_stale = True  # the end of a run asks again, and so does the answer
            return
        if not window.isVisible() or not window.controller.model:
            return
        self._is_asked, self._is_stale = True, False
        window.session.ask(Errand("fit", window.controller.request(seed=0)))

    @Slot(object)
    def _on_answer(self, answer: Answer) -> None:
        if answer.errand.kind != "fit":
            return
        self._is_asked = False
        found = answer.result
        if self._is_stale:
            self.later()
        elif hasattr(found, "figures") and hasattr(found, "advice"):
            self._window.setup.show_fit(found.figures, found.advice)
            if not self._window.toolbar.model.view().isVisible():
                self._window.controller.reckon_models(found.tokens, found.rows)
        else:
            self._window.setup.show_fit("", "")
