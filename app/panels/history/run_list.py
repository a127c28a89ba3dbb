"""The list itself: a click or Enter opens a run, F2 names it, Delete deletes it, and the menu says all that."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from PySide6.QtCore import QModelIndex, QPoint, Qt, Signal, Slot
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QAbstractItemView, QListView, QMenu, QWidget

from app.panels.history.history_model import HistoryModel
from app.panels.history.run_delegate import RunDelegate
from app.storage.history.history_record import HistoryRecord
from app.theme.theme import Theme
from resources.language import tr


class RunList(QListView):
    """`openRequested(id)`; `picked(Record or None)` when another row is the current one; `menuRequested(QMenu)`: fill it."""

    openRequested = Signal(str)
    deleteRequested = Signal()
    picked = Signal(object)
    menuRequested = Signal(QMenu)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("historyList")
        self.setAccessibleName(tr("Kept runs"))
        self.runs = HistoryModel(self)
        self._delegate = RunDelegate(self)
        self.setModel(self.runs)
        self.setItemDelegate(self._delegate)
        self.setUniformItemSizes(True)
        self.setMouseTracking(True)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setEditTriggers(QAbstractItemView.EditTrigger.EditKeyPressed)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.customContextMenuRequested.connect(self._on_menu)
        self.clicked.connect(self._on_open)
        self.selectionModel().currentChanged.connect(self._on_current)

    @property
    def record(self) -> HistoryRecord | None:
        """The run in the current row."""
        return self.runs.record(self.currentIndex().row())

    def set_theme(self, theme: Theme) -> None:
        """Colours and the height of the rows."""
        self._delegate.theme = theme
        self.verticalScrollBar().setSingleStep(theme.px(24))
        self.scheduleDelayedItemsLayout()
        self.viewport().update()

    def mark_shown(self, run: str) -> None:
        """That is the run that the window shows."""
        self._delegate.shown_run = run
        self.viewport().update()

    def select(self, run: str, fallback_row: int = 0) -> None:
        """Let a run's row be the current one; where it is gone, the one that has its place."""
        row = self.runs.row_of(run)
        row = row if row >= 0 else min(fallback_row, self.runs.rowCount() - 1)
        self.setCurrentIndex(self.runs.index(row))
        self.picked.emit(self.record)

    @Slot()
    def open_current(self) -> None:
        """Ask for the current run to be shown."""
        self._on_open(self.currentIndex())

    @contextmanager
    def keep_scroll_position(self) -> Iterator[None]:
        """What is in sight stays there while other runs are listed."""
        place = self.verticalScrollBar().value()
        yield
        self.doItemsLayout()
        self.verticalScrollBar().setValue(place)

    def rename(self) -> None:
        """Edit the current run's title in its place."""
        if self.currentIndex().isValid():
            self.scrollTo(self.currentIndex())
            self.edit(self.currentIndex())

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and self.currentIndex().isValid():
            self.open_current()
        elif event.key() == Qt.Key.Key_Delete and self.currentIndex().isValid():
            self.deleteRequested.emit()
        else:
            super().keyPressEvent(event)

    @Slot(QModelIndex)
    def _on_open(self, index: QModelIndex) -> None:
        record = self.runs.record(index.row())
        if record is not None:
            self.openRequested.emit(record.id)

    @Slot(QModelIndex, QModelIndex)
    def _on_current(self, _now: QModelIndex, _before: QModelIndex) -> None:
        self.picked.emit(self.record)

    @Slot(QPoint)
    def _on_menu(self, position: QPoint) -> None:
        index = self.indexAt(position)
        if index.isValid():
            self.setCurrentIndex(index)
            menu = QMenu(self)
            menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
            self.menuRequested.emit(menu)
            menu.popup(self.viewport().mapToGlobal(position))
