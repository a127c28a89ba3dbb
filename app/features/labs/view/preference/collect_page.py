"""A list of completions ranked by dragging, with ties."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from PySide6.QtCore import QSize, Qt, Signal, Slot
from PySide6.QtGui import QKeyEvent, QKeySequence, QShortcut
from PySide6.QtWidgets import (
    QAbstractItemView,
    QCheckBox,
    QFrame,
    QHBoxLayout,
    QListWidget,
    QListWidgetItem,
    QPushButton,
    QScrollArea,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from decodescope.app.features.labs.state import CompletionsToRank, LabRequest
from decodescope.app.features.labs.view.preference.lab_page import LabPage
from decodescope.app.features.labs.view.preference.training_pages import EXAMPLE_PROMPT
from decodescope.app.widgets.building import STRETCH, arrange, set_up
from decodescope.app.widgets.inputs import SpinBox
from decodescope.app.widgets.labels import WrappedLabel
from decodescope.app.widgets.plain_text import PlainLabel
from decodescope.app.widgets.text_documents import ExactTextEdit
from decodescope.resources.language import tr

_TIE_ROLE = Qt.ItemDataRole.UserRole
_TEXT_ROLE = Qt.ItemDataRole.UserRole + 1


class OrderList(QListWidget):
    """Best item on top. `=` ties the current item with the one above; Alt+Up and Alt+Down move it. `changed` is emitted
    after each change.
    """

    changed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        set_up(self, name="orderList", accessible_name=tr("Completions, best on top"))
        self.setWordWrap(True)
        self.setSpacing(2)
        self.setDragDropMode(QAbstractItemView.DragDropMode.InternalMove)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.model().rowsMoved.connect(self._update_ranks)
        self.model().rowsInserted.connect(self._update_ranks)

    def show_texts(self, texts: Sequence[str]) -> None:
        """Show these texts, in the given order."""
        self.clear()
        for text in texts:
            item = QListWidgetItem(text)
            item.setData(_TEXT_ROLE, text)
            item.setData(_TIE_ROLE, False)
            item.setSizeHint(QSize(0, self.fontMetrics().height() * 4))
            self.addItem(item)
        self._update_ranks()

    @property
    def groups(self) -> list[list[str]]:
        """The completions in groups, best first; tied ones share a group."""
        result: list[list[str]] = []
        for item in self._items():
            if result and item.data(_TIE_ROLE):
                result[-1].append(item.data(_TEXT_ROLE))
            else:
                result.append([item.data(_TEXT_ROLE)])
        return result

    @Slot()
    def toggle_tie(self) -> None:
        """Tie the current item with the one above, or undo the tie."""
        if self.currentRow() > 0:
            item = self.currentItem()
            item.setData(_TIE_ROLE, not item.data(_TIE_ROLE))
            self._update_ranks()

    def move_current(self, by: int) -> None:
        """Move the current item up or down."""
        row = self.currentRow()
        if min(row, row + by) >= 0 and row + by < self.count():
            item = self.takeItem(row)
            self.insertItem(row + by, item)
            self.setCurrentRow(row + by)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Handle = and Alt+arrow keys."""
        step = {Qt.Key.Key_Up: -1, Qt.Key.Key_Down: 1}.get(Qt.Key(event.key()))
        if event.text() == "=":
            self.toggle_tie()
        elif step is not None and event.modifiers() & Qt.KeyboardModifier.AltModifier:
            self.move_current(step)
        else:
            super().keyPressEvent(event)

    def _items(self) -> list[QListWidgetItem]:
        return [self.item(place) for place in range(self.count())]

    @Slot()
    def _update_ranks(self) -> None:
        """Show each item's rank; tied items share one."""
        rank = 0
        for place, item in enumerate(self._items()):
            if item.data(_TEXT_ROLE) is None:
                continue
            rank += not (item.data(_TIE_ROLE) and place)
            item.setText(f"{rank} · {item.data(_TEXT_ROLE)}")
        self.changed.emit()


MIN_COUNT, MAX_COUNT, DEFAULT_COUNT = 4, 9, 4
Groups = list[list[str]]


