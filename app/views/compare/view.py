"""The compare view: runs side by side, by cache, strategy, seed, model, swept setting, or existing runs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from PySide6.QtCore import QObject, Qt, QTimer, Slot
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QProgressBar, QPushButton, QVBoxLayout, QWidget

from decodescope.app.session.side_runs import MeasurementProgress
from decodescope.app.state.comparison.results import Comparison, comparison_rows
from decodescope.app.state.empty_view import AS_SET
from decodescope.app.state.run import Run
from decodescope.app.state.worker_messages import ModelInfo
from decodescope.app.theme.theme import Theme
from decodescope.app.theme.themed import Themed
from decodescope.app.views.base import Table
from decodescope.app.views.compare.comparison_kinds import (
    KINDS,
    RUNS,
    STRATEGIES,
    SWEEP,
    TEMPERATURES,
    ComparisonStore,
    kind_description,
    plan_text,
    progress_text,
)
from decodescope.app.views.compare.comparison_result import ComparisonResult
from decodescope.app.views.compare.setup import CompareSetup
from decodescope.app.views.shared.empty_page import FillButton, ScrolledView
from decodescope.app.widgets.building import STRETCH, arrange, set_up
from decodescope.app.widgets.buttons import SegmentedControl
from decodescope.app.widgets.plain_text import PlainLabel, tooltip
from decodescope.app.widgets.screen import WorkWhenVisible
from decodescope.core import ModelEntry
from decodescope.core.events import Event
from decodescope.resources.language import join_sentences, mark, start_sentence, tr


class CompareHead(QObject):
    """`top` contains the choice and the button; `setup` and `comparing` determine what the button does."""

    def __init__(self, page: QWidget, comparing: ComparisonStore) -> None:
        super().__init__(page)
        self._comparing = comparing
        self._base: Run | None = None
        kinds = [(kind, tr(title)) for kind, title in KINDS]
        self.kind = SegmentedControl(kinds, tr("What to compare"), page, wraps=True)
        self.button = set_up(QPushButton(tr("Compare"), page), name="compareButton", role="primary")
        self.button.setCursor(Qt.CursorShape.PointingHandCursor)
        self.description = set_up(PlainLabel(page, wordWrap=True), role="muted")
        self.setup = CompareSetup(page)
        self.top = QBoxLayout(QBoxLayout.Direction.LeftToRight)
        arrange(self.top, (self.kind, 1), (self.button, 0, Qt.AlignmentFlag.AlignTop))
        self.setup.changed.connect(self._update_button)

    def set_wide(self, is_wide: bool) -> None:
        """Put the button below the choice in a narrow view."""
        self.top.setDirection(QBoxLayout.Direction.LeftToRight if is_wide else QBoxLayout.Direction.TopToBottom)

    def show_state(self, base: Run | None) -> None:
        """Update the description and the button for a comparison of `base`."""
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
    return tr("{sentence}.").format(sentence=start_sentence(words))


class FirstComparisonStarter(QObject):
    """Compares the expected run when it has ended, for example that started by `offer`."""

    def __init__(self, offer: FillButton, head: CompareHead) -> None:
        super().__init__(head)
        self._head = head
        self._is_waiting = False
        self._run: Run | None = None
        self._kind = STRATEGIES
        offer.fillRequested.connect(partial(self.expect, STRATEGIES))

    def expect(self, kind: str) -> None:
        """Compare the next run that ends by `kind`."""
        self._kind, self._is_waiting = kind, True

    def on_run_ended(self, run: Run) -> None:
        """Start the comparison if the run that ended is the expected one."""
        if self._is_waiting:
            self._is_waiting, self._run = False, run
            QTimer.singleShot(0, self, self._begin)

    @Slot()
    def _begin(self) -> None:
        run, self._run = self._run, None
        if run is not None and run.finished is not None:
            self.begin(self._kind)

    def begin(self, kind: str) -> None:
        """Choose the kind and press the button."""
        self._head.kind.set_value(kind)
        self._head.kind.chosen.emit(kind)
        self._head.button.click()


class ProgressRow(Themed, QWidget):
    """A progress bar with a text below."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.bar, self.words = QProgressBar(self, textVisible=False), PlainLabel(self)
        self.bar.setObjectName("compareProgress")
        self.bar.setAccessibleName(tr("Completed runs"))
        self.words.setProperty("role", "muted")
        self._column = arrange(QVBoxLayout(self), self.bar, self.words, margins=0)

    def restyle(self, theme: Theme) -> None:
        self._column.setSpacing(theme.px(4))

    def show_progress(self, progress: MeasurementProgress) -> None:
        """Show the progress."""
        self.bar.setMaximum(max(1, progress.total))
        self.bar.setValue(progress.done)
        self.words.setText(progress_text(progress))


