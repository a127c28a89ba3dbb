"""The compare view: the same request on several caches, or with several strategies, side by side."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QLabel, QPushButton, QWidget

from app.state.requests import ModelInfo
from app.state.run import Run
from app.theme.theme import Theme
from app.views.base import Table
from app.views.compare.charts import Charts
from app.views.compare.choices import Choices
from app.views.compare.comparison import CACHES, STRATEGIES, Candidate, Comparison, Entry, candidates, table
from app.views.compare.plots import of_caches, of_strategies
from app.views.compare.results import ResultTable
from app.views.compare.texts import TextCards
from app.views.shared.scrolled_page import ScrolledPage
from app.widgets.segmented import Segmented
from core.events import Event

_TITLE = "The same request, side by side"
_HINT = "Run something first. Then one button runs it again on every cache, or with every strategy, and compares."
_WORDS = {
    CACHES: "The prompt, seed and settings of the shown run, once on each cache. Dynamic is what they are measured by.",
    STRATEGIES: "The prompt and seed of the shown run, once with each strategy at its own defaults.",
}


class CompareView(ScrolledPage):
    """Choice, table and charts of a comparison; what is compared runs beside the shown run."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("compareView", _TITLE, _HINT, parent)
        self._run: Run | None = None
        self._info: ModelInfo | None = None
        self._measuring = False
        self.comparisons = {CACHES: Comparison(), STRATEGIES: Comparison()}
        self._active: str | None = None
        self.kind = Segmented(((CACHES, "Caches"), (STRATEGIES, "Strategies")), "What to compare", self._page)
        self.button = QPushButton("Compare", self._page)
        self.button.setObjectName("compareButton")
        self._words = QLabel(self._page, wordWrap=True)
        self.choices, self.results = Choices(self._page), ResultTable(self._page)
        self.charts, self.texts = Charts(self._page), TextCards(self._page)
        self._lay_out()
        self.kind.chosen.connect(self._on_kind)
        self.choices.changed.connect(self._draw)
        self.button.clicked.connect(self.compare)
        self.set_theme(self._theme)
        self._offer()

    def _lay_out(self) -> None:
        self.setAccessibleName("Compare")
        self.button.setProperty("role", "primary")
        self.button.setCursor(Qt.CursorShape.PointingHandCursor)
        self._words.setProperty("role", "muted")
        self._top = QBoxLayout(QBoxLayout.Direction.LeftToRight)
        self._top.addWidget(self.kind)
        self._top.addStretch(1)
        self._top.addWidget(self.button)
        self._column.addLayout(self._top)
        for part in (self._words, self.choices, self.results, self.texts, self.charts):
            self._column.addWidget(part)
        self._column.addStretch(1)
        self.setFocusProxy(self.button)

    # What the shell calls

    @property
    def is_empty(self) -> bool:
        """Whether nothing has been run yet."""
        return self._run is None

    def resizeEvent(self, event: QResizeEvent) -> None:
        """The button below the choice where it gets narrow."""
        super().resizeEvent(event)
        self._turn()

    def _turn(self) -> None:
        margins, gap = self._column.contentsMargins(), self._theme.px(24)
        room = self.width() - margins.left() - margins.right() - self._scroll.verticalScrollBar().sizeHint().width()
        beside = self.kind.sizeHint().width() + self.button.sizeHint().width() + gap <= room
        self._top.setDirection(QBoxLayout.Direction.LeftToRight if beside else QBoxLayout.Direction.TopToBottom)

    def set_theme(self, theme: Theme) -> None:
        """Take other colours and sizes at once."""
        self._set_spacing(theme, 12)
        self._turn()
        for part in (self.results, self.charts, self.texts):
            part.set_theme(theme)
        self._draw()

    def show_run(self, run: Run | None) -> None:
        """Compare what this run asked for; results of another request stay until the next comparison."""
        self._run = run
        self._offer()

    def events_arrived(self, run: Run, events: Sequence[Event]) -> None:
        """A comparison can begin once the shown run has ended."""
        if run is not self._run or run.outcome is not None:
            self._run = run
            self._enable()

    @property
    def is_comparing(self) -> bool:
        """Whether what is measured now becomes a row here, its failure too."""
        return self._active is not None

    @Slot(object)
    def model_ready(self, info: ModelInfo) -> None:
        """A model is loaded: it may refuse some."""
        self._info = info
        self._offer()

    @Slot(bool)
    def measuring_changed(self, on: bool) -> None:
        """Measuring begins or ends, for this view or for another."""
        self._measuring = on
        if not on and self._active is not None:
            self.comparisons[self._active].end()
            self._active = None
        self._draw()

    @Slot(object)
    def measured(self, run: Run) -> None:
        """A run beside the shown one has ended; it may be one of these."""
        if self._active is not None and self.comparisons[self._active].take(run):
            self._draw()

    # What the reader does

    @Slot()
    def compare(self) -> None:
        """Run everything that is chosen, one after another."""
        chosen = self.choices.chosen
        if self._measuring or not chosen:
            return
        self._active = self.kind.value
        self.comparisons[self._active] = Comparison([Entry(candidate) for candidate in chosen])
        self.comparisons[self._active].begin()
        self.signals.measureWanted.emit([candidate.request for candidate in chosen])
        if not self._measuring:  # another run is under way
            self.comparisons[self.kind.value].end()
            self._active = None
        self._draw()

    @Slot()
    def _on_kind(self) -> None:
        self._offer()

    # Drawing

    def _offer(self) -> None:
        if self._run is not None:
            info = self._info if self._info is not None and self._info.name == self._run.request.model else None
            self.choices.show_candidates(candidates(self.kind.value, self._run.request, info))
        self._draw()

    @Slot()
    def _draw(self) -> None:
        comparison = self.comparisons[self.kind.value]
        self._scroll.setVisible(self._run is not None)
        self._words.setText(_WORDS[self.kind.value])
        refused: list[Candidate] = self.choices.refused
        self.results.show_rows(comparison, refused)
        self.results.setVisible(self.results.rowCount() > 0)
        is_caches = self.kind.value == CACHES
        self.texts.setVisible(not is_caches and bool(comparison.runs))
        if not is_caches:
            self.texts.show_texts(comparison)
        self.charts.setVisible(bool(comparison.runs))
        self.charts.show_figures(of_caches(comparison) if is_caches else of_strategies(comparison))
        self._enable()
        self.update()

    def _enable(self) -> None:
        run, count = self._run, len(self.choices.chosen) if self._run is not None else 0
        self.button.setEnabled(run is not None and run.outcome is not None and not self._measuring and count > 1)
        self.button.setText(self._face(count))

    def _face(self, count: int) -> str:
        if self._measuring and self._active is not None:
            entries = self.comparisons[self._active].entries
            ended = sum(entry.state not in ("waiting", "running") for entry in entries)
            return f"Measuring {min(ended + 1, len(entries))} of {len(entries)}…"
        return f"Compare {count}" if count > 1 else "Compare"

    def figures(self) -> Table:
        """The comparison's exact figures."""
        return table(self.comparisons[self.kind.value], self.choices.refused)
