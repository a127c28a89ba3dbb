"""Collecting: completions of a prompt, put in an order by dragging, or asked two at a time by the keys A, B and =."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import (
    QCheckBox,
    QFrame,
    QHBoxLayout,
    QPushButton,
    QScrollArea,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from app.state.labs import CompletionsToRank, LabRequest
from app.views.labs.preference.ordering import OrderList
from app.views.labs.preference.page import LabPage
from app.views.labs.preference.pages import EXAMPLE_PROMPT
from app.widgets.exact_text import ExactTextEdit
from app.widgets.inputs import SpinBox
from app.widgets.plain_text import PlainLabel
from app.widgets.wrapped_label import WrappedLabel
from resources.language import tr

MIN_COUNT, MAX_COUNT, DEFAULT_COUNT = 4, 9, 4
Groups = list[list[str]]


class CollectPage(LabPage):
    """`saveWanted(prompt, [groups, …])`: these orders are to be kept; `exportWanted`: all kept ones as a file."""

    task = "draw"
    saveWanted = Signal(str, object)
    exportWanted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        about = tr(
            "A person puts endings of one story in order, the best on top: by dragging, or by Alt and the arrow keys. "
            "K of them stand for K·(K−1)/2 pairs of a better and a worse one; two that tie are no pair."
        )
        super().__init__(about, (), parent)
        self._prompt, self._seed = "", 0
        self.start.setText(tr("Write endings"))
        self.prompt = ExactTextEdit(EXAMPLE_PROMPT.strip(), self)
        self.prompt.setAccessibleName(tr("The beginning of the story"))
        self.prompt.setTabChangesFocus(True)
        self.prompt.setMaximumHeight(self.fontMetrics().height() * 5)
        self.count = SpinBox(self)
        self.count.setRange(MIN_COUNT, MAX_COUNT)
        self.count.setValue(DEFAULT_COUNT)
        self.count.setAccessibleName(tr("Endings to be written"))
        self.pairwise = QCheckBox(tr("Two at a time"), self)
        self.pairwise.toggled.connect(self._show_mode)
        self.order, self.duel = OrderList(self), PairwiseComparison(self)
        self.modes = QStackedWidget(self)
        self._pairwise_area = _in_scroll_area(self.duel)
        self.modes.addWidget(self.order)
        self.modes.addWidget(self._pairwise_area)
        self.save_button, self.export = QPushButton(tr("Keep this order"), self), QPushButton(tr("Export pairs…"), self)
        self.tie = QPushButton(tr("Ties with the one above (=)"), self)
        self.tie.clicked.connect(self.order.toggle_tie)
        self.save_button.clicked.connect(self._on_keep)
        self.export.clicked.connect(self.exportWanted)
        self.duel.answered.connect(self._on_answered)
        self.saved_count = PlainLabel("", self)
        self.saved_count.setProperty("role", "muted")
        self._fill()
        self._show_mode(False)

    def _fill(self) -> None:
        self.controls.addWidget(PlainLabel(tr("Endings"), self))
        self.controls.addWidget(self.count)
        self.controls.addWidget(self.pairwise)
        self.column.insertWidget(1, self.prompt)
        self.column.addWidget(self.modes, 1)
        row = QHBoxLayout()
        for part in (self.saved_count, self.tie, self.save_button, self.export):
            row.addWidget(part, 1 if part is self.saved_count else 0)
        self.column.addLayout(row)

    def lab_request(self) -> LabRequest:
        """So many endings of what stands there; other ones each time."""
        self._seed += 1
        return LabRequest(
            "draw", prompt=self.prompt.toPlainText().strip() + "\n", count=self.count.value(), seed=self._seed
        )

    def show_busy(self, is_running: bool, other_task: str) -> None:
        """As every page, in its own words."""
        super().show_busy(is_running, other_task)
        if not is_running:
            self.start.setText(tr("Write endings"))

    def show_events(self, events: Sequence[object]) -> None:
        """The endings that were written."""
        super().show_events(events)
        for event in events:
            if isinstance(event, CompletionsToRank) and (event.completions or not self._prompt):
                self._prompt = event.prompt
                self.order.show_texts(event.completions)
                self.duel.show_texts(event.completions)
        self._show_mode(self.pairwise.isChecked())

    def show_saved(self, rankings: int, pairs: int) -> None:
        """How many are kept."""
        self.saved_count.setText(
            tr("Rankings kept: {rankings} · pairs: {pairs}").format(rankings=rankings, pairs=pairs)
        )
        self.export.setEnabled(pairs > 0)

    @Slot(bool)
    def _show_mode(self, by_pairs: bool) -> None:
        self.modes.setCurrentWidget(self._pairwise_area if by_pairs else self.order)
        self.tie.setVisible(not by_pairs)
        self.save_button.setVisible(not by_pairs)
        self.save_button.setEnabled(self.order.count() > 1)
        self.tie.setEnabled(self.order.count() > 1)

    @Slot()
    def _on_keep(self) -> None:
        self.saveWanted.emit(self._prompt, [self.order.groups])
        self.order.show_texts(())
        self._show_mode(False)

    @Slot(object)
    def _on_answered(self, answers: list[Groups]) -> None:
        self.saveWanted.emit(self._prompt, answers)


def _in_scroll_area(duel: PairwiseComparison) -> QScrollArea:
    """Long endings do not make the window larger."""
    scroll = QScrollArea()
    scroll.setAccessibleName(tr("Two at a time"))
    scroll.setWidgetResizable(True)
    scroll.setFrameShape(QFrame.Shape.NoFrame)
    scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    scroll.setWidget(duel)
    return scroll


class PairwiseComparison(QFrame):
    """Two endings beside each other: A, B or =. `answered([groups, …])` once every pair has its answer."""

    answered = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("role", "panel")
        self._pending: list[tuple[str, str]] = []
        self._answers: list[Groups] = []
        self.texts = [WrappedLabel("", self), WrappedLabel("", self)]
        self.buttons = {
            "A": QPushButton(tr("A is better (A)"), self),
            "=": QPushButton(tr("Equal (=)"), self),
            "B": QPushButton(tr("B is better (B)"), self),
        }
        for key, button in self.buttons.items():
            button.clicked.connect(lambda _on=False, key=key: self.answer(key))
            shortcut = QShortcut(QKeySequence(key), self)
            shortcut.setContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
            shortcut.activated.connect(lambda key=key: self.answer(key))
        self.remaining_label = PlainLabel("", self)
        self.remaining_label.setProperty("role", "muted")
        self._lay_out()
        self.show_texts(())

    def _lay_out(self) -> None:
        column, texts, row = QVBoxLayout(self), QHBoxLayout(), QHBoxLayout()
        for text in self.texts:
            texts.addWidget(text, 1, Qt.AlignmentFlag.AlignTop)
        for button in self.buttons.values():
            row.addWidget(button)
        row.addWidget(self.remaining_label, 1)
        column.addLayout(texts)
        column.addLayout(row)
        column.addStretch(1)

    def show_texts(self, texts: Sequence[str]) -> None:
        """Ask about every pair of these."""
        self._pending, self._answers = list(combinations(texts, 2)), []
        self._show()

    def answer(self, key: str) -> None:
        """A, B or = for the pair that is shown."""
        if not self._pending:
            return
        one, other = self._pending.pop(0)
        self._answers.append({"A": [[one], [other]], "B": [[other], [one]], "=": [[one, other]]}[key])
        self._show()
        if not self._pending:
            self.answered.emit(self._answers)

    def _show(self) -> None:
        shown = self._pending[0] if self._pending else ("", "")
        for name, label, text in zip("AB", self.texts, shown, strict=True):
            label.setText(f"{name} · {text}" if text else "")
        for button in self.buttons.values():
            button.setEnabled(bool(self._pending))
        left = len(self._pending)
        self.remaining_label.setText(tr("Pairs left: {left}").format(left=left) if left else "")
        if left:
            self.buttons["A"].setFocus()
