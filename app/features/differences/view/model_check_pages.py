"""Pages that read a text with two models: near misses of a greedy text, and the rules for verifying drafts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QGuiApplication, QPaintEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHBoxLayout,
    QHeaderView,
    QPushButton,
    QTableWidget,
    QTableWidgetItem,
    QVBoxLayout,
    QWidget,
)

from decodescope.app.state.text_formats import to_csv
from decodescope.app.theme.theme import Theme
from decodescope.app.theme.themed import Themed
from decodescope.app.widgets.accessibility.accessible_widget import announce
from decodescope.app.widgets.building import arrange, set_up
from decodescope.app.widgets.flow_layout import FlowRow
from decodescope.app.widgets.inputs import ComboBox, SpinBox
from decodescope.app.widgets.labels import WrappedLabel, paint_empty_text
from decodescope.app.widgets.plain_text import PlainLabel, caption, tooltip
from decodescope.app.widgets.plots.plot_panel import PlotPanel
from decodescope.app.widgets.plots.plot_spec import PlotAxis, PlotLine, PlotSpec
from decodescope.core import caches, words
from decodescope.resources.language import join_sentences, mark, tr

if TYPE_CHECKING:
    from decodescope.core import DraftCheck, EngineCheck, NearMisses, RankGroup

WEIGHTS, CACHE, MODEL, ENGINE_CHOICE, HEAD = "weights:", "cache:", "model:", "engine:", "head:"
"""Beginnings of the names of changes, and of engines and heads among draft models."""
_PRECISIONS = ("int8", "int4", "bfloat16", "float16")
_NEAR_MISSES = mark(
    "Which words of the greedy text would another precision, cache or model write otherwise? They are predicted from "
    "the margin of each choice and the spread on a sampled text. Then the other side reads the text."
)
_DRAFTS = mark(
    "Does a rule for verifying drafts change the text? For every word, the distribution that each rule emits is "
    "computed exactly and compared with the model's own. Of an engine, only samples are known: its answers are drawn "
    "and tested until you stop."
)
_NOT_STARTED, _IN_PROGRESS = mark("No results yet. Press Start."), mark("The results will be listed here.")
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
_LINE_COLOURS = ("accent", "best", "danger", "thinking", "warning")


class CheckTable(Themed, QTableWidget):
    """A table of texts that cannot be edited; a sentence in their place while it is empty."""

    def __init__(self, name: str, title: str, columns: Sequence[str], numeric: Sequence[int], parent: QWidget) -> None:
        """`numeric`: the columns of numbers, which are aligned at the right."""
        super().__init__(0, len(columns), parent)
        self._numeric = frozenset(numeric)
        set_up(self, name=name, accessible_name=title)
        self.set_empty_text(tr(_NOT_STARTED))
        for column, text in enumerate(columns):
            item = QTableWidgetItem(text)
            if column in self._numeric:
                item.setTextAlignment(_RIGHT)
            self.setHorizontalHeaderItem(column, item)
        self.verticalHeader().hide()
        self.setShowGrid(False)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setTabKeyNavigation(False)
        head = self.horizontalHeader()
        head.setHighlightSections(False)
        head.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        head.setStretchLastSection(True)
        head.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)

    def show_rows(self, rows: Sequence[Sequence[str]]) -> None:
        """Show other rows."""
        self.setRowCount(len(rows))
        for place, row in enumerate(rows):
            for column, text in enumerate(row):
                item = QTableWidgetItem(text)
                if column in self._numeric:
                    item.setTextAlignment(_RIGHT)
                self.setItem(place, column, item)

    def set_empty_text(self, text: str) -> None:
        """Set the sentence that is shown while there are no rows."""
        self.setAccessibleDescription(text)
        self.viewport().update()

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if not self.rowCount():
            paint_empty_text(self, self._theme)

    def texts(self) -> list[list[str]]:
        """Return the shown texts, row by row."""
        model = self.model()
        columns = range(self.columnCount())
        return [[str(model.index(row, column).data()) for column in columns] for row in range(self.rowCount())]

    def restyle(self, theme: Theme) -> None:
        self.verticalHeader().setDefaultSectionSize(theme.px(28))
        self.horizontalHeader().setMinimumSectionSize(theme.px(88))


class CheckPage(Themed, QWidget):
    """Base class: an introduction, a row of controls with a button that starts and stops, a sentence, and results.

    `startRequested(choice, tokens)`, `stopRequested`.
    """

    startRequested = Signal(str, int)
    stopRequested = Signal()
    table: CheckTable

    def __init__(self, parent: QWidget, name: str, introduction: str, label: str, tokens: int) -> None:
        super().__init__(parent)
        self.setObjectName(f"{name}Page")
        self.choice = set_up(ComboBox(self), name=f"{name}Choice", accessible_name=label)
        self.choice.setMinimumContentsLength(20)
        self.choice.setSizeAdjustPolicy(ComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.tokens = set_up(SpinBox(self), name=f"{name}Tokens", accessible_name=tr("Tokens"))
        self.tokens.setRange(4, 2000)
        self.tokens.setValue(tokens)
        self.button = set_up(QPushButton(caption(tr("Start")), self), name=f"{name}Start", role="primary")
        self.button.setAutoDefault(False)
        self.button.clicked.connect(self._on_clicked)
        self.summary = set_up(WrappedLabel("", self), name=f"{name}Summary")
        self.summary.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.copy = set_up(QPushButton(caption(tr("Copy")), self), name=f"{name}Copy")
        self.copy.setAutoDefault(False)
        self.copy.setToolTip(tooltip(tr("Copies the sentence, and the table as CSV.")))
        self.copy.clicked.connect(self.copy_results)
        self.copy.setEnabled(False)
        self._is_busy = False
        self.tokens_label = PlainLabel(tr("Tokens"))
        self.summary.hide()
        fields = _row_of_fields(self, ((PlainLabel(label), self.choice), (self.tokens_label, self.tokens)))
        top = Qt.AlignmentFlag.AlignTop
        controls = arrange(QHBoxLayout(), (fields, 1), (self.copy, 0, top), (self.button, 0, top), spacing=12)
        self._column = arrange(
            QVBoxLayout(self), WrappedLabel(introduction, self), controls, self.summary, margins=0, spacing=12
        )

    @property
    def is_busy(self) -> bool:
        """Whether the button stops."""
        return self._is_busy

    def show_choices(self, choices: Sequence[tuple[str, str]]) -> None:
        """List (name, title); a chosen one stays chosen."""
        before = self.choice.currentData()
        self.choice.clear()
        for name, title in choices:
            self.choice.addItem(caption(title), name)
        self.choice.setCurrentIndex(max(self.choice.findData(before), 0))

    def choose(self, name: str, tokens: int) -> None:
        """Choose an entry of the list, if it is still there, and a number of tokens."""
        self.choice.setCurrentIndex(max(self.choice.findData(name), 0))
        self.tokens.setValue(tokens)

    def show_message(self, text: str, role: str = "") -> None:
        """Show a sentence; `role`: muted or danger, empty for a result."""
        self.summary.setProperty("role", role)
        self.summary.style().unpolish(self.summary)
        self.summary.style().polish(self.summary)
        self.summary.setText(text)
        self.summary.setVisible(bool(text))
        announce(self, text)

    def set_busy(self, is_busy: bool) -> None:
        """Make the button start or stop. A start removes the results."""
        if is_busy:
            self.table.show_rows(())
        self.table.set_empty_text(tr(_IN_PROGRESS if is_busy else _NOT_STARTED))
        self._is_busy = is_busy
        self.button.setText(caption(tr("Stop") if is_busy else tr("Start")))
        self.choice.setEnabled(not is_busy)
        self.tokens.setEnabled(not is_busy)
        self._enable_copy()

    def _enable_copy(self) -> None:
        self.copy.setEnabled(self.table.rowCount() > 0)

    @Slot()
    def copy_results(self) -> None:
        """Copy the sentence and the table."""
        heads = (self.table.horizontalHeaderItem(column) for column in range(self.table.columnCount()))
        rows = [[item.text() for item in heads if item is not None and item.text()]]
        rows += [row[: len(rows[0])] for row in self.table.texts()]
        QGuiApplication.clipboard().setText(f"{self.summary.text()}\n\n{to_csv(rows)}")

    @Slot()
    def _on_clicked(self) -> None:
        if self._is_busy:
            self.stopRequested.emit()
        elif self.choice.currentData():
            self.startRequested.emit(self.choice.currentData(), self.tokens.value())


class NearMissPage(CheckPage):
    """Near misses of the greedy text of the prompt."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent, "nearMiss", tr(_NEAR_MISSES), tr("Change"), 60)
        columns = (tr("Position"), tr("Word"), tr("Second"), tr("Margin in nats"), tr("Predicted"), tr("Found"))
        self.table = CheckTable("nearMissTable", tr("Near misses"), columns, (0, 3, 4), self)
        self._column.addWidget(self.table, 1)
        weights = [(WEIGHTS + name, tr("Weights in {format}").format(format=name)) for name in _PRECISIONS]
        backends = [
            (CACHE + name, tr("Cache: {cache}").format(cache=tr(backend.title)))
            for name, backend in caches.registry.items() if name != "dynamic"
        ]  # fmt: skip
        self._changes = [*weights, *backends]
        self.show_choices(self._changes)

    def show_models(self, models: Sequence[tuple[str, str]]) -> None:
        """List other models, each as (name, title), after the other changes."""
        titled = [(name, tr("Model: {name}").format(name=title)) for name, title in models]
        self.show_choices([*self._changes, *titled])

    def show_result(self, found: NearMisses) -> None:
        """Show the near misses and all hits, the likeliest first."""
        self.table.set_empty_text(tr("No near misses."))
        foreseen = found.predicted
        surprises = [row for row in found.hits if row not in foreseen]
        self.table.show_rows([
            (
                f"{row.position + 1:,}", words.label(row.text), words.label(row.rival_text), f"{row.margin:.3g}",
                _percent(row.probability), self._found_text(row.flips, row.other_text),
            )
            for row in (*foreseen, *surprises)
        ])  # fmt: skip
        self._enable_copy()
        spread = tr("The spread of margins is {spread:.2g} nats.").format(spread=found.spread)
        self.show_message(f"{found.sentence} {spread}")

    @staticmethod
    def _found_text(flips: bool | None, other: str) -> str:
        if flips is None:
            return ""
        return tr("hit: {word}").format(word=words.label(other)) if flips else tr("equal")