_SPACING = 12
"""Spacing of the parts in pixels at 100 %."""
_WIDE_FROM = 480
"""Minimum width, in pixels at 100 %, for the button beside the choice."""
_TITLE = mark("The same request, side by side")
_HINT = mark("Run something first. Then repeat it with other caches, strategies, seeds, models or settings.")


class CompareView(ScrolledView):
    """Choice, table, texts and charts of a comparison; its runs are executed without replacing the shown run."""

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
        arrange(
            self._column, self.head.top, self.head.description, self.setup, self.progress, self.outcome.column, STRETCH
        )
        self.setFocusProxy(self.button)
        self.kind.chosen.connect(self._offer)
        self.setup.samplesRequested.connect(self.signals.samplesRequested)
        self.button.clicked.connect(self.compare_or_stop)
        self.set_theme(self._theme)
        self._offer()

    # Called by the shell

    @property
    def is_empty(self) -> bool:
        """Whether nothing has been run yet."""
        return self._base is None

    @property
    def comparison(self) -> Comparison:
        """The comparison of the chosen kind."""
        return self.comparing.comparisons[self.kind.value]

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Move the button below the choice in a narrow view."""
        super().resizeEvent(event)
        self.head.set_wide(self.width() >= self._theme.px(_WIDE_FROM))

    def restyle(self, theme: Theme) -> None:
        self._set_spacing(theme, _SPACING)
        self.head.set_wide(self.width() >= theme.px(_WIDE_FROM))
        self.outcome.column.setSpacing(theme.px(_SPACING))
        self._draw()

    def show_run(self, run: Run | None) -> None:
        """Use this run as the base of the next comparison; earlier results stay until then. A run that is one of the
        results is only highlighted.
        """
        self._shown = run
        if self.comparing.contains(run):
            self._draw()
            return
        self._base = run
        if run is not None:
            self.setup.add_run(run)
        self._deferred_offer.schedule()

    def events_arrived(self, run: Run, events: Sequence[Event]) -> None:
        """Allow a comparison once the shown run has ended."""
        if run is not self._shown:
            self.show_run(run)
        elif run.outcome is not None:
            self._deferred_offer.schedule()
            self._first_comparison.on_run_ended(run)

    @property
    def shows_side_runs(self) -> bool:
        """Whether measured runs, including failed ones, are added to this view."""
        return self.comparing.active is not None

    def model_ready(self, info: ModelInfo) -> None:
        """Update the candidates for the loaded model."""
        self.setup.info = info
        self._offer()

    def models_changed(self, entries: Sequence[ModelEntry]) -> None:
        """Update the models that can be compared."""
        self.setup.entries = entries
        self._offer()

    def side_runs_changed(self, on: bool) -> None:
        """Update the state when measuring starts or ends, in this view or another."""
        self.comparing.set_measuring(on)
        self._draw()

    def side_runs_progressed(self, progress: MeasurementProgress) -> None:
        """Show the progress."""
        self.progress.show_progress(progress)

    def side_run_finished(self, run: Run) -> None:
        """Add a measured run if it belongs to the comparison."""
        if self.comparing.add_result(run):
            self._draw()

    def saved_view_state(self) -> object:
        """Return the comparisons, the base run and the chosen kind."""
        return self.comparing.comparisons, self._base, self.kind.value

    def restore_view_state(self, state: Any) -> None:
        """Restore the comparisons, so that slow results are not lost."""
        if state is not None:
            self.comparing.comparisons, self._base, kind = state
            self.kind.set_value(kind)
            self._deferred_offer.schedule()

    def export_table(self) -> Table:
        """Return the comparison's exact metrics as a table."""
        rows = comparison_rows(self.comparison, self.setup.unavailable)
        return rows if len(rows) > 1 else ()

    def compare_with(self, run: Run) -> None:
        """Compare a stored run with the shown one; while another comparison is running, only offer it."""
        base = self._base = self._base or run
        for each in (base, run):
            self.setup.add_run(each)
        self.setup.choose_runs(base, run)
        self.kind.set_value(RUNS)
        self._offer()
        if not self.shows_side_runs:
            self.compare_or_stop()

    # User actions

    def compare_temperatures(self) -> None:
        """Compare the shown run at two temperatures, after running the prompt if nothing is shown."""
        if self.shows_side_runs:
            return
        if self._base is None:
            self._first_comparison.expect(TEMPERATURES)
            self.signals.fillRequested.emit(AS_SET)
        elif self._base.outcome is None:
            self._first_comparison.expect(TEMPERATURES)
        else:
            self._first_comparison.begin(TEMPERATURES)

    @Slot()
    def compare_or_stop(self) -> None:
        """Run all chosen candidates one after another, or stop the running comparison and keep its results."""
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
