"""The result of a comparison: the back button, the table, the texts and the charts."""

from __future__ import annotations

import html
from collections.abc import Sequence

from PySide6.QtCore import QObject, QSize, Qt, Signal, Slot
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QFrame, QGridLayout, QPushButton, QVBoxLayout, QWidget

from decodescope.app.state.comparison.results import Comparison, ComparisonEntry, DiffSpan
from decodescope.app.state.run import Run
from decodescope.app.theme.theme import Theme
from decodescope.app.theme.themed import Themed
from decodescope.app.views.base import ViewSignals
from decodescope.app.views.compare.charts import ChartGrid
from decodescope.app.views.compare.comparison_kinds import CACHES, REFERENCE_MARK, entry_summary
from decodescope.app.views.compare.plots import (
    CACHE_COLUMN_PRIORITY,
    TEXT_COLUMN_PRIORITY,
    cache_plots,
    strategy_plots,
    sweep_plots,
)
from decodescope.app.views.compare.results import ResultTable
from decodescope.app.widgets.building import arrange, set_up
from decodescope.app.widgets.flow_layout import FlowRow, clear_layout
from decodescope.app.widgets.plain_text import PlainLabel, RichLabel, caption, tooltip
from decodescope.app.widgets.plots import TitledPlot
from decodescope.core import strategies
from decodescope.resources.language import tr, trc

MAX_TEXTS = 12
"""Maximum number of texts shown side by side; the table lists all."""
_TEXT_WIDTH, _MIN_WIDTH = 190, 130
MISSING_MARK = "‸"
"""Marks words that only the reference contains."""


