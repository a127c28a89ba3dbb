"""Pages that read a text with two models: near misses of a greedy text, and the rules for verifying drafts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal, Slot
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

from decodescope.app.theme.theme import Theme
from decodescope.app.theme.themed import Themed
from decodescope.app.widgets.accessibility.accessible_widget import announce
from decodescope.app.widgets.building import arrange, set_up
from decodescope.app.widgets.flow_layout import FlowRow
from decodescope.app.widgets.inputs import ComboBox, SpinBox
from decodescope.app.widgets.labels import WrappedLabel
from decodescope.app.widgets.plain_text import PlainLabel, caption
from decodescope.app.widgets.plots.plot_panel import PlotPanel
from decodescope.app.widgets.plots.plot_spec import PlotAxis, PlotLine, PlotSpec
from decodescope.core import caches, words
from decodescope.resources.language import mark, tr

if TYPE_CHECKING:
    from decodescope.core import DraftCheck, NearMisses

WEIGHTS, CACHE = "weights:", "cache:"
"""Beginnings of the names of changes."""
_PRECISIONS = ("int8", "int4", "bfloat16", "float16")
_NEAR_MISSES = mark(
    "Which words of the greedy text would another precision or cache write otherwise? They are predicted from the "
    "margin of each choice and the spread on a sampled text. Then the other side reads the text."
)
_DRAFTS = mark(
    "Does a rule for verifying drafts change the text? For every word, the distribution that each rule emits is "
    "computed exactly and compared with the model's own."
)
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
_LINE_COLOURS = ("accent", "best", "danger", "thinking", "warning")


class CheckTable(Themed, QTableWidget):
    """A table of texts that cannot be edited."""

    def __init__(self, name: str, title: str, columns: Sequence[str], numeric: Sequence[int], parent: QWidget) -> None:
        """`numeric`: the columns of numbers, which are aligned at the right."""
        super().__init__(0, len(columns), parent)
        self._numeric = frozenset(numeric)
        set_up(self, name=name, accessible_name=title)
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
        self.choice = set_up(ComboBox(self), name=f"{name}Choice", accessible_name=label)
        self.choice.setMinimumContentsLength(18)
        self.choice.setSizeAdjustPolicy(ComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.tokens = set_up(SpinBox(self), name=f"{name}Tokens", accessible_name=tr("Tokens"))
        self.tokens.setRange(4, 2000)
        self.tokens.setValue(tokens)
        self.button = set_up(QPushButton(caption(tr("Start")), self), name=f"{name}Start", role="primary")
        self.button.setAutoDefault(False)
        self.button.clicked.connect(self._on_clicked)
        self.summary = set_up(WrappedLabel("", self), name=f"{name}Summary")
        self.summary.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._is_busy = False
        fields = FlowRow(self, 12)
        for text, field in ((label, self.choice), (tr("Tokens"), self.tokens)):
            pair = QWidget(fields)
            arrange(QHBoxLayout(pair), PlainLabel(text, pair), field, margins=0, spacing=8)
            fields.flow.addWidget(pair)
        top = Qt.AlignmentFlag.AlignTop
        controls = arrange(QHBoxLayout(), (fields, 1), (self.button, 0, top), spacing=12)
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

    def show_message(self, text: str, role: str = "") -> None:
        """Show a sentence; `role`: muted or danger, empty for a result."""
        self.summary.setProperty("role", role)
        self.summary.style().unpolish(self.summary)
        self.summary.style().polish(self.summary)
        self.summary.setText(text)
        announce(self, text)

    def set_busy(self, is_busy: bool) -> None:
        """Make the button start or stop. A start removes the results."""
        if is_busy:
            self.table.show_rows(())
        self._is_busy = is_busy
        self.button.setText(caption(tr("Stop") if is_busy else tr("Start")))
        self.choice.setEnabled(not is_busy)
        self.tokens.setEnabled(not is_busy)

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
        self.show_choices([*weights, *backends])

    def show_result(self, found: NearMisses) -> None:
        """Show the near misses and all hits, the likeliest first."""
        foreseen = found.predicted
        surprises = [row for row in found.hits if row not in foreseen]
        self.table.show_rows([
            (
                f"{row.position + 1:,}", words.label(row.text), words.label(row.rival_text), f"{row.margin:.3g}",
                _percent(row.probability), self._found_text(row.flips, row.other_text),
            )
            for row in (*foreseen, *surprises)
        ])  # fmt: skip
        spread = tr("The spread of margins is {spread:.2g} nats.").format(spread=found.spread)
        self.show_message(f"{found.sentence} {spread}")

    @staticmethod
    def _found_text(flips: bool | None, other: str) -> str:
        if flips is None:
            return ""
        return tr("hit: {word}").format(word=words.label(other)) if flips else tr("equal")


class DraftPage(CheckPage):
    """The effect of verification rules with a draft model."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent, "draftCheck", tr(_DRAFTS), tr("Draft model"), 40)
        columns = (tr("Rule"), tr("Lossless"), tr("Distance"), tr("Largest"), tr("Accepted"), "")
        self.table = CheckTable("draftCheckTable", tr("Rules"), columns, (2, 3, 4), self)
        self.plot = PlotPanel(tr("Distance at every word"), self, (520, 200), (200, 150))
        self.plot.hide()
        self._column.addWidget(self.table, 1)
        self._column.addWidget(self.plot, 1)

    def show_result(self, found: DraftCheck) -> None:
        """Show the effect of every rule, and why few drafts are accepted."""
        self.table.show_rows([
            (
                tr(row.title), tr("yes") if row.is_lossless else tr("no"), _distance(row.distance),
                _distance(row.largest), _percent(row.accepted), "",
            )
            for row in found.effects
        ])  # fmt: skip
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
        self.show_message(" ".join([sentence.format(percent=_percent(found.accepted)), *found.findings]))


def _percent(share: float) -> str:
    return words.percent(share)


def _distance(value: float) -> str:
    return "0" if value < 1e-9 else f"{value:.3f}"