class CollectPage(LabPage):
    """Page on which completions are generated and ranked. `saveWanted(prompt, [groups, …])` saves these rankings;
    `exportWanted` exports all saved ones to a file.
    """

    task = "draw"
    saveWanted = Signal(str, object)
    exportWanted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        about = tr(
            "A person ranks several endings of one story, best on top: drag them, or use Alt and the "
            "arrow keys. K endings give K·(K−1)/2 pairs of a better and a worse one; a tie gives no "
            "pair."
        )
        super().__init__(about, (), parent)
        self._prompt, self._seed = "", 0
        self.start.setText(tr("Generate endings"))
        self.prompt = ExactTextEdit(EXAMPLE_PROMPT.strip(), self)
        self.prompt.setAccessibleName(tr("The beginning of the story"))
        self.prompt.setTabChangesFocus(True)
        self.prompt.setMaximumHeight(self.fontMetrics().height() * 5)
        self.count = set_up(SpinBox(self), accessible_name=tr("Number of endings"))
        self.count.setRange(MIN_COUNT, MAX_COUNT)
        self.count.setValue(DEFAULT_COUNT)
        self.pairwise = QCheckBox(tr("Two at a time"), self)
        self.pairwise.toggled.connect(self._show_mode)
        self.order, self.duel = OrderList(self), PairwiseComparison(self)
        self.modes = QStackedWidget(self)
        self._pairwise_area = _in_scroll_area(self.duel)
        self.modes.addWidget(self.order)
        self.modes.addWidget(self._pairwise_area)
        self.save_button, self.export = (
            QPushButton(tr("Save this ranking"), self),
            QPushButton(tr("Export pairs…"), self),
        )
        self.tie = set_up(QPushButton(tr("Tie with the one above (=)"), self), clicked=self.order.toggle_tie)
        self.save_button.clicked.connect(self._on_keep)
        self.export.clicked.connect(self.exportWanted)
        self.duel.answered.connect(self._on_answered)
        self.saved_count = set_up(PlainLabel("", self), role="muted")
        self._fill()
        self._show_mode(False)

    def _fill(self) -> None:
        arrange(self.controls, PlainLabel(tr("Endings"), self), self.count, self.pairwise)
        self.column.insertWidget(1, self.prompt)
        self.column.addWidget(self.modes, 1)
        row = QHBoxLayout()
        for part in (self.saved_count, self.tie, self.save_button, self.export):
            row.addWidget(part, 1 if part is self.saved_count else 0)
        self.column.addLayout(row)

    def lab_request(self) -> LabRequest:
        """Return a request for new endings of the prompt, with another seed each time."""
        self._seed += 1
        return LabRequest(
            "draw", prompt=self.prompt.toPlainText().strip() + "\n", count=self.count.value(), seed=self._seed
        )

    def show_busy(self, is_running: bool, other_task: str) -> None:
        """Update the button, with this page's own label."""
        super().show_busy(is_running, other_task)
        if not is_running:
            self.start.setText(tr("Generate endings"))

    def show_events(self, events: Sequence[object]) -> None:
        """Show the generated endings."""
        super().show_events(events)
        for event in events:
            if isinstance(event, CompletionsToRank) and (event.completions or not self._prompt):
                self._prompt = event.prompt
                self.order.show_texts(event.completions)
                self.duel.show_texts(event.completions)
        self._show_mode(self.pairwise.isChecked())

    def show_saved(self, rankings: int, pairs: int) -> None:
        """Show the number of saved rankings and pairs."""
        self.saved_count.setText(
            tr("Saved rankings: {rankings} · pairs: {pairs}").format(rankings=rankings, pairs=pairs)
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
    """Return a scroll area, so that long endings do not enlarge the window."""
    scroll = set_up(QScrollArea(), accessible_name=tr("Two at a time"))
    scroll.setWidgetResizable(True)
    scroll.setFrameShape(QFrame.Shape.NoFrame)
    scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    scroll.setWidget(duel)
    return scroll


class PairwiseComparison(QFrame):
    """Two endings side by side, rated A, B or =. `answered([groups, …])` once all pairs are rated."""

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
        self.remaining_label = set_up(PlainLabel("", self), role="muted")
        self._lay_out()
        self.show_texts(())

    def _lay_out(self) -> None:
        column, texts, row = QVBoxLayout(self), QHBoxLayout(), QHBoxLayout()
        for text in self.texts:
            texts.addWidget(text, 1, Qt.AlignmentFlag.AlignTop)
        for button in self.buttons.values():
            row.addWidget(button)
        row.addWidget(self.remaining_label, 1)
        arrange(column, texts, row, STRETCH)

    def show_texts(self, texts: Sequence[str]) -> None:
        """Start rating all pairs of these texts."""
        self._pending, self._answers = list(combinations(texts, 2)), []
        self._show()

    def answer(self, key: str) -> None:
        """Rate the shown pair: A, B or =."""
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
