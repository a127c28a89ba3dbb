"""What came of a comparison, part below part: the way back, the table, the texts and the charts."""

from __future__ import annotations

from PySide6.QtCore import QObject, Slot
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.state.comparison.results import Comparison, ComparisonEntry
from app.state.run import Run
from app.theme.theme import Theme
from app.views.base import ViewSignals
from app.views.compare.charts import ChartGrid
from app.views.compare.columns import CACHE_COLUMN_PRIORITY, TEXT_COLUMN_PRIORITY
from app.views.compare.compared_texts import TextCards, displayed_entries
from app.views.compare.comparison_kinds import CACHES
from app.views.compare.plots import cache_plots, strategy_plots, sweep_plots
from app.views.compare.results import ResultTable
from app.views.compare.way_back import BackToBaseRow
from app.widgets.plots import TitledPlot


class ComparisonResult(QObject):
    """`column` holds the parts. A result that is picked, and the run to go back to, are asked for by `signals`."""

    def __init__(self, page: QWidget, signals: ViewSignals) -> None:
        super().__init__(page)
        self._signals = signals
        self._comparison, self._kind = Comparison(), CACHES
        self._shown: Run | None = None
        self._base: Run | None = None
        self.way_back, self.results = BackToBaseRow(page), ResultTable(page)
        self.texts, self.charts = TextCards(page), ChartGrid(page)
        self._parts = (self.way_back, self.results, self.texts, self.charts)
        self.column = QVBoxLayout()
        for part in self._parts:
            self.column.addWidget(part)
        self.results.entryPicked.connect(self._on_picked)
        self.texts.entryPicked.connect(self._on_picked)
        self.texts.referenceWanted.connect(self._on_reference)
        self.way_back.clicked.connect(self._on_back)

    def set_theme(self, theme: Theme, spacing: int) -> None:
        """Other colours and sizes; `spacing`: pixels at 100 % between the parts."""
        self.column.setSpacing(theme.px(spacing))
        for part in self._parts:
            part.set_theme(theme)

    def show_comparison(self, comparison: Comparison, kind: str, shown: Run | None, base: Run | None) -> None:
        """`shown` is the run of the other views, `base` the one that was compared."""
        self._comparison, self._kind, self._shown, self._base = comparison, kind, shown, base
        self._draw()

    def _draw(self) -> None:
        comparison, is_caches = self._comparison, self._kind == CACHES
        shown = comparison.entry_of(self._shown)
        self.way_back.show_run(shown, self._base)
        self.results.show_rows(comparison, shown, CACHE_COLUMN_PRIORITY if is_caches else TEXT_COLUMN_PRIORITY)
        self.results.setVisible(bool(comparison.entries))
        self.texts.show_texts(comparison, [] if is_caches else displayed_entries(comparison))
        self.texts.setVisible(bool(self.texts.cards))
        self.charts.setVisible(bool(comparison.results))
        self.charts.show_figures(_figures(comparison, self._kind))
        self._place_charts(before_table=comparison.sweep is not None)

    def _place_charts(self, before_table: bool) -> None:
        """What a sweep is made for comes first; elsewhere the texts do."""
        self.column.removeWidget(self.charts)
        texts = self.column.indexOf(self.texts) + 1
        self.column.insertWidget(self.column.indexOf(self.results) if before_table else texts, self.charts)

    @Slot(object)
    def _on_picked(self, entry: ComparisonEntry) -> None:
        if entry.result is not None and entry.result is not self._shown:
            self._signals.runActivated.emit(entry.result)

    @Slot()
    def _on_back(self) -> None:
        if self._base is not None:
            self._signals.runActivated.emit(self._base)

    @Slot(object)
    def _on_reference(self, entry: ComparisonEntry) -> None:
        self._comparison.reference_key = entry.candidate.key
        self._draw()


def _figures(comparison: Comparison, kind: str) -> list[TitledPlot]:
    if comparison.sweep is not None:
        return sweep_plots(comparison, comparison.sweep)
    return cache_plots(comparison) if kind == CACHES else strategy_plots(comparison)
