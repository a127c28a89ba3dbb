"""The history in the left panel: a search, the kept runs, and what can be done with the picked one."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QFrame, QLineEdit, QMenu, QStackedWidget, QVBoxLayout, QWidget

from app.panels.history.history_bars import HistoryFooter, HistoryHeader, row_of
from app.panels.history.history_model import LoadRecords
from app.panels.history.run_list import RunList
from app.panels.parameter_row import MARGIN
from app.theme.theme import Theme, Themeable
from app.widgets.empty_offer import FillButton
from app.widgets.inputs import ScrollArea
from app.widgets.plain_text import caption
from app.widgets.wrapped_label import WrappedLabel
from resources.language import tr

TYPING_MS = 120
"""After so long without another letter, the list is searched."""


class HistoryView(QFrame):
    """Says what is asked for; `app.control.history_panel` does it. `actionRequested(name, id)` with one of `ACTIONS`."""

    searchChanged = Signal(str)
    openRequested = Signal(str)
    actionRequested = Signal(str, str)
    renameRequested = Signal(str, str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("historyView")
        self.setProperty("role", "panel")
        self.setAccessibleName(tr("History"))
        self.header, self.footer, self.list = HistoryHeader(), HistoryFooter(), RunList()
        self.list.openRequested.connect(self.openRequested)
        self.list.picked.connect(self.footer.show_picked)
        self.list.deleteRequested.connect(self.footer.buttons["delete"].click)
        self.list.menuRequested.connect(self._fill_menu)
        self.list.runs.renameRequested.connect(self.renameRequested)
        self.footer.actionRequested.connect(self._on_action)
        self.empty = WrappedLabel("")
        self.empty.setProperty("role", "muted")
        self._make_search()
        self._lay_out()

    @property
    def query(self) -> str:
        """What is looked for."""
        return self.search.text()

    def show_runs(self, ids: Sequence[str], load: LoadRecords, total: str, when_empty: str) -> None:
        """List these runs; `total` says how many there are, `when_empty` why there is none of these."""
        current, place = self.list.record, max(0, self.list.currentIndex().row())
        with self.list.keep_scroll_position():
            self.list.runs.show_runs(ids, load)
        if current is not None and ids:
            self.list.select(current.id, place)
        else:
            self.footer.show_picked(None)
        self.footer.show_summary(tr("{count:,} found").format(count=len(ids)) if self.query and ids else "")
        self.search.setPlaceholderText(tr("Find in {total}…").format(total=total) if total else tr("Find…"))
        self.empty.setText(when_empty)
        self._pages.setCurrentWidget(self.list if ids else self._empty_page)

    def set_empty_action(self, text: str) -> None:
        """What the button below the words of an empty list says; hidden where that is empty."""
        if text:  # a button keeps its name while it is hidden
            self.empty_action.button.setText(text)
        self.empty_action.update_state(bool(text), description=self.empty.text())

    def event(self, event: QEvent) -> bool:
        """Esc in here closes the history, before it does anything else."""
        if isinstance(event, QKeyEvent) and event.key() == Qt.Key.Key_Escape:
            event.accept()
            if event.type() == QEvent.Type.KeyPress:
                self.header.closeRequested.emit()
            return True
        return super().event(event)

    def set_theme(self, theme: Theme) -> None:
        """Colours and sizes."""
        themed: tuple[Themeable, ...] = (self.header, self.list, self.footer)
        for part in themed:
            part.set_theme(theme)

    def _make_search(self) -> None:
        self.search = QLineEdit(clearButtonEnabled=True)
        self.search.setObjectName("historySearch")
        self.search.setAccessibleName(tr("Find in prompts, texts and titles"))
        self.search.setToolTip(
            tr("Words or parts of words, in prompts, texts and titles; all of them have to be there")
        )
        self._typing = QTimer(self, interval=TYPING_MS)
        self._typing.setSingleShot(True)
        self._typing.timeout.connect(lambda: self.searchChanged.emit(self.query))
        self.search.textChanged.connect(lambda _text: self._typing.start())

    def _lay_out(self) -> None:
        searching, offer = QWidget(), QWidget()
        row_of(searching, MARGIN, MARGIN, below=MARGIN // 2).addWidget(self.search)
        self.empty_action = FillButton(tr("Run this prompt"), offer)
        column = QVBoxLayout(offer)
        column.setContentsMargins(MARGIN, 0, MARGIN, MARGIN)
        column.setSpacing(MARGIN // 2)
        column.addWidget(self.empty)
        column.addWidget(self.empty_action)
        column.addStretch(1)
        self._empty_page = ScrollArea(widgetResizable=True)  # a low window cannot hold all of it
        self._empty_page.setFrameShape(QFrame.Shape.NoFrame)
        self._empty_page.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._empty_page.setWidget(offer)
        self._pages = QStackedWidget()
        for page in (self._empty_page, self.list):
            self._pages.addWidget(page)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        for part in (self.header, searching):
            column.addWidget(part)
        column.addWidget(self._pages, 1)
        column.addWidget(self.footer)

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