class TextCards(Themed, QWidget):
    """Cards of the compared texts. Signals: `referenceWanted(ComparisonEntry)` makes that entry the reference;
    `entryPicked(ComparisonEntry)` shows that run.
    """

    referenceWanted = Signal(object)
    entryPicked = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._grid = arrange(QGridLayout(self), margins=0)
        self.cards: list[ComparedTextCard] = []

    def restyle(self, theme: Theme) -> None:
        self._grid.setSpacing(theme.px(16))

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Fit as many columns as the width allows."""
        super().resizeEvent(event)
        self._arrange()

    def _arrange(self) -> None:
        column_count = max(1, min(len(self.cards), self.width() // self._theme.px(_TEXT_WIDTH)))
        for number, card in enumerate(self.cards):
            self._grid.addWidget(card, number // column_count, number % column_count)
            card.show()  # the layout would show it only later, too late for a picture
        for number in range(max(self._grid.columnCount(), column_count)):
            self._grid.setColumnStretch(number, 1 if number < column_count else 0)

    def minimumSizeHint(self) -> QSize:
        """Return the minimum width of one text."""
        return QSize(self._theme.px(_MIN_WIDTH), super().minimumSizeHint().height())

    def show_texts(self, comparison: Comparison, entries: Sequence[ComparisonEntry]) -> None:
        """Show one card per entry."""
        clear_layout(self._grid)
        self.cards = [ComparedTextCard(comparison, entry, self._theme, self) for entry in entries]
        for card in self.cards:
            card.compare.clicked.connect(card.request_reference)
            card.open.clicked.connect(card.request_show)
        self._arrange()


class ComparedTextCard(QFrame):
    """One text card: its name, a summary of the differences, the text, and its buttons."""

    def __init__(self, comparison: Comparison, entry: ComparisonEntry, theme: Theme, cards: TextCards) -> None:
        super().__init__(cards)
        self.entry, self._cards = entry, cards
        is_reference = entry is comparison.reference
        title = entry.candidate.title
        self._column = arrange(QVBoxLayout(self), margins=0, spacing=theme.px(4))
        self._label(f"{REFERENCE_MARK} {title}" if is_reference else title, "heading")
        self._label(entry_summary(comparison, entry), "muted")
        self.text = RichLabel(diff_html(comparison.word_diff(entry), is_reference, theme), self)
        self.text.setWordWrap(True)
        self.text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.text.setAlignment(Qt.AlignmentFlag.AlignTop)
        self.text.setAccessibleName(tr("Text of {title}").format(title=title))
        self._column.addWidget(self.text, 1)
        self.compare = self._button(
            tr("Use as reference"), tr("Compare the others with {title}").format(title=title), not is_reference
        )
        self.open = self._button(tr("Show"), tr("Show {title} in the other views").format(title=title), True)
        row = FlowRow(self, 0)
        arrange(row.flow, self.compare, self.open)
        self._column.addWidget(row)

    def _label(self, text: str, role: str) -> None:
        label = set_up(PlainLabel(text, self, wordWrap=True), role=role)
        self._column.addWidget(label)

    def _button(self, text: str, help_text: str, is_visible: bool) -> QPushButton:
        button = set_up(
            QPushButton(caption(text), self), role="quiet", accessible_name=help_text, tooltip=tooltip(help_text)
        )
        button.setCursor(Qt.CursorShape.PointingHandCursor)
        button.setVisible(is_visible)
        return button

    def request_reference(self) -> None:
        """Emit `referenceWanted` for this entry."""
        self._cards.referenceWanted.emit(self.entry)

    def request_show(self) -> None:
        """Emit `entryPicked` for this entry."""
        self._cards.entryPicked.emit(self.entry)


def diff_html(spans: Sequence[DiffSpan], is_reference: bool, theme: Theme) -> str:
    """Return the text as rich text: words shared with the reference are muted, its own words are underlined and tinted,
    and a caret marks words that only the reference has. The reference itself is unformatted.
    """
    style = f"font-size: {theme.px(13)}px; line-height: 140%;"
    if is_reference:
        return f'<p style="{style}">{_escaped("".join(span.text for span in spans))}</p>'
    return f'<p style="{style}">{"".join(_diff_span_html(spans, n, theme) for n in range(len(spans)))}</p>'


def _diff_span_html(spans: Sequence[DiffSpan], index: int, theme: Theme) -> str:
    span = spans[index]
    if span.kind == "same":
        return f'<span style="color: {theme.muted};">{_escaped(span.text)}</span>'
    if span.kind == "missing":
        replaced = index + 1 < len(spans) and spans[index + 1].kind == "own"
        return "" if replaced else f'<span style="color: {theme.refused};">{MISSING_MARK}</span>'
    own = span.text.lstrip()
    before = span.text[: len(span.text) - len(own)]
    return (
        f'{_escaped(before)}<span style="background: {theme.selection}; color: {theme.text}; '
        f'text-decoration: underline;">{_escaped(own)}</span>'
    )


def _escaped(text: str) -> str:
    return html.escape(text, quote=False).replace("\n", "<br>")


def displayed_entries(comparison: Comparison) -> list[ComparisonEntry]:
    """Return the entries whose texts are shown, at most `MAX_TEXTS`: all entries, or those of the first seed in a large
    sweep. The reference is always included.
    """
    entries = [entry for entry, _ in comparison.results]
    sweep, reference = comparison.sweep, comparison.reference
    if sweep is not None and len(entries) > MAX_TEXTS:
        entries = [entry for entry in entries if entry.candidate.request.seed == sweep.seeds[0]]
    shown = entries[:MAX_TEXTS]
    if reference is not None and reference not in shown:
        shown = [reference, *shown[: MAX_TEXTS - 1]]
    return shown


class BackToBaseRow(Themed, QWidget):
    """A line with a button; hidden while the other views show the base run of the comparison."""

    clicked = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._words = set_up(PlainLabel(self, wordWrap=True), role="muted")
        self.button = set_up(QPushButton(trc("to the other run", "Back"), self), name="compareBack", role="quiet")
        self.button.setCursor(Qt.CursorShape.PointingHandCursor)
        self.button.clicked.connect(self.clicked)
        row = QBoxLayout(QBoxLayout.Direction.LeftToRight, self)
        row.setContentsMargins(0, 0, 0, 0)
        arrange(row, (self._words, 1), self.button)

    def restyle(self, theme: Theme) -> None:
        self.button.setFont(theme.font(12, 500))

    def show_run(self, shown: ComparisonEntry | None, base: Run | None) -> None:
        """Update the line; `shown` is the result in the other views, if any; `base` is the run that the button returns
        to.
        """
        self.setVisible(shown is not None and base is not None and shown.result is not base)
        if shown is not None and base is not None:
            self._words.setText(tr("The other views show “{title}”.").format(title=shown.candidate.title))
            strategy = strategies.registry.get(
                base.request.strategy
            )  # the strategy of a recorded run may not exist here
            title = tr(strategy.title) if strategy is not None else base.request.strategy
            self.button.setText(caption(tr("Back to {title}, seed {seed}").format(title=title, seed=base.request.seed)))


class ComparisonResult(QObject):
    """The result of a comparison: charts, table and texts, all in `column`. Picking a result, or going back to the base
    run, is requested through `signals`.
    """

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

    def show_comparison(self, comparison: Comparison, kind: str, shown: Run | None, base: Run | None) -> None:
        """Show a comparison; `shown` is the run of the other views, `base` the run that was compared."""
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
        """Place the charts first for a sweep, otherwise after the texts."""
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
