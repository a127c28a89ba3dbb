"""The plan for real: processes that train together, what each held beside what was reckoned."""

from __future__ import annotations

from collections.abc import Iterator

from PySide6.QtCore import Slot
from PySide6.QtWidgets import QWidget

from app.state.scale import ScaleRequest
from app.theme.theme import Theme
from app.views.labs.scale.bars import DeviceBar, DeviceBars
from app.views.labs.scale.both_lanes import ScheduleComparison
from app.views.labs.scale.form import ScaleForm
from app.views.labs.scale.legend import EXPECTED
from app.views.labs.scale.running_page import ProcessPage
from core import catalog
from core.labs import scale
from resources.language import mark, tr

_INTRODUCTION = mark(
    "Several processes of this machine train a model together for {steps} steps, by torch.distributed. What each "
    "of them held and sent is counted, and set beside what was reckoned."
)


class DistributedRunPage(ProcessPage):
    """Settings, the sentence, a bar for each process, and for pipelines their time."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(tr("What is run"), scale.STEPS, parent)
        _add_settings(self.form)
        self.form.changed.connect(self._update_enabled)
        self.bars, self.lanes = DeviceBars(self), ScheduleComparison(self)
        self.lay_out("scaleRun", self.legend, self.bars, self.lanes)

    def set_theme(self, theme: Theme) -> None:
        """Take other colours and sizes."""
        super().set_theme(theme)
        self.bars.set_theme(theme)
        self.lanes.set_theme(theme)

    @property
    def measured(self) -> scale.Measured | None:
        """What came of it."""
        return self.result if isinstance(self.result, scale.Measured) else None

    def sentence_text(self) -> str:
        """What it is, or what came of it."""
        if self.measured is not None:
            return scale.explain_measured(self.measured)
        return tr(_INTRODUCTION).format(steps=scale.STEPS)

    def show_result(self) -> None:
        """The bars and the lanes."""
        self._update_enabled()
        rows = [*_process_bars(self.measured)] if self.measured is not None else []
        self.bars.show_rows(rows)
        self.bars.setVisible(bool(rows))
        self.legend.show_parts([*self.bars.parts, EXPECTED] if rows else ())
        self.lanes.show_measured(self.measured)

    def current_request(self) -> ScaleRequest:
        """What is set."""
        form = self.form
        options = scale.Options(form.number_value("micro"), form.is_checked("recompute"), form.choice_value("weights"))
        return ScaleRequest(
            form.choice_value("model"), form.choice_value("scheme"), form.number_value("processes"), options
        )

    def set_request(self, request: ScaleRequest) -> None:
        """Set what was run."""
        super().set_request(request)
        chosen = request.options
        for name, value in (
            ("scheme", request.scheme), ("micro", chosen.micro_batches), ("recompute", chosen.recompute),
            ("weights", chosen.weights),
        ):  # fmt: skip
            self.form.set_value(name, value)

    @Slot()
    def _update_enabled(self) -> None:
        """What a scheme does not ask for cannot be set."""
        scheme = self.form.choice_value("scheme")
        is_pipeline, has_versions = scheme in scale.PIPELINES, scheme == "pipedream"
        for name, asked in (
            ("micro", is_pipeline), ("recompute", is_pipeline and not has_versions), ("weights", has_versions)
        ):  # fmt: skip
            self.form.set_editor_enabled(name, asked and not self.is_running)


def _add_settings(form: ScaleForm) -> None:
    form.add_choice("model", tr("Model"), [(entry.name, entry.title) for entry in catalog.bundled()])
    titles = scale.words.RUN_TITLES
    form.add_choice("scheme", tr("How the work is divided"), [(name, tr(title)) for name, title in titles.items()])
    form.add_number("processes", tr("Processes"), 2, 1, scale.MOST_PROCESSES)
    form.add_number("micro", tr("Micro-batches"), 4, 1, scale.MOST_MICRO_BATCHES)
    form.add_checkbox("recompute", tr("Compute activations again"))
    weights = scale.words.WEIGHTS_TITLES
    form.add_choice("weights", tr("Backward by which weights"), [(name, tr(title)) for name, title in weights.items()])


def _process_bars(found: scale.Measured) -> Iterator[DeviceBar]:
    for number, (parts, expected) in enumerate(zip(found.ranks, found.predicted, strict=True)):
        yield DeviceBar(tr("Process {number}").format(number=number + 1), parts, expected.total)
