"""The plan for real: processes that train together, what each held beside what was reckoned."""

from __future__ import annotations

from collections.abc import Iterator

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QProgressBar, QPushButton, QWidget

from app.theme.theme import Theme
from app.views.labs.scale.bars import DeviceBar, DeviceBars
from app.views.labs.scale.both_lanes import BothLanes
from app.views.labs.scale.form import Form
from app.views.labs.scale.page import Page
from app.widgets.wrapped_label import WrappedLabel
from core import catalog
from core.errors import TokenscopeError
from core.labs import scale
from resources.language import mark, sentences, tr

_FIRST = mark(
    "Several processes of this machine train a model together for {steps} steps, by torch.distributed. What each "
    "of them held and sent is counted, and set beside what was reckoned."
)
_STAGES = ("starts", "alone", "joins", "step")


class RunPage(Page):
    """`runWanted(model, scheme, processes, options)`, `stopWanted`; whoever runs it tells how it goes."""

    runWanted = Signal(str, str, int, object)
    stopWanted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(tr("What is run"), parent)
        self.measured: scale.Measured | None = None
        self._told: dict[int, scale.Progress] = {}
        self._error: TokenscopeError | None = None
        self.is_running = False
        _add_settings(self.form)
        self.form.changed.connect(self._fit_settings)
        self.button = QPushButton(self)
        self.button.setObjectName("scaleRun")
        self.button.setProperty("role", "primary")
        self.button.setAutoDefault(False)
        self.button.clicked.connect(self._on_button)
        self.form.add_free(self.button)
        self.bar = QProgressBar(self)
        self.bar.setTextVisible(False)
        self.bar.setAccessibleName(tr("Progress"))
        self.progress = WrappedLabel("", self)
        self.progress.setObjectName("scaleProgress")
        self.progress.setProperty("role", "muted")
        self.bars = DeviceBars(self)
        self.details = WrappedLabel("", self)
        self.details.setObjectName("scaleDetails")
        self.details.setProperty("role", "muted")
        self.details.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.lanes = BothLanes(self)
        for part in (self.bar, self.progress, self.legend, self.bars, self.lanes, self.details):
            self.body.addWidget(part)
        self.body.addStretch(1)
        self.words_changed()

    def set_theme(self, theme: Theme) -> None:
        """Take other colours and sizes."""
        super().set_theme(theme)
        self.bars.set_theme(theme)
        self.lanes.set_theme(theme)

    def started(self) -> None:
        """It has begun."""
        self.is_running, self.measured, self._error = True, None, None
        self._told = {}
        self.words_changed()

    @Slot(object)
    def go_on(self, event: scale.Progress | scale.Measured) -> None:
        """A process has come further, or all has been measured."""
        if isinstance(event, scale.Measured):
            self.measured = event
        else:
            self._told[event.rank] = event
        self.words_changed()

    @Slot(object)
    def ended(self, error: TokenscopeError | None) -> None:
        """It has ended, well or not."""
        self.is_running, self._error = False, error
        self.words_changed()

    def words_changed(self) -> None:
        """Say it all again."""
        self.form.enable(not self.is_running)
        self._fit_settings()
        self.button.setText(tr("Stop") if self.is_running else tr("Run it"))
        self.say(self._sentence())
        told = [scale.explain_progress(self._told[rank]) for rank in sorted(self._told)] if self.is_running else []
        self.progress.setText("\n".join(told))
        self.progress.setVisible(bool(told))
        self.bar.setVisible(self.is_running)
        self.bar.setRange(0, self.form.number("processes") * (len(_STAGES) + scale.STEPS))
        self.bar.setValue(sum(_place(event) for event in self._told.values()))
        rows = [*_rows(self.measured)] if self.measured is not None else []
        self.bars.show_rows(rows)
        self.bars.setVisible(bool(rows))
        self.legend.show_parts(self.bars.parts)
        self.lanes.show_measured(self.measured)
        self.details.setText(self._error.details if self._error is not None else "")
        self.details.setVisible(bool(self.details.text()))

    def _sentence(self) -> str:
        if self._error is not None:
            return sentences(self._error.cause, self._error.remedy)
        if self.measured is not None:
            return scale.explain_measured(self.measured)
        return tr(_FIRST).format(steps=scale.STEPS)

    @Slot()
    def _on_button(self) -> None:
        if self.is_running:
            self.stopWanted.emit()
        else:
            form = self.form
            options = scale.Options(form.number("micro"), form.is_ticked("recompute"), form.text("weights"))
            self.runWanted.emit(form.text("model"), form.text("scheme"), form.number("processes"), options)

    @Slot()
    def _fit_settings(self) -> None:
        """What a scheme does not ask for cannot be set."""
        scheme = self.form.text("scheme")
        is_pipeline, has_versions = scheme in scale.PIPELINES, scheme == "pipedream"
        for name, asked in (
            ("micro", is_pipeline), ("recompute", is_pipeline and not has_versions), ("weights", has_versions)
        ):  # fmt: skip
            self.form.enable_one(name, asked and not self.is_running)


def _add_settings(form: Form) -> None:
    form.add_choice("model", tr("Model"), [(entry.name, entry.title) for entry in catalog.bundled()])
    titles = scale.words.RUN_TITLES
    form.add_choice("scheme", tr("How the work is divided"), [(name, tr(title)) for name, title in titles.items()])
    form.add_number("processes", tr("Processes"), 2, 1, scale.MOST_PROCESSES)
    form.add_number("micro", tr("Micro-batches"), 4, 1, scale.MOST_MICRO_BATCHES)
    form.add_tick("recompute", tr("Compute activations again"))
    weights = scale.words.WEIGHTS_TITLES
    form.add_choice("weights", tr("Backward by which weights"), [(name, tr(title)) for name, title in weights.items()])


def _place(event: scale.Progress) -> int:
    return _STAGES.index(event.stage) + 1 + event.step


def _rows(found: scale.Measured) -> Iterator[DeviceBar]:
    for number, (parts, expected) in enumerate(zip(found.ranks, found.predicted, strict=True)):
        yield DeviceBar(tr("Process {number}").format(number=number + 1), parts, expected.total)
