"""Choose what to compare: by chips, a number of seeds, or a sweep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from decodescope.app.state.comparison import candidates as choose
from decodescope.app.state.comparison import candidates as sweeps
from decodescope.app.state.comparison.candidates import ComparisonCandidate
from decodescope.app.state.comparison.results import Comparison, start_comparison
from decodescope.app.state.run import Run
from decodescope.app.state.worker_messages import ModelInfo, RunRequest
from decodescope.app.views.compare.comparison_kinds import (
    KINDS_WITH_REFERENCE,
    SEEDS,
    SWEEP,
    candidates_of,
    comparison_unsupported_reason,
)
from decodescope.app.views.compare.sweep_form import SweepForm
from decodescope.app.widgets.building import STRETCH, arrange, show_text
from decodescope.app.widgets.flow_layout import FlowRow, clear_layout
from decodescope.app.widgets.inputs import SpinBox
from decodescope.app.widgets.plain_text import PlainLabel, caption, tooltip
from decodescope.core import ModelEntry
from decodescope.resources.language import tr


class CandidateChips(FlowRow):
    """One checkable chip per candidate; unavailable ones are greyed and give the reason."""

    changed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._candidates: tuple[ComparisonCandidate, ...] = ()
        self._chips: dict[str, QPushButton] = {}
        self._choices: dict[str, bool] = {}

    def show_candidates(self, candidates: Sequence[ComparisonCandidate], first_is_reference: bool) -> None:
        """Show these candidates, keeping earlier choices. With `first_is_reference` the first one is always compared:
        it is the reference for the others.
        """
        self._candidates = tuple(candidates)
        clear_layout(self.flow)
        self._chips = {}
        for number, candidate in enumerate(candidates):
            chip = QPushButton(caption(candidate.title), self)
            chip.setCheckable(True)
            chip.setObjectName(f"compare.{candidate.key}")
            chip.setProperty("role", "chip")
            chip.setChecked(not candidate.reason and self._choices.get(candidate.key, candidate.chosen))
            chip.setEnabled(not candidate.reason and not (first_is_reference and number == 0))
            chip.setToolTip(tooltip(candidate.reason or candidate.summary))
            if first_is_reference and number == 0 and not candidate.reason:
                chip.setChecked(True)
                chip.setToolTip(
                    tooltip(tr("{summary}\nThe others are compared with this one.").format(summary=candidate.summary))
                )
            chip.clicked.connect(self._on_clicked)
            self._chips[candidate.key] = chip
            self.flow.addWidget(chip)
        self.updateGeometry()

    def set_wanted(self, choices: Mapping[str, bool]) -> None:
        """Set which candidates, by key, are chosen when they are shown."""
        self._choices |= choices

    @property
    def chosen(self) -> list[ComparisonCandidate]:
        """Candidates to compare, in order."""
        return [candidate for candidate in self._candidates if self._chips[candidate.key].isChecked()]

    @property
    def unavailable(self) -> list[ComparisonCandidate]:
        """Candidates that cannot be compared."""
        return [candidate for candidate in self._candidates if candidate.reason]

    @Slot()
    def _on_clicked(self) -> None:
        self._choices |= {key: chip.isChecked() for key, chip in self._chips.items() if chip.isEnabled()}
        self.changed.emit()


_MAX_RUNS = 12
"""Maximum number of this window's runs that are offered, latest first."""
_SEEDS, _MAX_SEEDS = 4, 64


