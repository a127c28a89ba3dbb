"""A page of the lab: what the step does, what is set, Start that becomes Stop, curves, and what came of it."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import (
    QAbstractSpinBox,
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from app.state.labs import LabRequest, Task
from app.state.worker_messages import ErrorReport
from app.theme.theme import Theme
from app.widgets.labels import WrappedLabel
from app.widgets.plain_text import PlainLabel, tooltip
from app.widgets.plots import PlotPanel, PlotSpec
from core import labs, words
from resources.language import join_sentences, tr


class LabPage(QFrame):
    """`startWanted(LabWish)`, `stopWanted`. A page overrides `lab_request` and `figures`."""

    startWanted = Signal(object)
    stopWanted = Signal()
    task: Task

    def __init__(
        self, description: str, plots: Sequence[str], parent: QWidget | None = None, column_count: int = 2
    ) -> None:
        """`plots`: the names of its curves, so many of them in a row."""
        super().__init__(parent)
        self.setProperty("role", "panel")
        self._column_count = column_count
        self.column = QVBoxLayout(self)
        self.column.setContentsMargins(0, 0, 0, 0)
        self.column.setSpacing(10)
        self.description, self.status = WrappedLabel(description, self), WrappedLabel("", self)
        self.status.setObjectName("labStatus")
        self.controls = QHBoxLayout()
        self.controls.setSpacing(8)
        self.start = QPushButton(tr("Start"), self)
        self.start.setProperty("role", "primary")
        self.start.clicked.connect(self._on_start)
        self.plots = [PlotPanel(name, self, min_size=(200, 110)) for name in plots]
        self.headings = [PlainLabel(name, self) for name in plots]
        self.grid = QGridLayout()
        self.grid.setSpacing(8)
        self._is_busy = False
        self._lay_out()

    def _lay_out(self) -> None:
        self.column.addWidget(self.description)
        row = QHBoxLayout()
        row.addLayout(self.controls)
        row.addStretch(1)
        row.addWidget(self.start)
        self.column.addLayout(row)
        self.column.addWidget(self.status)
        for place, (heading, plot) in enumerate(zip(self.headings, self.plots, strict=True)):
            heading.setProperty("role", "heading")
            heading.hide()  # until there is a curve below it
            self.grid.addWidget(heading, place // self._column_count * 2, place % self._column_count)
            self.grid.addWidget(plot, place // self._column_count * 2 + 1, place % self._column_count)
        self.column.addLayout(self.grid, 1)

    def lab_request(self) -> LabRequest:
        """What Start begins."""
        return LabRequest(self.task)

    def use_file(self, path: str) -> None:
        """Learn from that file; for a step that learns from files."""

    def figures(self, events: Sequence[object]) -> Sequence[PlotSpec]:
        """The curves of what was told."""
        return ()

    def set_theme(self, theme: Theme) -> None:
        """Colours and sizes of the curves."""
        for plot in self.plots:
            plot.set_theme(theme)
        for spin in self.findChildren(QAbstractSpinBox):
            spin.lineEdit().setTextMargins(theme.px(6), 0, 0, 0)

    def show_busy(self, is_running: bool, other_task: str) -> None:
        """Whether this step is under way, or which other one is in its way."""
        self._is_busy = is_running
        self.start.setText(tr("Stop") if is_running else tr("Start"))
        self.start.setEnabled(is_running or not other_task)
        self.start.setToolTip(
            tooltip(tr("First let {name} end.").format(name=other_task) if other_task and not is_running else "")
        )

    def show_events(self, events: Sequence[object]) -> None:
        """What was told so far."""
        for heading, plot, figure in zip(self.headings, self.plots, self.figures(events), strict=False):
            heading.setVisible(not figure.is_empty)
            plot.show_figure(figure)
        self.status.setText(status_text(events))

    def show_error(self, error: ErrorReport) -> None:
        """Why it ended."""
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
    """How far it is, or what came of it, in a sentence."""
    p, last = labs.preference, events[-1] if events else None
    checked = next(
        (one for one in reversed(events) if isinstance(one, (p.RewardChecked, p.SftChecked, p.PpoChecked))), None
    )
    if isinstance(last, p.Kept):
        return join_sentences(
            _result(checked), tr("It took {seconds:.0f} s of computing.").format(seconds=last.seconds)
        )
    if isinstance(last, p.Stopped):
        return tr("Stopped after step {step} of {total}. Start goes on from there.").format(
            step=last.step, total=last.total
        )
    if isinstance(last, p.Begun):
        if last.step:
            return tr("Going on behind step {step} of {total}.").format(step=last.step, total=last.total)
        return tr("{examples} to learn from, {held} held out.").format(examples=last.examples, held=last.held_out)
    if isinstance(last, (p.RewardStep, p.RewardChecked, p.SftStep, p.SftChecked, p.PpoStep)):
        return tr("Step {step} of {total}").format(step=last.step, total=last.total)
    return _result(checked)


def _result(checked: object) -> str:
    p = labs.preference
    if isinstance(checked, p.RewardChecked):
        return tr("It puts {share} of {pairs} held-out pairs in the right order.").format(
            share=words.percent(checked.accuracy), pairs=checked.pairs
        )
    if isinstance(checked, p.SftChecked):
        return tr("A held-out answer costs {loss:.3f} nats a token now.").format(loss=checked.loss)
    if isinstance(checked, p.PpoChecked):
        return tr(
            "On held-out prompts the reward rose by {gain:.2f} standard deviations, at {kl:.1f} nats of KL a text."
        ).format(gain=checked.gain, kl=checked.kl)
    return ""
