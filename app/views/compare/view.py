"""The compare view: a set of runs side by side, by cache, strategy, seed, model, a swept setting, or as they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from PySide6.QtCore import Qt, QTimer, Slot
from PySide6.QtGui import QResizeEvent, QShowEvent
from PySide6.QtWidgets import QBoxLayout, QLabel, QPushButton, QWidget

from app.session.measuring import Progress
from app.state.comparison.results import Comparison, Entry
from app.state.comparison.table import table
from app.state.requests import ModelInfo
from app.state.run import Run
from app.theme.theme import Theme
from app.views.base import Table
from app.views.compare.charts import Charts
from app.views.compare.columns import OF_CACHES, OF_TEXTS
from app.views.compare.kinds import CACHES, KINDS, RUNS, STRATEGIES, SWEEP, WORDS
from app.views.compare.plots import of_caches, of_strategies, of_sweep
from app.views.compare.progress import ProgressRow
from app.views.compare.results import ResultTable
from app.views.compare.setup import CompareSetup
from app.views.compare.texts import TextCards, side_by_side
from app.views.compare.way_back import WayBack
from app.views.compare.wording import plan_words
from app.views.shared.scrolled_page import ScrolledPage
from app.widgets.segmented import Segmented
from core import ModelEntry
from core.events import Event
from resources.language import mark, sentences, tr

_TITLE = mark("The same request, side by side")
_HINT = mark(
    "Run something first. Then it can be run again on other caches, with other strategies, seeds, models, settings."
)


class CompareView(ScrolledPage):
    """Choice, table, texts and charts of a comparison; what is compared runs beside the shown run."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("compareView", tr(_TITLE), tr(_HINT), tr("Run it, then compare strategies"), parent)
        self._base: Run | None = None
        self._shown: Run | None = None
        self._measuring = self._is_stale = self._goes_on = False
        self.comparisons = {kind: Comparison() for kind, _ in KINDS}
        self._active: str | None = None
        kinds = [(kind, tr(title)) for kind, title in KINDS]
        self.kind = Segmented(kinds, tr("What to compare"), self._page, breaks=True)
        self.button = QPushButton(tr("Compare"), self._page)
        self.button.setObjectName("compareButton")
        self._words = QLabel(self._page, wordWrap=True)
        self.setup, self.progress = CompareSetup(self._page), ProgressRow(self._page)
        self.way_back = WayBack(self._page)
        self.results, self.texts = ResultTable(self._page), TextCards(self._page)
        self.charts = Charts(self._page)
        self._lay_out()
        self._connect()
        self.set_theme(self._theme)
        self._offer()

    def _lay_out(self) -> None:
        self.setAccessibleName(tr("Compare"))
        self.button.setProperty("role", "primary")
        self.button.setCursor(Qt.CursorShape.PointingHandCursor)
        self._words.setProperty("role", "muted")
        self._top = QBoxLayout(QBoxLayout.Direction.LeftToRight)
        self._top.addWidget(self.kind, 1)
        self._top.addWidget(self.button, 0, Qt.AlignmentFlag.AlignTop)
        self._column.addLayout(self._top)
        for part in (self._words, self.setup, self.progress, self.way_back, self.results, self.texts, self.charts):
            self._column.addWidget(part)
        self._column.addStretch(1)
        self.setFocusProxy(self.button)

    def _connect(self) -> None:
        self.kind.chosen.connect(self._on_kind)
        self.setup.changed.connect(self._enable)
        self.setup.chorusWanted.connect(self.signals.chorusWanted)
        self.button.clicked.connect(self.compare_or_stop)
        self.results.entryPicked.connect(self._on_picked)
        self.texts.entryPicked.connect(self._on_picked)
        self.texts.referenceWanted.connect(self._on_reference)
        self.way_back.wanted.connect(self._on_back)
        self.offer.wanted.connect(self._go_on)

    # What the shell calls

    @property
    def is_empty(self) -> bool:
        """Whether nothing has been run yet."""
        return self._base is None

    @property
    def comparison(self) -> Comparison:
        """The one that is seen."""
        return self.comparisons[self.kind.value]

    def resizeEvent(self, event: QResizeEvent) -> None:
        """The button below the choice where it gets narrow."""
        super().resizeEvent(event)
        self._turn()

    def _turn(self) -> None:
        beside = self.width() >= self._theme.px(480)
        self._top.setDirection(QBoxLayout.Direction.LeftToRight if beside else QBoxLayout.Direction.TopToBottom)

    def set_theme(self, theme: Theme) -> None:
        """Take other colours and sizes at once."""
        self._set_spacing(theme, 12)
        self._turn()
        for part in (self.setup, self.progress, self.way_back, self.results, self.charts, self.texts):
            part.set_theme(theme)
        self._draw()

    def show_run(self, run: Run | None) -> None:
        """Compare what this run asked for; results of another request stay until the next comparison. A run that is
        one of the results is only marked."""
        self._shown = run
        if any(comparison.entry_of(run) is not None for comparison in self.comparisons.values()):
            self._draw()
            return
        self._base = run
        if run is not None:
            self.setup.keep(run)
        self._offer_once_seen()

    def events_arrived(self, run: Run, events: Sequence[Event]) -> None:
        """A comparison can begin once the shown run has ended."""
        if run is not self._shown:
            self.show_run(run)
        elif run.outcome is not None:
            self._offer_once_seen()
            if self._goes_on:
                self._goes_on = False
                QTimer.singleShot(0, self, self._compare_strategies)

    @property
    def is_comparing(self) -> bool:
        """Whether what is measured now becomes a row here, its failure too."""
        return self._active is not None

    def model_ready(self, info: ModelInfo) -> None:
        """A model is loaded: it may refuse some."""
        self.setup.info = info
        self._offer()

    def models_listed(self, entries: Sequence[ModelEntry]) -> None:
        """These can be compared."""
        self.setup.entries = entries
        self._offer()

    def measuring_changed(self, on: bool) -> None:
        """Measuring begins or ends, for this view or for another."""
        self._measuring = on
        if not on and self._active is not None:
            self.comparisons[self._active].end()
            self._active = None
        self._draw()

    def measuring_progressed(self, progress: Progress) -> None:
        """How far it has come."""
        self.progress.show_progress(progress)

    def measured(self, run: Run) -> None:
        """A run beside the shown one has ended; it may be one of these."""
        if self._active is not None and self.comparisons[self._active].take(run):
            self._draw()

    def carried(self) -> object:
        """What has been compared, with whom, and which comparison is seen."""
        return self.comparisons, self._base, self.kind.value

    def carry_on(self, carried: Any) -> None:
        """Results that took their time are not to be made again."""
        if carried is not None:
            self.comparisons, self._base, kind = carried
            self.kind.set_value(kind)
            self._offer_once_seen()

    def figures(self) -> Table:
        """The comparison's exact figures."""
        rows = table(self.comparison, self.setup.refused)
        return rows if len(rows) > 1 else ()

    def compare_with(self, run: Run) -> None:
        """Hold a run that is kept elsewhere beside the shown one; while another comparison goes on, only offer it."""
        base = self._base = self._base or run
        for each in (base, run):
            self.setup.keep(each)
        self.setup.choose_runs(base, run)
        self.kind.set_value(RUNS)
        self._offer()
        if self._active is None:
            self.compare_or_stop()

    # What the reader does

    @Slot()
    def _go_on(self) -> None:
        """The run that is begun now is to be compared once it is there."""
        self._goes_on = True

    @Slot()
    def _compare_strategies(self) -> None:
        if self._shown is not None and self._shown.finished is not None:
            self.kind.set_value(STRATEGIES)
            self._offer()
            self.compare_or_stop()

    @Slot()
    def compare_or_stop(self) -> None:
        """Run everything that is chosen, one after another; while that goes on, stop it and keep what is done."""
        if self._active is not None:
            self.signals.stopWanted.emit()
            return
        comparison = self.setup.comparison()
        if self._measuring or not comparison.entries:
            return
        kind = self._active = self.kind.value
        self.comparisons[kind] = comparison
        requests = comparison.begin()
        self.signals.measureWanted.emit(requests)
        if not self._measuring:  # nothing was to be run, or another run is under way
            comparison.end()
            self._active = None
        self._draw()

    @Slot(object)
    def _on_picked(self, entry: Entry) -> None:
        if entry.result is not None and entry.result is not self._shown:
            self.signals.runWanted.emit(entry.result)

    @Slot()
    def _on_back(self) -> None:
        if self._base is not None:
            self.signals.runWanted.emit(self._base)

    @Slot(object)
    def _on_reference(self, entry: Entry) -> None:
        self.comparison.chosen = entry.candidate.key
        self._draw()

    @Slot()
    def _on_kind(self) -> None:
        self._offer()

    # Drawing

    def showEvent(self, event: QShowEvent) -> None:
        """Offer what was put off."""
        super().showEvent(event)
        if self._is_stale:
            self._offer()

    def _offer_once_seen(self) -> None:
        """Now, or when the view comes to the front: a run does not wait for what nobody sees."""
        self._is_stale = True
        if self.isVisible():
            self._offer()

    def _offer(self) -> None:
        self._is_stale = False
        if self._base is not None:
            self.setup.offer(self.kind.value, self._base)
        self._draw()

    def _draw(self) -> None:
        comparison, kind = self.comparison, self.kind.value
        self._scroll.setVisible(self._base is not None)
        self._show_offer(is_waiting=False)
        self._words.setText(WORDS[kind])
        is_caches = kind == CACHES
        shown = comparison.entry_of(self._shown)
        self.way_back.show_run(shown, self._base)
        self.results.show_rows(comparison, shown, OF_CACHES if is_caches else OF_TEXTS)
        self.results.setVisible(bool(comparison.entries))
        self.texts.show_texts(comparison, [] if is_caches else side_by_side(comparison))
        self.texts.setVisible(bool(self.texts.cards))
        self._draw_charts(comparison)
        self._enable()
        self.update()

    def _draw_charts(self, comparison: Comparison) -> None:
        if comparison.sweep is not None:
            figures = of_sweep(comparison, comparison.sweep)
        else:
            figures = of_caches(comparison) if self.kind.value == CACHES else of_strategies(comparison)
        self.charts.setVisible(bool(comparison.results))
        self.charts.show_figures(figures)
        self._place_charts(comparison.sweep is not None)

    def _place_charts(self, first: bool) -> None:
        """What a sweep is made for comes first; elsewhere the texts do."""
        self._column.removeWidget(self.charts)
        texts = self._column.indexOf(self.texts) + 1
        self._column.insertWidget(self._column.indexOf(self.results) if first else texts, self.charts)

    @Slot()
    def _enable(self) -> None:
        run, count, is_own = self._base, self.setup.count, self._active is not None
        self.progress.setVisible(is_own)
        ready = run is not None and run.outcome is not None and not self._measuring and count > 1
        self.button.setEnabled(is_own or ready)
        self.button.setText(
            tr("Stop") if is_own else tr("Compare {count}").format(count=count) if count > 1 else tr("Compare")
        )
        each = run.finished.metrics.seconds if run is not None and run.finished is not None else None
        to_run = 0 if self.kind.value == RUNS else count
        self.button.setToolTip("" if is_own or not to_run else plan_words(to_run, each))
        if self.kind.value == SWEEP or to_run:
            plan = _sentence(plan_words(to_run, each)) if to_run > 1 else ""
            self._words.setText(sentences(tr(WORDS[self.kind.value]), plan))


def _sentence(words: str) -> str:
    return tr("{sentence}.").format(sentence=f"{words[:1].upper()}{words[1:]}")
