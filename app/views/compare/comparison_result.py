"""What came of a comparison, part below part: the way back, the table, the texts and the charts."""

from __future__ import annotations

from PySide6.QtCore import QObject, Slot
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.state.comparison.results import Comparison, ComparisonEntry
from app.state.run import Run
from app.theme.theme import Theme
from app.views.base import ViewSignals
from app.views.compare.charts import Charts
from app.views.compare.columns import OF_CACHES, OF_TEXTS
from app.views.compare.compared_texts import TextCards, side_by_side
from app.views.compare.comparison_kinds import CACHES
from app.views.compare.plots import of_caches, of_strategies, of_sweep
from app.views.compare.results import ResultTable
from app.views.compare.way_back import WayBack
from app.widgets.plots import Titled


class ComparisonResult(QObject):
    """`column` holds the parts. A result that is picked, and the run to go back to, are asked for by `signals`."""

    def __init__(self, page: QWidget, signals: ViewSignals) -> None:
        super().__init__(page)
        self._signals = signals
        self._comparison, self._kind = Comparison(), CACHES
        self._shown: Run | None = None
        self._base: Run | None = None
        self.way_back, self.results = WayBack(page), ResultTable(page)
        self.texts, self.charts = TextCards(page), Charts(page)
        self._parts = (self.way_back, self.results, self.texts, self.charts)
        self.column = QVBoxLayout()
        for part in self._parts:
            self.column.addWidget(part)
        self.results.entryPicked.connect(self._on_picked)
        self.texts.entryPicked.connect(self._on_picked)
        self.texts.referenceWanted.connect(self._on_reference)
        self.way_back.wanted.connect(self._on_back)

    def set_theme(self, theme: Theme, between: int) -> None:
        """Other colours and sizes; `between`: pixels at 100 % between the parts."""
        self.column.setSpacing(theme.px(between))
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
        self.results.show_rows(comparison, shown, OF_CACHES if is_caches else OF_TEXTS)
        self.results.setVisible(bool(comparison.entries))
        self.texts.show_texts(comparison, [] if is_caches else side_by_side(comparison))
        self.texts.setVisible(bool(self.texts.cards))
        self.charts.setVisible(bool(comparison.results))
        self.charts.show_figures(_figures(comparison, self._kind))
        self._place_charts(first=comparison.sweep is not None)

    def _place_charts(self, first: bool) -> None:
        """What a sweep is made for comes first; elsewhere the texts do."""
        self.column.removeWidget(self.charts)
        texts = self.column.indexOf(self.texts) + 1
        self.column.insertWidget(self.column.indexOf(self.results) if first else texts, self.charts)

    @Slot(object)
    def _on_picked(self, entry: ComparisonEntry) -> None:
        if entry.result is not None and entry.result is not self._shown:
            self._signals.runWanted.emit(entry.result)

    @Slot()
    def _on_back(self) -> None:
        if self._base is not None:
            self._signals.runWanted.emit(self._base)

    @Slot(object)
    def _on_reference(self, entry: ComparisonEntry) -> None:
        self._comparison.chosen = entry.candidate.key
        self._draw()


def _figures(comparison: Comparison, kind: str) -> list[Titled]:
    if comparison.sweep is not None:
        return of_sweep(comparison, comparison.sweep)
    return of_caches(comparison) if kind == CACHES else of_strategies(comparison)
