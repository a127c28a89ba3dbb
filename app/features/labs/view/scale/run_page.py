"""The page that trains with real processes: memory of each process, compared with the prediction."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QProgressBar, QPushButton, QWidget

from decodescope.app.features.labs.state import ScaleRequest
from decodescope.app.features.labs.view.scale.device_bars import EXPECTED, DeviceBar, DeviceBars
from decodescope.app.features.labs.view.scale.lanes import ScheduleComparison
from decodescope.app.features.labs.view.scale.scale_page import ScaleForm, ScalePage, parts_row
from decodescope.app.state.worker_messages import ErrorReport
from decodescope.app.views.base import Table
from decodescope.app.widgets.building import STRETCH, arrange, set_up, show_text
from decodescope.app.widgets.labels import DetailsText, WrappedLabel
from decodescope.core import catalog
from decodescope.core.labs import scale
from decodescope.resources.language import join_sentences, mark, tr

_STAGES = ("starts", "alone", "joins", "step")


class ProcessPage(ScalePage):
    """Base class of pages that run processes. Emits `runWanted(ScaleRequest)` and `stopWanted`; the owner calls
    `on_started`, `on_event` and `on_ended`. A page adds its settings to `form` (among them a choice `model` and a
    number `processes`), then calls `lay_out` with its content.
    """

    runWanted = Signal(object)
    stopWanted = Signal()

    def __init__(self, settings: str, steps: int, parent: QWidget | None = None) -> None:
        super().__init__(settings, parent)
        self.result: Any = None
        self.is_running = False
        self._steps = steps
        self._progress_by_rank: dict[int, scale.RankProgress] = {}
        self._error: ErrorReport | None = None

    def lay_out(self, name: str, *shown: QWidget) -> None:
        """Add the button `name` below the settings, the progress above `shown`, and the program's error output
        below.
        """
        self.button = set_up(QPushButton(self), name=name, role="primary", clicked=self._on_button)
        self.button.setAutoDefault(False)
        self.form.add_always_enabled(self.button)
        self.bar = set_up(QProgressBar(self), accessible_name=tr("Progress"))
        self.bar.setTextVisible(False)
        self.progress = WrappedLabel("", self)
        self.details = set_up(DetailsText(self), accessible_name=tr("Details of the message"))
        self.progress.setObjectName("scaleProgress")
        self.details.setObjectName("scaleDetails")
        self.progress.setProperty("role", "muted")
        arrange(self.body, self.bar, self.progress, *shown, self.details, STRETCH)
        self.wording_changed()

    def on_started(self) -> None:
        """Note that the run has started."""
        self.is_running, self.result, self._error = True, None, None
        self._progress_by_rank = {}
        self.wording_changed()

    @Slot(object)
    def on_event(self, event: object) -> None:
        """Show the progress of a process, or the result."""
        if isinstance(event, scale.RankProgress):
            self._progress_by_rank[event.rank] = event
        else:
            self.result = event
        self.wording_changed()

    @Slot(object)
    def on_ended(self, error: ErrorReport | None) -> None:
        """Note that the run has ended, with or without an error."""
        self.is_running, self._error = False, error
        self.wording_changed()

    def wording_changed(self) -> None:
        """Rebuild all texts."""
        self.form.set_editable(not self.is_running)
        self.button.setText(tr("Stop") if self.is_running else tr("Run"))
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
        show_text(self.details, error.details if error is not None else "")

    def sentence_text(self) -> str:
        """Return the introduction, or the result in words."""
        raise NotImplementedError

    def show_result(self) -> None:
        """Show the result, if there is one."""

    def current_request(self) -> ScaleRequest:
        """Return the configured request."""
        raise NotImplementedError

    def set_request(self, request: ScaleRequest) -> None:
        """Set the form to a request."""
        self.form.set_value("model", request.model)
        self.form.set_value("processes", request.processes)

    @Slot()
    def _on_button(self) -> None:
        if self.is_running:
            self.stopWanted.emit()
        else:
            self.runWanted.emit(self.current_request())


def _progress_value(event: scale.RankProgress) -> int:
    return _STAGES.index(event.stage) + 1 + event.step


_INTRODUCTION = mark(
    "Several processes on this machine train a model together for {steps} steps with "
    "torch.distributed. The memory and traffic of each process are measured and compared with the "
    "prediction."
)


class DistributedRunPage(ProcessPage):
    """Settings, the sentence, a bar per process, and the schedule for pipelines."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(tr("What to run"), scale.STEPS, parent)
        _add_settings(self.form)
        self.form.changed.connect(self._update_enabled)
        self.bars, self.lanes = DeviceBars(self), ScheduleComparison(self)
        self.lay_out("scaleRun", self.legend, self.bars, self.lanes)

    @property
    def measured(self) -> scale.RankMeasurement | None:
        """The result, if there is one."""
        return self.result if isinstance(self.result, scale.RankMeasurement) else None

    def sentence_text(self) -> str:
        """Return the introduction, or the result in words."""
        if self.measured is not None:
            return scale.explain_measured(self.measured)
        return tr(_INTRODUCTION).format(steps=scale.STEPS)

    def show_result(self) -> None:
        """Show the bars and the lanes."""
        self._update_enabled()
        rows = [*_process_bars(self.measured)] if self.measured is not None else []
        self.bars.show_rows(rows)
        self.bars.setVisible(bool(rows))
        self.legend.show_parts([*self.bars.parts, EXPECTED] if rows else ())
        self.lanes.show_measured(self.measured)

    def export_table(self) -> Table:
        """Return one row per process: bytes held by part and bytes sent, measured and predicted."""
        found = self.measured
        if found is None:
            return ()
        names = parts_row(None)
        head = ["process", *names, *(f"predicted_{name}" for name in names), "sent", "predicted_sent"]
        ranks = zip(found.ranks, found.predicted, found.traffic, found.expected_traffic, strict=True)
        return [head, *([number, *parts_row(parts), *parts_row(expected), sent, predicted]
                        for number, (parts, expected, sent, predicted) in enumerate(ranks, 1))]  # fmt: skip

    def current_request(self) -> ScaleRequest:
        """Return the configured request."""
        form = self.form
        options = scale.Options(form.number_value("micro"), form.is_checked("recompute"), form.choice_value("weights"))
        return ScaleRequest(
            form.choice_value("model"), form.choice_value("scheme"), form.number_value("processes"), options
        )

    def set_request(self, request: ScaleRequest) -> None:
        """Set the form to a request."""
        super().set_request(request)
        chosen = request.options
        for name, value in (
            ("scheme", request.scheme), ("micro", chosen.micro_batches), ("recompute", chosen.recompute),
            ("weights", chosen.weights),
        ):  # fmt: skip
            self.form.set_value(name, value)

    @Slot()
    def _update_enabled(self) -> None:
        """Enable only the settings that the scheme uses."""
        scheme = self.form.choice_value("scheme")
        is_pipeline, has_versions = scheme in scale.PIPELINES, scheme == "pipedream"
        for name, is_used in (
            ("micro", is_pipeline), ("recompute", is_pipeline and not has_versions), ("weights", has_versions)
        ):  # fmt: skip
            self.form.set_editor_enabled(name, is_used and not self.is_running)


def _add_settings(form: ScaleForm) -> None:
    form.add_choice("model", tr("Model"), [(entry.name, entry.title) for entry in catalog.bundled()])
    titles = scale.words.RUN_TITLES
    form.add_choice("scheme", tr("Parallelism"), [(name, tr(title)) for name, title in titles.items()])
    form.add_number("processes", tr("Processes"), 2, 1, scale.MAX_PROCESSES)
    form.add_number("micro", tr("Micro-batches"), 4, 1, scale.MAX_MICRO_BATCHES)
    form.add_checkbox("recompute", tr("Recompute activations"))
    weights = scale.words.WEIGHTS_TITLES
    form.add_choice("weights", tr("Backward weights"), [(name, tr(title)) for name, title in weights.items()])


def _process_bars(measured: scale.RankMeasurement) -> Iterator[DeviceBar]:
    for number, (parts, expected) in enumerate(zip(measured.ranks, measured.predicted, strict=True)):
        yield DeviceBar(tr("Process {number}").format(number=number + 1), parts, expected.total)