class DraftPage(CheckPage):
    """The effect of verification rules with a draft model, and the test of an engine's answers."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent, "draftCheck", tr(_DRAFTS), tr("Draft or engine"), 40)
        columns = (tr("Rule"), tr("Lossless"), tr("Distance"), tr("Largest"), tr("Accepted"), "")
        self._rules = CheckTable("draftCheckTable", tr("Rules"), columns, (2, 3, 4), self)
        ranks = (tr("Rank of the token"), tr("Expected"), tr("Drawn"), "")
        self._ranks = CheckTable("engineRanks", tr("Ranks of the drawn tokens"), ranks, (1, 2), self)
        self._ranks.hide()
        self.table = self._rules
        self._engine_controls = self._build_engine_controls()
        self.plot = PlotPanel(tr("Distance at every word"), self, (520, 200), (200, 150))
        self.plot.hide()
        self._column.insertWidget(2, self._engine_controls)
        for part in (self._rules, self._ranks, self.plot):
            self._column.addWidget(part, 1)
        self.choice.currentIndexChanged.connect(self._on_choice)
        self._on_choice()

    def _build_engine_controls(self) -> QWidget:
        controls = QWidget(self)
        self.reference = set_up(ComboBox(controls), name="engineReference", accessible_name=tr("Compare with"))
        self.reference.setMinimumContentsLength(18)
        self.reference.setSizeAdjustPolicy(ComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.answers = set_up(SpinBox(controls), name="engineAnswers", accessible_name=tr("Answers at most"))
        self.answers.setRange(1, 100_000)
        self.answers.setValue(500)
        fields = (
            (PlainLabel(tr("Compare with")), self.reference), (PlainLabel(tr("Answers at most")), self.answers),
        )  # fmt: skip
        arrange(QHBoxLayout(controls), (_row_of_fields(controls, fields), 1), margins=0)
        self.show_references(())
        return controls

    @property
    def has_engine(self) -> bool:
        """Whether an engine is chosen."""
        return str(self.choice.currentData() or "").startswith(ENGINE_CHOICE)

    def show_references(self, models: Sequence[tuple[str, str]]) -> None:
        """List what an engine is compared with: what it reports, and models, each as (name, title)."""
        before = self.reference.currentData()
        self.reference.clear()
        self.reference.addItem(tr("Probabilities that it reports"), "")
        for name, title in models:
            self.reference.addItem(caption(title), name)
        self.reference.setCurrentIndex(max(self.reference.findData(before), 0))

    @Slot()
    def _on_choice(self) -> None:
        """Show the controls of an engine, whose answers are short."""
        has_engine = self.has_engine
        if self._engine_controls.isHidden() == has_engine:
            self.tokens.setValue(8 if has_engine else 40)
        self.tokens_label.setText(tr("Tokens of an answer") if has_engine else tr("Tokens"))
        self._engine_controls.setVisible(has_engine)
        if not self.table.rowCount():
            self._show_table(self._ranks if has_engine else self._rules)

    def set_busy(self, is_busy: bool) -> None:
        if is_busy:
            self._show_table(self._ranks if self.has_engine else self._rules)
        super().set_busy(is_busy)
        self._engine_controls.setEnabled(not is_busy)

    def _show_table(self, table: CheckTable) -> None:
        """Show the rules or the ranks, without rows."""
        self.table = table
        for one in (self._rules, self._ranks):
            one.show_rows(())
            one.setVisible(one is table)
        self.plot.hide()

    def show_engine(self, found: EngineCheck, *, was_stopped: bool = False) -> None:
        """Show the state of the test after some answers."""
        if self.table is not self._ranks:
            self._show_table(self._ranks)
        groups = [group for group in found.ranks if group.expected > 0 or group.drawn]
        self._ranks.show_rows([
            (_rank_text(group), f"{group.expected:,.1f}", f"{group.drawn:,}", "") for group in groups
        ])  # fmt: skip
        self._enable_copy()
        points = tuple((float(token + 1), value) for token, value in enumerate(found.evidence))
        limit, end = -math.log10(found.level), float(max(len(points), 2))
        self.plot.setAccessibleName(tr("Evidence against equality"))
        self.plot.show_figure(PlotSpec(
            PlotAxis(tr("Token"), integers_only=True), PlotAxis(tr("Evidence in powers of ten")),
            lines=(
                PlotLine(tr("Answers of the engine"), "accent", points),
                PlotLine(tr("Differs from here on"), "danger", ((1.0, limit), (end, limit))),
            ),
        ))  # fmt: skip
        self.plot.setVisible(len(points) > 1)
        stopped = tr("Stopped.") if was_stopped else ""
        self.show_message(join_sentences(stopped, found.sentence))

    def show_result(self, found: DraftCheck) -> None:
        """Show the effect of every rule, and why few drafts are accepted."""
        if self.table is not self._rules:
            self._show_table(self._rules)
        self.plot.setAccessibleName(tr("Distance at every word"))
        self.table.show_rows([
            (
                tr(row.title), tr("yes") if row.is_lossless else tr("no"), _distance(row.distance),
                _distance(row.largest), _percent(row.accepted), "",
            )
            for row in found.effects
        ])  # fmt: skip
        self._enable_copy()
        lossy = sorted((row for row in found.effects if not row.is_lossless), key=lambda row: -row.distance)
        self.plot.show_figure(PlotSpec(
            PlotAxis(tr("Token"), integers_only=True), PlotAxis(tr("Distance")),
            lines=tuple(
                PlotLine(tr(row.title), colour, tuple(
                    (float(step + 1), value) for step, value in enumerate(found.effects.distances[row.rule])
                ))
                for row, colour in zip(lossy, _LINE_COLOURS, strict=False)
            ),
        ))  # fmt: skip
        self.plot.setVisible(len(found) > 1)
        sentence = tr("{percent} of the drafts are accepted by rejection sampling.")
        self.show_message(join_sentences(
            sentence.format(percent=_percent(found.accepted)), _layer_sentence(found), *found.findings
        ))  # fmt: skip


def _layer_sentence(found: DraftCheck) -> str:
    """Return how often a head would be accepted with the best other layer, unless a finding says so."""
    if len(found.layers) < 2 or found.findings:
        return ""
    own, best = found.layers[-1], max(found.layers[:-1], key=lambda row: row.accepted)
    sentence = tr("The head reads layer {own}. With the best other one ({other}), {percent} would be accepted.")
    other = tr("layer {n}").format(n=best.layer) if best.layer else tr("the embeddings")
    return sentence.format(own=own.layer, other=other, percent=_percent(best.accepted))


def _row_of_fields(parent: QWidget, fields: Iterable[tuple[QWidget, QWidget]]) -> FlowRow:
    """Return fields, each after its label, in as many lines as they need."""
    row = FlowRow(parent, 12)
    for label, field in fields:
        pair = QWidget(row)
        arrange(QHBoxLayout(pair), label, field, margins=0, spacing=8)
        row.flow.addWidget(pair)
    return row


def _rank_text(group: RankGroup) -> str:
    if group.last is None:
        return tr("other")
    return str(group.first) if group.first == group.last else f"{group.first}–{group.last}"


def _percent(share: float) -> str:
    return words.percent(share)


def _distance(value: float) -> str:
    return "0" if value < 1e-9 else f"{value:.3f}"
