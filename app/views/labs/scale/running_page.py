"""What pages that start processes have in common: a button that becomes Stop, how far they are, a failure."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QProgressBar, QPushButton, QWidget

from app.state.scale import ScaleRequest
from app.state.worker_messages import ErrorReport
from app.views.labs.scale.page import ScalePage
from app.widgets.wrapped_label import WrappedLabel
from core.labs import scale
from resources.language import join_sentences, tr

_STAGES = ("starts", "alone", "joins", "step")


class ProcessPage(ScalePage):
    """`runWanted(Asked)`, `stopWanted`; whoever runs it tells how it goes. A page adds its settings to `form` (a choice
    `model` and a number `processes` among them), then calls `lay_out` with what it shows."""

    runWanted = Signal(object)
    stopWanted = Signal()

    def __init__(self, settings: str, steps: int, parent: QWidget | None = None) -> None:
        super().__init__(settings, parent)
        self.result: Any = None
        self.is_running = False
        self._steps = steps
        self._progress_by_rank: dict[int, scale.Progress] = {}
        self._error: ErrorReport | None = None

    def lay_out(self, name: str, *shown: QWidget) -> None:
        """The button below the settings, named so; how it goes above `shown`, what a program wrote below."""
        self.button = QPushButton(self)
        self.button.setObjectName(name)
        self.button.setProperty("role", "primary")
        self.button.setAutoDefault(False)
        self.button.clicked.connect(self._on_button)
        self.form.add_always_enabled(self.button)
        self.bar = QProgressBar(self)
        self.bar.setTextVisible(False)
        self.bar.setAccessibleName(tr("Progress"))
        self.progress, self.details = WrappedLabel("", self), WrappedLabel("", self)
        self.progress.setObjectName("scaleProgress")
        self.details.setObjectName("scaleDetails")
        for label in (self.progress, self.details):
            label.setProperty("role", "muted")
        self.details.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        for part in (self.bar, self.progress, *shown, self.details):
            self.body.addWidget(part)
        self.body.addStretch(1)
        self.words_changed()

    def on_started(self) -> None:
        """It has begun."""
        self.is_running, self.result, self._error = True, None, None
        self._progress_by_rank = {}
        self.words_changed()

    @Slot(object)
    def on_event(self, event: object) -> None:
        """A process has come further, or there is a result."""
        if isinstance(event, scale.Progress):
            self._progress_by_rank[event.rank] = event
        else:
            self.result = event
        self.words_changed()

    @Slot(object)
    def on_ended(self, error: ErrorReport | None) -> None:
        """It has ended, well or not."""
        self.is_running, self._error = False, error
        self.words_changed()

    def words_changed(self) -> None:
        """Say it all again."""
        self.form.set_editable(not self.is_running)
        self.button.setText(tr("Stop") if self.is_running else tr("Run it"))
        error = self._error
        self.set_sentence(join_sentences(error.cause, error.remedy) if error is not None else self.sentence_text())
        lines = (
            [scale.explain_progress(self._progress_by_rank[rank]) for rank in sorted(self._progress_by_rank)]
            if self.is_running
            else []
        )
        self.progress.setText("\n".join(lines))
        self.progress.setVisible(bool(lines))
        self.bar.setVisible(self.is_running)
        self.bar.setRange(0, self.form.number_value("processes") * (len(_STAGES) + self._steps))
        self.bar.setValue(sum(map(_progress_value, self._progress_by_rank.values())))
        self.show_result()
        self.details.setText(error.details if error is not None else "")
        self.details.setVisible(bool(self.details.text()))

    def sentence_text(self) -> str:
        """What it is, or what came of it."""
        raise NotImplementedError

    def show_result(self) -> None:
        """Draw what came of it; nothing where nothing has."""

    def current_request(self) -> ScaleRequest:
        """What is to be run."""
        raise NotImplementedError

    def set_request(self, request: ScaleRequest) -> None:
        """Set what was run."""
        self.form.set_value("model", request.model)
        self.form.set_value("processes", request.processes)

    @Slot()
    def _on_button(self) -> None:
        if self.is_running:
            self.stopWanted.emit()
        else:
            self.runWanted.emit(self.current_request())


def _progress_value(event: scale.Progress) -> int:
    return _STAGES.index(event.stage) + 1 + event.step
