"""The compare view: a set of runs side by side, by cache, strategy, seed, model, a swept setting, or as they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from PySide6.QtCore import QObject, Qt, QTimer, Slot
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QProgressBar, QPushButton, QVBoxLayout, QWidget

from app.session.side_runs import MeasurementProgress
from app.state.comparison.results import Comparison, comparison_rows
from app.state.run import Run
from app.state.worker_messages import ModelInfo
from app.theme.theme import Theme
from app.views.base import Table
from app.views.compare.comparison_kinds import (
    KINDS,
    RUNS,
    STRATEGIES,
    SWEEP,
    ComparisonStore,
    kind_description,
    plan_text,
    progress_text,
)
from app.views.compare.comparison_result import ComparisonResult
from app.views.compare.setup import CompareSetup
from app.views.shared.empty_page import FillButton, ScrolledView
from app.widgets.buttons import SegmentedControl
from app.widgets.plain_text import PlainLabel, tooltip
from app.widgets.screen import WorkWhenVisible
from core import ModelEntry
from core.events import Event
from resources.language import join_sentences, mark, tr


class CompareHead(QObject):
    """`top` holds choice and button; `setup` and `comparing` say what the button is for."""

    def __init__(self, page: QWidget, comparing: ComparisonStore) -> None:
        super().__init__(page)
        self._comparing = comparing
        self._base: Run | None = None
        kinds = [(kind, tr(title)) for kind, title in KINDS]
        self.kind = SegmentedControl(kinds, tr("What to compare"), page, wraps=True)
        self.button = QPushButton(tr("Compare"), page)
        self.button.setObjectName("compareButton")
        self.button.setProperty("role", "primary")
        self.button.setCursor(Qt.CursorShape.PointingHandCursor)
        self.description = PlainLabel(page, wordWrap=True)
        self.description.setProperty("role", "muted")
        self.setup = CompareSetup(page)
        self.top = QBoxLayout(QBoxLayout.Direction.LeftToRight)
        self.top.addWidget(self.kind, 1)
        self.top.addWidget(self.button, 0, Qt.AlignmentFlag.AlignTop)
        self.setup.changed.connect(self._update_button)

    def set_wide(self, is_wide: bool) -> None:
        """The button below the choice where it gets narrow."""
        self.top.setDirection(QBoxLayout.Direction.LeftToRight if is_wide else QBoxLayout.Direction.TopToBottom)

    def show_state(self, base: Run | None) -> None:
        """Say what is chosen, and what the button does now for a comparison of `base`."""
        self._base = base
        self.description.setText(kind_description(self.kind.value, base))
        self._update_button()

    @Slot()
    def _update_button(self) -> None:
        run, count, is_own = self._base, self.setup.count, self._comparing.active is not None
        ready = run is not None and run.outcome is not None and not self._comparing.is_measuring and count > 1
        self.button.setEnabled(is_own or ready)
        self.button.setText(
            tr("Stop") if is_own else tr("Compare {count}").format(count=count) if count > 1 else tr("Compare")
        )
        each = run.finished.metrics.seconds if run is not None and run.finished is not None else None
        to_run = 0 if self.kind.value == RUNS else count
        self.button.setToolTip(tooltip("" if is_own or not to_run else plan_text(to_run, each)))
        if self.kind.value == SWEEP or to_run:
            plan = _as_sentence(plan_text(to_run, each)) if to_run > 1 else ""
            self.description.setText(join_sentences(kind_description(self.kind.value, run), plan))


def _as_sentence(words: str) -> str:
    return tr("{sentence}.").format(sentence=f"{words[:1].upper()}{words[1:]}")


class FirstComparisonStarter(QObject):
    """Once the run that `offer` has begun is there, chooses the strategies and presses the button."""

    def __init__(self, offer: FillButton, head: CompareHead) -> None:
        super().__init__(head)
        self._head = head
        self._is_waiting = False
        self._run: Run | None = None
        offer.fillRequested.connect(self._on_requested)

    @Slot()
    def _on_requested(self) -> None:
        self._is_waiting = True

    def on_run_ended(self, run: Run) -> None:
        """A run has ended; it may be the one that is waited for."""
        if self._is_waiting:
            self._is_waiting, self._run = False, run
            QTimer.singleShot(0, self, self._begin)

    @Slot()
    def _begin(self) -> None:
        run, self._run = self._run, None
        if run is not None and run.finished is not None:
            self._head.kind.set_value(STRATEGIES)
            self._head.kind.chosen.emit(STRATEGIES)
            self._head.button.click()


class ProgressRow(QWidget):
    """A bar with its words below it."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.bar, self.words = QProgressBar(self, textVisible=False), PlainLabel(self)
        self.bar.setObjectName("compareProgress")
        self.bar.setAccessibleName(tr("Runs that are done"))
        self.words.setProperty("role", "muted")
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        for part in (self.bar, self.words):
            self._column.addWidget(part)

    def set_theme(self, theme: Theme) -> None:
        """Other sizes."""
        self._column.setSpacing(theme.px(4))

    def show_progress(self, progress: MeasurementProgress) -> None:
        """So far it has come."""
        self.bar.setMaximum(max(1, progress.total))
        self.bar.setValue(progress.done)
        self.words.setText(progress_text(progress))


_SPACING = 12
"""Pixels at 100 % between the parts."""
_WIDE_FROM = 480
"""Pixels at 100 % of width from which the button stands beside the choice."""
_TITLE = mark("The same request, side by side")
_HINT = mark(
    "Run something first. Then it can be run again on other caches, with other strategies, seeds, models, settings."
)


