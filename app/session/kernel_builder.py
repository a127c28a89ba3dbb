"""Builds the native decode kernels in the background when idle, once per machine."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from decodescope.app.session.background_tasks import BackgroundTask, TaskManager
from decodescope.app.session.queries.base import Answer, Query, Report
from decodescope.app.session.session import Session
from decodescope.app.state.worker_messages import AVAILABLE_STATES, DecodeBackend
from decodescope.core.common.lightweight_dataclass import plain

if TYPE_CHECKING:
    from decodescope.app.session.local_models import LocalModels
    from decodescope.core import BuildResult

IDLE_MS = 4000
"""Idle time before the compiler is started."""
_NAME = "kernels"


def build_kernels(cancel: threading.Event) -> BuildResult:
    """Run the compiler at the lowest priority; `cancel` stops it."""
    from decodescope import core

    return core.build_kernels(cancel)


@plain(frozen=True)
class NativeStepQuery(Query):
    """Query whether the loaded model of that name uses native code."""

    model: str

    def run(self, models: LocalModels, report: Report) -> bool:
        """Return whether native decode steps work, trying them once if needed; False if the model is not loaded."""
        from decodescope import core

        model = models.find(self.model)
        return model is not None and core.has_native_step(model)


class KernelBuilder(QObject):
    """Builds the kernels; the next run uses them. `changed(DecodeBackend | None)`: the decode backend of the loaded
    model; None without a model on the CPU of this machine.
    """

    changed = Signal(object)

    def __init__(self, session: Session, is_enabled: Callable[[], bool]) -> None:
        """`is_enabled()`: whether native code is enabled in the settings."""
        super().__init__(session)
        self._session, self._is_enabled = session, is_enabled
        self.backend: DecodeBackend | None = None
        """The backend emitted last."""
        self._may_build = self._is_closed = False
        self._failed: DecodeBackend | None = None
        self._tasks = TaskManager(self)
        self._timer = QTimer(self, singleShot=True, interval=IDLE_MS)
        self._timer.timeout.connect(self._start_build)
        session.modelReady.connect(self._check_backend)
        session.stateChanged.connect(self._schedule_build)
        session.answered.connect(self._on_answer)
        if not is_enabled():
            self._apply_setting()

    @property
    def is_building(self) -> bool:
        """Whether the compiler is running."""
        return self._tasks.is_running(_NAME)

    def allow_building(self) -> None:
        """Allow building, as the window stays open."""
        self._may_build = True
        self._schedule_build()

    @Slot()
    def emit_backend(self) -> None:
        """Emit the current backend again."""
        self.changed.emit(self.backend)

    @Slot()
    def follow_settings(self) -> None:
        """Apply the setting if it changed."""
        if self.backend is not None and (self.backend.state == "off") == self._is_enabled():
            self._check_backend()

    def close(self) -> None:
        """Stop the compiler when the window closes."""
        self._is_closed = True
        self._timer.stop()
        self._tasks.stop_all()

    def _apply_setting(self) -> None:
        from decodescope import core

        core.enable_native_steps(self._is_enabled())
        if not self._is_enabled():
            self._tasks.stop(_NAME)

    @Slot()
    def _check_backend(self) -> None:
        """Determine the backend of the loaded model."""
        model = self._session.model
        if model is None or model.engine or model.device != "cpu" or self._is_closed:
            self._set_backend(None)
            return
        from decodescope import core

        self._apply_setting()
        state = core.kernel_status().state
        if state == "missing":
            self._set_backend(
                DecodeBackend("building") if self.is_building else self._failed or DecodeBackend("missing")
            )
            self._schedule_build()
        else:
            self._set_backend(DecodeBackend(state))
        if state in AVAILABLE_STATES:
            self._session.request(NativeStepQuery(model.name))

    @Slot()
    def _schedule_build(self) -> None:
        """Start building after an idle time."""
        is_missing = self.backend is not None and self.backend.state == "missing"
        if self._may_build and is_missing and self._session.state == "idle" and not self._is_closed:
            self._timer.start()
        else:
            self._timer.stop()

    @Slot()
    def _start_build(self) -> None:
        self._tasks.start(_NAME, self._build)
        self._set_backend(DecodeBackend("building"))

    def _build(self, task: BackgroundTask) -> None:
        """Build in the task's own thread."""
        task.post(self._on_built, build_kernels(task.stop_event))

    def _on_built(self, result: BuildResult) -> None:
        if result.state == "failed":
            self._failed = DecodeBackend("failed", details=result.details)
        if not self._is_closed:
            QTimer.singleShot(0, self, self._check_backend)  # the task has ended by then

    @Slot(object)
    def _on_answer(self, answer: Answer) -> None:
        model, query = self._session.model, answer.query
        if not isinstance(query, NativeStepQuery) or model is None or query.model != model.name:
            return
        if self.backend is not None and self.backend.state in AVAILABLE_STATES:
            self._set_backend(DecodeBackend("ready", uses_native_code=answer.result is True))

    def _set_backend(self, backend: DecodeBackend | None) -> None:
        self.backend = backend
        self.changed.emit(backend)
