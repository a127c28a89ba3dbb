"""Base of the lab's pages: description, settings, Start/Stop button, curves and result."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QFrame, QGridLayout, QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from decodescope.app.features.labs.state import LabRequest, Task
from decodescope.app.state.worker_messages import ErrorReport
from decodescope.app.theme.themed import Themed
from decodescope.app.widgets.building import STRETCH, arrange, set_up
from decodescope.app.widgets.labels import WrappedLabel
from decodescope.app.widgets.plain_text import PlainLabel, tooltip
from decodescope.app.widgets.plots import PlotPanel, PlotSpec
from decodescope.core import labs, words
from decodescope.resources.language import join_sentences, tr


class LabPage(Themed, QFrame):
    """Base class of the lab's pages: settings, start and stop, progress. Emits `startWanted` and `stopWanted`. Pages
    override `lab_request` and `figures`.
    """

    startWanted = Signal(object)
    stopWanted = Signal()
    task: Task

    def __init__(
        self, description: str, plots: Sequence[str], parent: QWidget | None = None, column_count: int = 2
    ) -> None:
        """Create the page; `plots` are the titles of its curves, `column_count` is the number of curves per row."""
        super().__init__(parent)
        self.setProperty("role", "panel")
        self._column_count = column_count
        self.column = arrange(QVBoxLayout(self), margins=0, spacing=10)
        self.description, self.status = WrappedLabel(description, self), WrappedLabel("", self)
        self.status.setObjectName("labStatus")
        self.controls = arrange(QHBoxLayout(), spacing=8)
        self.start = set_up(QPushButton(tr("Start"), self), role="primary", clicked=self._on_start)
        self.plots = [PlotPanel(name, self, min_size=(200, 110)) for name in plots]
        self.headings = [PlainLabel(name, self) for name in plots]
        self.grid = arrange(QGridLayout(), spacing=8)
        self._is_busy = False
        self._lay_out()

    def _lay_out(self) -> None:
        self.column.addWidget(self.description)
        row = arrange(QHBoxLayout(), self.controls, STRETCH, self.start)
        arrange(self.column, row, self.status)
        for place, (heading, plot) in enumerate(zip(self.headings, self.plots, strict=True)):
            heading.setProperty("role", "heading")
            heading.hide()  # hidden until its plot has a curve
            self.grid.addWidget(heading, place // self._column_count * 2, place % self._column_count)
            self.grid.addWidget(plot, place // self._column_count * 2 + 1, place % self._column_count)
        self.column.addLayout(self.grid, 1)

    def lab_request(self) -> LabRequest:
        """Return the request that Start sends."""
        return LabRequest(self.task)

    def use_file(self, path: str) -> None:
        """Use a data file; only for steps that train on files."""

    def figures(self, events: Sequence[object]) -> Sequence[PlotSpec]:
        """Return the curves of the events."""
        return ()

    def show_busy(self, is_running: bool, other_task: str) -> None:
        """Show whether this step is running, or which other one prevents it from starting."""
        self._is_busy = is_running
        self.start.setText(tr("Stop") if is_running else tr("Start"))
        self.start.setEnabled(is_running or not other_task)
        self.start.setToolTip(
            tooltip(tr("Wait until {name} ends.").format(name=other_task) if other_task and not is_running else "")
        )

    def show_events(self, events: Sequence[object]) -> None:
        """Show the events so far."""
        for heading, plot, figure in zip(self.headings, self.plots, self.figures(events), strict=False):
            heading.setVisible(not figure.is_empty)
            plot.show_figure(figure)
        self.status.setText(status_text(events))

    def show_error(self, error: ErrorReport) -> None:
        """Show why the step failed."""
        self.status.setText(join_sentences(error.cause, error.remedy))

    @Slot()
    def _on_start(self) -> None:
        if self._is_busy:
            self.start.setText(tr("Stopping…"))
            self.start.setEnabled(False)
            self.stopWanted.emit()
        else:
            self.startWanted.emit(self.lab_request())


def status_text(events: Sequence[object]) -> str:
    """Return the progress or the result in a sentence."""
    p, last = labs.preference, events[-1] if events else None
    checked = next(
        (one for one in reversed(events) if isinstance(one, (p.RewardChecked, p.SftChecked, p.PpoChecked))), None
    )
    if isinstance(last, p.TrainingSaved):
        return join_sentences(_result(checked), tr("Computation time: {seconds:.0f} s.").format(seconds=last.seconds))
    if isinstance(last, p.TrainingStopped):
        return tr("Stopped after step {step} of {total}. Press Start to continue.").format(
            step=last.step, total=last.total
        )
    if isinstance(last, p.TrainingStarted):
        if last.step:
            return tr("Continuing after step {step} of {total}.").format(step=last.step, total=last.total)
        return tr("{examples} training examples, {held} held out.").format(examples=last.examples, held=last.held_out)
    if isinstance(last, (p.RewardStep, p.RewardChecked, p.SftStep, p.SftChecked, p.PpoStep)):
        return tr("Step {step} of {total}").format(step=last.step, total=last.total)
    return _result(checked)


def _result(checked: object) -> str:
    p = labs.preference
    if isinstance(checked, p.RewardChecked):
        return tr("It ranks {share} of {pairs} held-out pairs correctly.").format(
            share=words.percent(checked.accuracy, is_exact=True), pairs=checked.pairs
        )
    if isinstance(checked, p.SftChecked):
        return tr("Held-out loss: {loss:.3f} nats per token.").format(loss=checked.loss)
    if isinstance(checked, p.PpoChecked):
        return tr(
            "On held-out prompts the reward increased by {gain:.2f} standard deviations, with a KL of "
            "{kl:.1f} nats per text."
        ).format(gain=checked.gain, kl=checked.kl)
    return ""