class CompareView(ScrolledView):
    """Choice, table, texts and charts of a comparison; what is compared runs beside the shown run."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("compareView", tr(_TITLE), tr(_HINT), tr("Run it, then compare strategies"), parent)
        self._base: Run | None = None
        self._shown: Run | None = None
        self.comparing = ComparisonStore()
        self.head, self.progress = CompareHead(self._page, self.comparing), ProgressRow(self._page)
        self.outcome = ComparisonResult(self._page, self.signals)
        self.kind, self.button, self.setup = self.head.kind, self.head.button, self.head.setup
        self._first_comparison = FirstComparisonStarter(self.offer, self.head)
        self._deferred_offer = WorkWhenVisible(self, self._offer)
        self.setAccessibleName(tr("Compare"))
        self._column.addLayout(self.head.top)
        for part in (self.head.description, self.setup, self.progress):
            self._column.addWidget(part)
        self._column.addLayout(self.outcome.column)
        self._column.addStretch(1)
        self.setFocusProxy(self.button)
        self.kind.chosen.connect(self._offer)
        self.setup.samplesRequested.connect(self.signals.samplesRequested)
        self.button.clicked.connect(self.compare_or_stop)
        self.set_theme(self._theme)
        self._offer()

    # What the shell calls

    @property
    def is_empty(self) -> bool:
        """Whether nothing has been run yet."""
        return self._base is None

    @property
    def comparison(self) -> Comparison:
        """The one that is seen."""
        return self.comparing.comparisons[self.kind.value]

    def resizeEvent(self, event: QResizeEvent) -> None:
        """The button below the choice where it gets narrow."""
        super().resizeEvent(event)
        self.head.set_wide(self.width() >= self._theme.px(_WIDE_FROM))

    def set_theme(self, theme: Theme) -> None:
        """Take other colours and sizes at once."""
        self._set_spacing(theme, _SPACING)
        self.head.set_wide(self.width() >= theme.px(_WIDE_FROM))
        for part in (self.setup, self.progress):
            part.set_theme(theme)
        self.outcome.set_theme(theme, _SPACING)
        self._draw()

    def show_run(self, run: Run | None) -> None:
        """Compare what this run asked for; results of another request stay until the next comparison. A run that is
        one of the results is only marked."""
        self._shown = run
        if self.comparing.contains(run):
            self._draw()
            return
        self._base = run
        if run is not None:
            self.setup.add_run(run)
        self._deferred_offer.schedule()

    def events_arrived(self, run: Run, events: Sequence[Event]) -> None:
        """A comparison can begin once the shown run has ended."""
        if run is not self._shown:
            self.show_run(run)
        elif run.outcome is not None:
            self._deferred_offer.schedule()
            self._first_comparison.on_run_ended(run)

    @property
    def shows_side_runs(self) -> bool:
        """Whether what is measured now becomes a row here, its failure too."""
        return self.comparing.active is not None

    def model_ready(self, info: ModelInfo) -> None:
        """A model is loaded: it may refuse some."""
        self.setup.info = info
        self._offer()

    def models_changed(self, entries: Sequence[ModelEntry]) -> None:
        """These can be compared."""
        self.setup.entries = entries
        self._offer()

    def side_runs_changed(self, on: bool) -> None:
        """Measuring begins or ends, for this view or for another."""
        self.comparing.set_measuring(on)
        self._draw()

    def side_runs_progressed(self, progress: MeasurementProgress) -> None:
        """How far it has come."""
        self.progress.show_progress(progress)

    def side_run_finished(self, run: Run) -> None:
        """A run beside the shown one has ended; it may be one of these."""
        if self.comparing.add_result(run):
            self._draw()

    def saved_view_state(self) -> object:
        """What has been compared, with whom, and which comparison is seen."""
        return self.comparing.comparisons, self._base, self.kind.value

    def restore_view_state(self, state: Any) -> None:
        """Results that took their time are not to be made again."""
        if state is not None:
            self.comparing.comparisons, self._base, kind = state
            self.kind.set_value(kind)
            self._deferred_offer.schedule()

    def export_table(self) -> Table:
        """The comparison's exact figures."""
        rows = comparison_rows(self.comparison, self.setup.unavailable)
        return rows if len(rows) > 1 else ()

    def compare_with(self, run: Run) -> None:
        """Hold a run that is kept elsewhere beside the shown one; while another comparison goes on, only offer it."""
        base = self._base = self._base or run
        for each in (base, run):
            self.setup.add_run(each)
        self.setup.choose_runs(base, run)
        self.kind.set_value(RUNS)
        self._offer()
        if not self.shows_side_runs:
            self.compare_or_stop()

    # What the reader does

    @Slot()
    def compare_or_stop(self) -> None:
        """Run everything that is chosen, one after another; while that goes on, stop it and keep what is done."""
        if self.shows_side_runs:
            self.signals.stopRequested.emit()
            return
        comparison = self.setup.comparison()
        if self.comparing.is_measuring or not comparison.entries:
            return
        self.comparing.begin(self.kind.value, comparison, self.signals.sideRunsRequested.emit)
        self._draw()

    # Drawing

    @Slot()
    def _offer(self) -> None:
        if self._base is not None:
            self.setup.offer(self.kind.value, self._base)
        self._draw()

    def _draw(self) -> None:
        self._scroll.setVisible(self._base is not None)
        self._show_offer(is_waiting=False)
        self.outcome.show_comparison(self.comparison, self.kind.value, self._shown, self._base)
        self.progress.setVisible(self.shows_side_runs)
        self.head.show_state(self._base)
        self.update()
