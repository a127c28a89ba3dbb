"""History in the left panel: search, kept runs, and actions on the selected run."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QKeyEvent, QResizeEvent
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLineEdit,
    QMenu,
    QPushButton,
    QStackedWidget,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from decodescope.app.features.history.panel.run_list import LoadRecords, RunList
from decodescope.app.features.history.store.history_record import HistoryRecord
from decodescope.app.panels.commands import key_of
from decodescope.app.panels.parameter_row import MARGIN
from decodescope.app.theme.theme import Theme
from decodescope.app.theme.themed import Themed
from decodescope.app.views.shared.empty_page import FillButton
from decodescope.app.widgets.building import STRETCH, arrange, set_up
from decodescope.app.widgets.icons import IconButton
from decodescope.app.widgets.inputs import ScrollArea
from decodescope.app.widgets.labels import ElidedLabel, WrappedLabel
from decodescope.app.widgets.plain_text import PlainLabel, caption, tooltip
from decodescope.resources.language import mark, tr

RIGHT, ABOVE = 8, 3
ACTIONS = (
    ("restore", "sliders", mark("Use these settings")),
    ("compare", "compare", mark("Compare with the shown run")),
    ("pin", "pin", mark("Pin")),
    ("rename", "pencil", mark("Rename")),
    ("delete", "trash", mark("Delete")),
)
"""(name, icon, title) of the actions on a run."""


class HistoryHeader(Themed, QWidget):
    """Header: buttons for the previous and next run, the history menu and the close button."""

    backRequested = Signal()
    forwardRequested = Signal()
    closeRequested = Signal()
    keepRequested = Signal(bool)
    forgetAllRequested = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.back = IconButton("step-back", tr("Previous run ({key})").format(key=key_of("previous_run")))
        self.forward = IconButton("step-forward", tr("Next run ({key})").format(key=key_of("next_run")))
        self.more = IconButton("more", tr("History options"))
        self.close_button = IconButton("close", tr("Close the history ({key})").format(key=key_of("toggle_history")))
        self.back.clicked.connect(self.backRequested)
        self.forward.clicked.connect(self.forwardRequested)
        self.close_button.clicked.connect(self.closeRequested)
        self._make_menu()
        row = row_of(self, MARGIN, RIGHT)
        self._heading = set_up(PlainLabel(tr("HISTORY")), role="heading")
        row.addWidget(self._heading, 1)
        for button in self._buttons:
            row.addWidget(button)

    @property
    def _buttons(self) -> tuple[IconButton, ...]:
        return (self.back, self.forward, self.more, self.close_button)

    def set_history_enabled(self, is_on: bool) -> None:
        """Show whether runs are kept in the history."""
        self._keep.setChecked(is_on)

    @Slot(bool, bool)
    def set_navigation(self, back: bool, forward: bool) -> None:
        """Enable the buttons for the previous and the next run."""
        self.back.setEnabled(back)
        self.forward.setEnabled(forward)

    def restyle(self, theme: Theme) -> None:
        self.setFixedHeight(theme.px(20) + theme.space(20))
        self._fit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        """Hide the previous and next buttons if space is short; both have keyboard shortcuts."""
        taken = self._heading.sizeHint().width() + sum(button.sizeHint().width() + 2 for button in self._buttons)
        for button in (self.back, self.forward):
            button.setVisible(taken + MARGIN + RIGHT <= self.width())

    def _make_menu(self) -> None:
        self.more.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        menu = set_up(QMenu(self.more), name="historyActions")
        self._keep = menu.addAction(tr("Keep a history"))
        self._keep.setCheckable(True)
        self._keep.triggered.connect(self.keepRequested)
        menu.addAction(tr("Delete all…"), self.forgetAllRequested.emit)
        self.more.setMenu(menu)


class HistoryFooter(Themed, QFrame):
    """Footer: number of runs, actions on the selected run, and an undo line for the last deleted run.

    Emits `actionRequested(name)` with one of `ACTIONS`.
    """

    actionRequested = Signal(str)
    undoRequested = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setProperty("role", "foot")
        self.summary, self.deleted = PlainLabel(), ElidedLabel()
        for label in (self.summary, self.deleted):
            label.setProperty("role", "muted")
        self.buttons = {name: self._button(name, icon, title) for name, icon, title in ACTIONS}
        self.undo = set_up(QPushButton(tr("Undo")), name="historyUndo", role="quiet", clicked=self.undoRequested)
        self._lay_out()
        self.show_picked(None)

    def show_picked(self, record: HistoryRecord | None) -> None:
        """Set the run that the actions apply to."""
        for button in self.buttons.values():
            button.setEnabled(record is not None)
        title = tr("Unpin") if record is not None and record.pinned else tr("Pin")
        self.buttons["pin"].setToolTip(tooltip(title))
        self.buttons["pin"].setAccessibleName(title)

    def show_summary(self, text: str) -> None:
        """Show the number of runs."""
        self.summary.setText(text)
        self._fit()

    def show_deleted(self, name: str) -> None:
        """Offer to restore the deleted run; an empty name hides the line."""
        self.deleted.setText(tr("Deleted “{name}”").format(name=name))
        self._undo_bar.setVisible(bool(name))

    def restyle(self, theme: Theme) -> None:
        for label in (self.summary, self.deleted):
            label.setFont(theme.font(12, tabular=True))
        self._fit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        """Hide the summary if there is no space for it next to the buttons."""
        taken = sum(button.sizeHint().width() + 2 for button in self.buttons.values()) + MARGIN + RIGHT
        self.summary.setVisible(taken + self.summary.sizeHint().width() <= self.width())

    def _button(self, name: str, icon: str, title: str) -> IconButton:
        button = set_up(IconButton(icon, tr(title)), name=f"history.{name}")
        button.clicked.connect(lambda: self.actionRequested.emit(name))
        return button

    def _lay_out(self) -> None:
        self._undo_bar, acting = QWidget(), QWidget()
        undoing = row_of(self._undo_bar, MARGIN, RIGHT, ABOVE)
        arrange(undoing, (self.deleted, 1), self.undo)
        self._undo_bar.hide()
        row = row_of(acting, MARGIN, RIGHT, ABOVE, ABOVE)
        arrange(row, self.summary, STRETCH)
        for button in self.buttons.values():
            row.addWidget(button)
        arrange(QVBoxLayout(self), self._undo_bar, acting, margins=0, spacing=0)


def row_of(widget: QWidget, left: int, right: int, above: int = 0, below: int = 0) -> QHBoxLayout:
    """Create a row that fills `widget`."""
    return arrange(QHBoxLayout(widget), margins=(left, above, right, below), spacing=2)


TYPING_MS = 120
"""Delay after the last key press before the list is searched, in ms."""


class HistoryView(QFrame):
    """History panel; `controller/history_panel.py` handles its signals. Emits `actionRequested(name, id)` with one of
    `ACTIONS`.
    """

    searchChanged = Signal(str)
    openRequested = Signal(str)
    actionRequested = Signal(str, str)
    renameRequested = Signal(str, str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        set_up(self, name="historyView", role="panel", accessible_name=tr("History"))
        self.header, self.footer, self.list = HistoryHeader(), HistoryFooter(), RunList()
        self.list.openRequested.connect(self.openRequested)
        self.list.picked.connect(self.footer.show_picked)
        self.list.deleteRequested.connect(self.footer.buttons["delete"].click)
        self.list.menuRequested.connect(self._fill_menu)
        self.list.runs.renameRequested.connect(self.renameRequested)
        self.footer.actionRequested.connect(self._on_action)
        self.empty = set_up(WrappedLabel(""), role="muted")
        self._make_search()
        self._lay_out()

    @property
    def query(self) -> str:
        """The search text."""
        return self.search.text()

    def show_runs(self, ids: Sequence[str], load: LoadRecords, total: str, when_empty: str) -> None:
        """List these runs; `total` is the number of all runs as text, `when_empty` explains an empty list."""
        current, place = self.list.record, max(0, self.list.currentIndex().row())
        with self.list.keep_scroll_position():
            self.list.runs.show_runs(ids, load)
        if current is not None and ids:
            self.list.select(current.id, place)
        else:
            self.footer.show_picked(None)
        self.footer.show_summary(tr("{count:,} found").format(count=len(ids)) if self.query and ids else "")
        self.search.setPlaceholderText(tr("Search {total}…").format(total=total) if total else tr("Find…"))
        self.empty.setText(when_empty)
        self._pages.setCurrentWidget(self.list if ids else self._empty_page)

    def set_empty_action(self, text: str) -> None:
        """Set the text of the button in an empty list; an empty text hides the button."""
        if text:  # a button keeps its text while it is hidden
            self.empty_action.button.setText(text)
        self.empty_action.update_state(bool(text), description=self.empty.text())

    def event(self, event: QEvent) -> bool:
        """Close the history on Esc, before Esc does anything else."""
        if isinstance(event, QKeyEvent) and event.key() == Qt.Key.Key_Escape:
            event.accept()
            if event.type() == QEvent.Type.KeyPress:
                self.header.closeRequested.emit()
            return True
        return super().event(event)

    def _make_search(self) -> None:
        self.search = QLineEdit(clearButtonEnabled=True)
        self.search.setObjectName("historySearch")
        self.search.setAccessibleName(tr("Search prompts, texts and titles"))
        self.search.setToolTip(tr("Words or parts of words in prompts, texts and titles; all must match"))
        self._typing = QTimer(self, interval=TYPING_MS)
        self._typing.setSingleShot(True)
        self._typing.timeout.connect(lambda: self.searchChanged.emit(self.query))
        self.search.textChanged.connect(lambda _text: self._typing.start())

    def _lay_out(self) -> None:
        searching, offer = QWidget(), QWidget()
        row_of(searching, MARGIN, MARGIN, below=MARGIN // 2).addWidget(self.search)
        self.empty_action = FillButton(tr("Run this prompt"), offer)
        column = arrange(QVBoxLayout(offer), margins=(MARGIN, 0, MARGIN, MARGIN), spacing=MARGIN // 2)
        arrange(column, self.empty, self.empty_action, STRETCH)
        self._empty_page = ScrollArea(widgetResizable=True)  # a low window cannot show all of it
        self._empty_page.setFrameShape(QFrame.Shape.NoFrame)
        self._empty_page.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._empty_page.setWidget(offer)
        self._pages = QStackedWidget()
        self._pages.addWidget(self._empty_page)
        self._pages.addWidget(self.list)
        column = arrange(QVBoxLayout(self), self.header, searching, (self._pages, 1), self.footer, margins=0, spacing=0)

    @Slot(str)
    def _on_action(self, name: str) -> None:
        record = self.list.record
        if record is None:
            return
        if name == "rename":
            self.list.rename()
        else:
            self.actionRequested.emit(name, record.id)

    @Slot(QMenu)
    def _fill_menu(self, menu: QMenu) -> None:
        menu.addAction(tr("Open"), self.list.open_current)
        for button in self.footer.buttons.values():
            menu.addAction(caption(button.accessibleName()), button.click)
