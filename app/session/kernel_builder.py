"""Has the machine code for steps built in the background, once on a machine, while nothing else is to be done."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from app.session.background_task import BackgroundTask
from app.session.mailbox import Answer
from app.session.session import Session
from app.session.task_manager import TaskManager
from app.state.decode_backend import THERE, DecodeBackend, StepsRequest

if TYPE_CHECKING:
    from core import Quickened

IDLE_MS = 4000
"""So long nothing has been under way before the compiler is started."""
_NAME = "quickening"


def build(cancel: threading.Event) -> Quickened:
    """Run the compiler, at the lowest priority; `cancel` ends it."""
    import core

    return core.quicken(cancel)


class KernelBuilder(QObject):
    """Runs go over to what is built as the next of them begins. `changed(Steps | None)`: who takes the steps of the
    model in memory; None while there is none, or where it is on a card or on another machine."""

    changed = Signal(object)

    def __init__(self, session: Session, is_wanted: Callable[[], bool]) -> None:
        """`is_wanted()`: whether it is switched on."""
        super().__init__(session)
        self._session, self._is_wanted = session, is_wanted
        self.steps: DecodeBackend | None = None
        """What was told last."""
        self._may_build = self._is_over = False
        self._failed: DecodeBackend | None = None
        self._errands = TaskManager(self)
        self._timer = QTimer(self, singleShot=True, interval=IDLE_MS)
        self._timer.timeout.connect(self._begin)
        session.modelReady.connect(self._look)
        session.stateChanged.connect(self._wait)
        session.answered.connect(self._on_answer)
        if not is_wanted():
            self._switch()

    @property
    def is_building(self) -> bool:
        """Whether the compiler is at work."""
        return self._errands.is_under_way(_NAME)

    def allow(self) -> None:
        """What is missing may be built: the window stays."""
        self._may_build = True
        self._wait()

    @Slot()
    def tell(self) -> None:
        """Say once more what is so."""
        self.changed.emit(self.steps)

    @Slot()
    def follow_settings(self) -> None:
        """It may have been switched on or off."""
        if self.steps is not None and (self.steps.state == "off") == self._is_wanted():
            self._look()

    def end(self) -> None:
        """The window closes, and the compiler with it."""
        self._is_over = True
        self._timer.stop()
        self._errands.end()

    def _switch(self) -> None:
        import core

        core.switch_quick_steps(self._is_wanted())
        if not self._is_wanted():
            self._errands.stop(_NAME)

    @Slot()
    def _look(self) -> None:
        """Find out what is so for the model in memory."""
        model = self._session.model
        if model is None or model.engine or model.device != "cpu" or self._is_over:
            self._tell(None)
            return
        import core

        self._switch()
        state = core.quick_standing().state
        if state == "missing":
            self._tell(DecodeBackend("building") if self.is_building else self._failed or DecodeBackend("missing"))
            self._wait()
        else:
            self._tell(DecodeBackend(state))
        if state in THERE:
            self._session.ask(StepsRequest(model.name))

    @Slot()
    def _wait(self) -> None:
        """Begin in a while, if nothing comes between."""
        is_missing = self.steps is not None and self.steps.state == "missing"
        if self._may_build and is_missing and self._session.state == "idle" and not self._is_over:
            self._timer.start()
        else:
            self._timer.stop()

    @Slot()
    def _begin(self) -> None:
        self._errands.send(_NAME, self._build)
        self._tell(DecodeBackend("building"))

    def _build(self, errand: BackgroundTask) -> None:
        """On a thread of its own."""
        errand.tell(self._on_built, build(errand.stop))

    def _on_built(self, found: Quickened) -> None:
        if found.state == "failed":
            self._failed = DecodeBackend("failed", details=found.details)
        if not self._is_over:
            QTimer.singleShot(0, self, self._look)  # by then the errand is over

    @Slot(object)
    def _on_answer(self, answer: Answer) -> None:
        model, asked = self._session.model, answer.request
        if not isinstance(asked, StepsRequest) or model is None or asked.model != model.name:
            return
        if self.steps is not None and self.steps.state in THERE:
            self._tell(DecodeBackend("ready", quick=answer.result is True))

    def _tell(self, steps: DecodeBackend | None) -> None:
        self.steps = steps
        self.changed.emit(steps)