class CompareSetup(QWidget):
    """Controls that choose the candidates. Signal `changed()`: the choice has changed. `info` is the loaded model,
    `entries` are the models that can be compared.
    """

    changed = Signal()
    samplesRequested = Signal(int)
    """Emitted to generate that many samples of the current settings at once, as one tree."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.info: ModelInfo | None = None
        self.entries: Sequence[ModelEntry] = ()
        self._runs: list[Run] = []
        self._kind, self._base = "", RunRequest("")
        self.unsupported_reason = ""
        """Why the shown run cannot be compared this way; empty if it can."""
        """Why the shown run cannot be compared so."""
        self.chips, self.sweep = CandidateChips(self), SweepForm(self)
        self.seeds, self._seed_row = SpinBox(self), QWidget(self)
        self.samples_button = QPushButton(tr("As one tree"), self._seed_row)
        self._reasons = PlainLabel(self, wordWrap=True)
        self._lay_out()
        self.chips.changed.connect(self.changed)
        self.sweep.changed.connect(self.changed)
        self.seeds.valueChanged.connect(self._on_seeds)
        self.samples_button.clicked.connect(self._on_samples)

    def _lay_out(self) -> None:
        self.seeds.setObjectName("compareSeeds")
        self.seeds.setAccessibleName(tr("Number of seeds"))
        self.seeds.setAlignment(Qt.AlignmentFlag.AlignRight)
        self.seeds.setRange(2, _MAX_SEEDS)
        self.seeds.setValue(_SEEDS)
        self.samples_button.setObjectName("compareSamples")
        self.samples_button.setProperty("role", "quiet")
        self.samples_button.setToolTip(
            tr("Generate this many samples with the current settings and merge them into one tree in the tree view")
        )
        self.samples_button.setCursor(Qt.CursorShape.PointingHandCursor)
        label = PlainLabel(tr("Count"), self._seed_row)
        label.setBuddy(self.seeds)
        arrange(QHBoxLayout(self._seed_row), label, self.seeds, STRETCH, self.samples_button, margins=0, spacing=3)
        self._reasons.setProperty("role", "muted")
        arrange(QVBoxLayout(self), self.chips, self._seed_row, self.sweep, self._reasons, margins=0)

    def add_run(self, run: Run) -> None:
        """Add a finished run to the offered runs."""
        if all(offered.id != run.id for offered in self._runs):
            self._runs = [*self._runs, run][-_MAX_RUNS:]

    def choose_runs(self, *runs: Run) -> None:
        """Select exactly these of the offered runs."""
        selected_ids = {run.id for run in runs}
        self.chips.set_wanted({run.id: run.id in selected_ids for run in self._runs})

    def offer(self, kind: str, base: Run) -> None:
        """Show the choices for comparing `base` by `kind`."""
        self._kind, self._base = kind, base.request
        info = self.info if self.info is not None and self.info.name == base.request.model else None
        self.unsupported_reason = comparison_unsupported_reason(kind, base.request)
        is_supported = not self.unsupported_reason
        candidates = candidates_of(kind, base.request, info, self.entries, self._runs) if is_supported else []
        self.chips.show_candidates(candidates, kind in KINDS_WITH_REFERENCE)
        self.chips.setVisible(is_supported and kind not in (SEEDS, SWEEP))
        self._seed_row.setVisible(is_supported and kind == SEEDS)
        self.sweep.setVisible(is_supported and kind == SWEEP)
        if is_supported and kind == SWEEP:
            self.sweep.set_run(base.request)
        show_text(self._reasons, self.unsupported_reason or _reasons_text(self.unavailable))

    @property
    def chosen(self) -> Sequence[ComparisonCandidate]:
        """The candidates to compare, in order."""
        if self.unsupported_reason:
            return []
        if self._kind == SEEDS:
            return choose.seed_candidates(self._base, self.seeds.value())
        if self._kind == SWEEP:
            sweep = self.sweep.sweep
            return sweeps.sweep_candidates(self._base, sweep) if sweep is not None else []
        return self.chips.chosen

    @property
    def count(self) -> int:
        """The number of candidates to compare."""
        return len(self.chosen)

    @property
    def unavailable(self) -> list[ComparisonCandidate]:
        """Candidates that cannot be compared."""
        return [] if self._kind in (SEEDS, SWEEP) else self.chips.unavailable

    def comparison(self) -> Comparison:
        """Create a comparison of the chosen candidates."""
        return start_comparison(self.chosen, self.sweep.sweep if self._kind == SWEEP else None)

    @Slot()
    def _on_samples(self) -> None:
        self.samplesRequested.emit(self.seeds.value())

    @Slot()
    def _on_seeds(self) -> None:
        self.changed.emit()


def _reasons_text(refused: Sequence[ComparisonCandidate]) -> str:
    """Return one line for each candidate that cannot be compared."""
    return "\n".join(f"{candidate.title}: {candidate.reason}" for candidate in refused)
