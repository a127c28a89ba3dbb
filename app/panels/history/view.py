"""The history in the left panel: a search, the kept runs, and what can be done with the picked one."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, QTimer, Signal, SignalInstance, Slot
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QMenu,
    QPushButton,
    QStackedWidget,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from app.panels.history.model import Load
from app.panels.history.run_list import RunList
from app.panels.parameter_row import MARGIN
from app.panels.shortcuts import key_of
from app.storage.history.record import Record
from app.theme.theme import Theme
from app.widgets.elided_label import ElidedLabel
from app.widgets.icons import IconButton
from app.widgets.wrapped_label import WrappedLabel

TYPING_MS = 120
"""After so long without another letter, the list is searched."""
_ACTIONS = (
    ("restore", "sliders", "Use these settings"),
    ("compare", "compare", "Compare with the shown run"),
    ("pin", "pin", "Pin"),
    ("rename", "pencil", "Rename"),
    ("delete", "trash", "Delete"),
)


class HistoryView(QFrame):
    """Says what is asked for; `History` and its controller do it. `actionWanted(name, id)` with one of `_ACTIONS`."""

    closeWanted = Signal()
    searchChanged = Signal(str)
    openWanted = Signal(str)
    actionWanted = Signal(str, str)
    renameWanted = Signal(str, str)
    undoWanted = Signal()
    backWanted = Signal()
    forwardWanted = Signal()
    forgetAllWanted = Signal()
    keepWanted = Signal(bool)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("historyView")
        self.setProperty("role", "panel")
        self.setAccessibleName("History")
        self.list = RunList()
        self.list.openWanted.connect(self.openWanted)
        self.list.picked.connect(self._on_picked)
        self.list.deleteWanted.connect(lambda: self._act("delete"))
        self.list.menuWanted.connect(self._fill_menu)
        self.list.runs.renameWanted.connect(self.renameWanted)
        self._make_head()
        self._make_search()
        self._make_foot()
        self._lay_out()
        self.show_steps(False, False)
        self._on_picked(None)

    @property
    def query(self) -> str:
        """What is looked for."""
        return self.search.text()

    def show_runs(self, ids: Sequence[str], load: Load, summary: str, when_empty: str) -> None:
        """List these runs; `summary` says how many there are, `when_empty` why there is none."""
        current, place = self.list.record, max(0, self.list.currentIndex().row())
        self.list.runs.show_runs(ids, load)
        if current is not None and ids:
            self.list.pick(current.id, place)
        else:
            self._on_picked(None)
        self.summary.setText(summary)
        self.summary.setToolTip(summary)
        self.empty.setText(when_empty)
        self._pages.setCurrentWidget(self.list if ids else self._empty_page)

    def show_deleted(self, name: str) -> None:
        """That run can be brought back; empty: none."""
        self.deleted.setText(f"Deleted “{name}”" if name else "")
        self._undo_bar.setVisible(bool(name))

    def show_keeping(self, is_on: bool) -> None:
        """Whether runs are kept."""
        self._keep.setChecked(is_on)

    @Slot(bool, bool)
    def show_steps(self, back: bool, forward: bool) -> None:
        """Whether there are runs before and after the shown one."""
        self.back.setEnabled(back)
        self.forward.setEnabled(forward)

    def set_theme(self, theme: Theme) -> None:
        """Colours and sizes."""
        self.list.set_theme(theme)
        for button in (self.back, self.forward, self.more, self.close_button, *self.buttons.values()):
            button.set_theme(theme)
        for label in (self.summary, self.deleted):
            label.setFont(theme.font(12, tabular=True))
        self._head.setFixedHeight(theme.px(20) + theme.space(20))

    def _make_head(self) -> None:
        self.back = self._button("step-back", f"Previous run ({key_of('previous_run')})", self.backWanted)
        self.forward = self._button("step-forward", f"Next run ({key_of('next_run')})", self.forwardWanted)
        self.close_button = self._button("close", f"Close the history ({key_of('toggle_history')})", self.closeWanted)
        self.more = IconButton("more", "More about the history")
        self.more.setObjectName("historyMenu")
        self.more.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        menu = QMenu(self.more)
        menu.setObjectName("historyActions")
        self._keep = menu.addAction("Keep a history")
        self._keep.setCheckable(True)
        self._keep.triggered.connect(self.keepWanted)
        menu.addAction("Forget all…", self.forgetAllWanted.emit)
        self.more.setMenu(menu)

    def _make_search(self) -> None:
        self.search = QLineEdit(clearButtonEnabled=True)
        self.search.setObjectName("historySearch")
        self.search.setAccessibleName("Find in prompts, texts and titles")
        self.search.setPlaceholderText("Find…")
        self.search.setToolTip("Words or parts of words, in prompts, texts and titles; all of them have to be there")
        self._typing = QTimer(self, interval=TYPING_MS)
        self._typing.setSingleShot(True)
        self._typing.timeout.connect(lambda: self.searchChanged.emit(self.query))
        self.search.textChanged.connect(lambda _text: self._typing.start())

    def _make_foot(self) -> None:
        self.summary = ElidedLabel()
        self.summary.setProperty("role", "muted")
        self.buttons = {name: self._action(name, icon, title) for name, icon, title in _ACTIONS}
        self.deleted = ElidedLabel()
        self.deleted.setProperty("role", "muted")
        self.undo = QPushButton("Undo")
        self.undo.setObjectName("historyUndo")
        self.undo.setProperty("role", "quiet")
        self.undo.clicked.connect(self.undoWanted)
        self.empty = WrappedLabel("")
        self.empty.setProperty("role", "muted")
        self.empty.setAlignment(Qt.AlignmentFlag.AlignTop)

    def _button(self, icon: str, title: str, signal: SignalInstance) -> IconButton:
        button = IconButton(icon, title)
        button.clicked.connect(signal)
        return button

    def _action(self, name: str, icon: str, title: str) -> IconButton:
        button = IconButton(icon, title)
        button.setObjectName(f"history.{name}")
        button.clicked.connect(lambda: self._act(name))
        return button

    def _lay_out(self) -> None:
        self._head = QWidget()
        head = _row(self._head, MARGIN, 8)
        heading = QLabel("HISTORY")
        heading.setProperty("role", "heading")
        head.addWidget(heading, 1)
        for button in (self.back, self.forward, self.more, self.close_button):
            head.addWidget(button)
        searching = QWidget()
        _row(searching, MARGIN, MARGIN, below=8).addWidget(self.search)
        self._empty_page = QWidget()
        _row(self._empty_page, MARGIN, MARGIN, above=16).addWidget(self.empty, 0, Qt.AlignmentFlag.AlignTop)
        self._pages = QStackedWidget()
        for page in (self._empty_page, self.list):
            self._pages.addWidget(page)
        self._undo_bar = QFrame()
        self._undo_bar.setProperty("role", "foot")
        undoing = _row(self._undo_bar, MARGIN, 6, above=3, below=3)
        undoing.addWidget(self.deleted, 1)
        undoing.addWidget(self.undo)
        self._undo_bar.hide()
        foot = QFrame()
        foot.setProperty("role", "foot")
        acting = _row(foot, MARGIN, 6, above=3, below=3)
        acting.addWidget(self.summary, 1)
        for action in self.buttons.values():
            acting.addWidget(action)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        for part in (self._head, searching):
            column.addWidget(part)
        column.addWidget(self._pages, 1)
        column.addWidget(self._undo_bar)
        column.addWidget(foot)

    def _act(self, name: str) -> None:
        record = self.list.record
        if record is None:
            return
        if name == "rename":
            self.list.rename()
        else:
            self.actionWanted.emit(name, record.id)

    @Slot(object)
    def _on_picked(self, record: Record | None) -> None:
        for button in self.buttons.values():
            button.setEnabled(record is not None)
        title = "Unpin" if record is not None and record.pinned else "Pin"
        self.buttons["pin"].setToolTip(title)
        self.buttons["pin"].setAccessibleName(title)

    @Slot(QMenu)
    def _fill_menu(self, menu: QMenu) -> None:
        menu.addAction("Open", self.list.open_current)
        for button in self.buttons.values():
            menu.addAction(button.toolTip(), button.click)


def _row(widget: QWidget, left: int, right: int, above: int = 0, below: int = 0) -> QHBoxLayout:
    row = QHBoxLayout(widget)
    row.setContentsMargins(left, above, right, below)
    row.setSpacing(2)
    return row
