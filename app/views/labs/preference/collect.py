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

from app.state.labs import CompletionsDrawn, LabWish
from app.views.labs.preference.ordering import OrderList
from app.views.labs.preference.page import LabPage
from app.views.labs.preference.pages import EXAMPLE
from app.widgets.exact_text import ExactTextEdit
from app.widgets.inputs import SpinBox
from app.widgets.plain_text import PlainLabel
from app.widgets.wrapped_label import WrappedLabel
from resources.language import tr

LEAST, MOST, USUAL = 4, 9, 4
Groups = list[list[str]]


class CollectPage(LabPage):
    """`keepWanted(prompt, [groups, …])`: these orders are to be kept; `exportWanted`: all kept ones as a file."""

    task = "draw"
    keepWanted = Signal(str, object)
    exportWanted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        about = tr(
            "A person puts endings of one story in order, the best on top: by dragging, or by Alt and the arrow keys. "
            "K of them stand for K·(K−1)/2 pairs of a better and a worse one; two that tie are no pair."
        )
        super().__init__(about, (), parent)
        self._prompt, self._seed = "", 0
        self.start.setText(tr("Write endings"))
        self.prompt = ExactTextEdit(EXAMPLE.strip(), self)
        self.prompt.setAccessibleName(tr("The beginning of the story"))
        self.prompt.setTabChangesFocus(True)
        self.prompt.setMaximumHeight(self.fontMetrics().height() * 5)
        self.count = SpinBox(self)
        self.count.setRange(LEAST, MOST)
        self.count.setValue(USUAL)
        self.count.setAccessibleName(tr("Endings to be written"))
        self.by_pairs = QCheckBox(tr("Two at a time"), self)
        self.by_pairs.toggled.connect(self._show_way)
        self.order, self.duel = OrderList(self), Duel(self)
        self.ways = QStackedWidget(self)
        self._asking = _scrolled(self.duel)
        self.ways.addWidget(self.order)
        self.ways.addWidget(self._asking)
        self.keep, self.export = QPushButton(tr("Keep this order"), self), QPushButton(tr("Export pairs…"), self)
        self.tie = QPushButton(tr("Ties with the one above (=)"), self)
        self.tie.clicked.connect(self.order.tie)
        self.keep.clicked.connect(self._on_keep)
        self.export.clicked.connect(self.exportWanted)
        self.duel.answered.connect(self._on_answered)
        self.kept = PlainLabel("", self)
        self.kept.setProperty("role", "muted")
        self._fill()
        self._show_way(False)

    def _fill(self) -> None:
        self.controls.addWidget(PlainLabel(tr("Endings"), self))
        self.controls.addWidget(self.count)
        self.controls.addWidget(self.by_pairs)
        self.column.insertWidget(1, self.prompt)
        self.column.addWidget(self.ways, 1)
        row = QHBoxLayout()
        for part in (self.kept, self.tie, self.keep, self.export):
            row.addWidget(part, 1 if part is self.kept else 0)
        self.column.addLayout(row)

    def wish(self) -> LabWish:
        """So many endings of what stands there; other ones each time."""
        self._seed += 1
        return LabWish(
            "draw", prompt=self.prompt.toPlainText().strip() + "\n", count=self.count.value(), seed=self._seed
        )

    def show_busy(self, mine: bool, other: str) -> None:
        """As every page, in its own words."""
        super().show_busy(mine, other)
        if not mine:
            self.start.setText(tr("Write endings"))

    def show_events(self, events: Sequence[object]) -> None:
        """The endings that were written."""
        super().show_events(events)
        for event in events:
            if isinstance(event, CompletionsDrawn) and (event.completions or not self._prompt):
                self._prompt = event.prompt
                self.order.show_texts(event.completions)
                self.duel.show_texts(event.completions)
        self._show_way(self.by_pairs.isChecked())

    def show_kept(self, rankings: int, pairs: int) -> None:
        """How many are kept."""
        self.kept.setText(tr("Rankings kept: {rankings} · pairs: {pairs}").format(rankings=rankings, pairs=pairs))
        self.export.setEnabled(pairs > 0)

    @Slot(bool)
    def _show_way(self, by_pairs: bool) -> None:
        self.ways.setCurrentWidget(self._asking if by_pairs else self.order)
        self.tie.setVisible(not by_pairs)
        self.keep.setVisible(not by_pairs)
        self.keep.setEnabled(self.order.count() > 1)
        self.tie.setEnabled(self.order.count() > 1)

    @Slot()
    def _on_keep(self) -> None:
        self.keepWanted.emit(self._prompt, [self.order.groups])
        self.order.show_texts(())
        self._show_way(False)

    @Slot(object)
    def _on_answered(self, answers: list[Groups]) -> None:
        self.keepWanted.emit(self._prompt, answers)


def _scrolled(duel: Duel) -> QScrollArea:
    """Long endings do not make the window larger."""
    scroll = QScrollArea()
    scroll.setAccessibleName(tr("Two at a time"))
    scroll.setWidgetResizable(True)
    scroll.setFrameShape(QFrame.Shape.NoFrame)
    scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    scroll.setWidget(duel)
    return scroll


class Duel(QFrame):
    """Two endings beside each other: A, B or =. `answered([groups, …])` once every pair has its answer."""

    answered = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("role", "panel")
        self._waiting: list[tuple[str, str]] = []
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
        self.left = PlainLabel("", self)
        self.left.setProperty("role", "muted")
        self._lay_out()
        self.show_texts(())

    def _lay_out(self) -> None:
        column, texts, row = QVBoxLayout(self), QHBoxLayout(), QHBoxLayout()
        for text in self.texts:
            texts.addWidget(text, 1, Qt.AlignmentFlag.AlignTop)
        for button in self.buttons.values():
            row.addWidget(button)
        row.addWidget(self.left, 1)
        column.addLayout(texts)
        column.addLayout(row)
        column.addStretch(1)

    def show_texts(self, texts: Sequence[str]) -> None:
        """Ask about every pair of these."""
        self._waiting, self._answers = list(combinations(texts, 2)), []
        self._show()

    def answer(self, key: str) -> None:
        """A, B or = for the pair that is shown."""
        if not self._waiting:
            return
        one, other = self._waiting.pop(0)
        self._answers.append({"A": [[one], [other]], "B": [[other], [one]], "=": [[one, other]]}[key])
        self._show()
        if not self._waiting:
            self.answered.emit(self._answers)

    def _show(self) -> None:
        shown = self._waiting[0] if self._waiting else ("", "")
        for name, label, text in zip("AB", self.texts, shown, strict=True):
            label.setText(f"{name} · {text}" if text else "")
        for button in self.buttons.values():
            button.setEnabled(bool(self._waiting))
        left = len(self._waiting)
        self.left.setText(tr("Pairs left: {left}").format(left=left) if left else "")
        if left:
            self.buttons["A"].setFocus()
