"""The list of kept runs for Qt: all their ids, and of what is on the screen the rest, a page at a time."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

from PySide6.QtCore import QAbstractListModel, QModelIndex, QObject, QPersistentModelIndex, Qt, Signal

from app.panels.history import history_wording
from app.storage.history.history_record import HistoryRecord
from app.widgets.plain_text import tooltip

PAGE_SIZE = 64
MAX_PAGES = 16
RECORD_ROLE = Qt.ItemDataRole.UserRole
ModelIndex = QModelIndex | QPersistentModelIndex
_ROOT = QModelIndex()
LoadRecords = Callable[[Sequence[str]], list[HistoryRecord]]


class HistoryModel(QAbstractListModel):
    """`renameRequested(id, title)` when a row was edited."""

    renameRequested = Signal(str, str)

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._ids: list[str] = []
        self._load: LoadRecords = _load_nothing
        self._pages: OrderedDict[int, dict[str, HistoryRecord]] = OrderedDict()

    def show_runs(self, ids: Sequence[str], load: LoadRecords) -> None:
        """List these; `load` gives the records of some of them."""
        self.beginResetModel()
        self._ids, self._load = list(ids), load
        self._pages.clear()
        self.endResetModel()

    def record(self, row: int) -> HistoryRecord | None:
        """What is kept of the run in that row; None where it is gone."""
        if not 0 <= row < len(self._ids):
            return None
        page = row // PAGE_SIZE
        if page not in self._pages:
            found = self._load(self._ids[page * PAGE_SIZE : (page + 1) * PAGE_SIZE])
            self._pages[page] = {record.id: record for record in found}
            while len(self._pages) > MAX_PAGES:
                self._pages.popitem(last=False)
        return self._pages[page].get(self._ids[row])

    def row_of(self, run: str) -> int:
        """Where a run stands; −1 where it does not."""
        return self._ids.index(run) if run in self._ids else -1

    def rowCount(self, parent: ModelIndex = _ROOT) -> int:
        return 0 if parent.isValid() else len(self._ids)

    def data(self, index: ModelIndex, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        record = self.record(index.row())
        if record is None:
            return None
        if role == RECORD_ROLE:
            return record
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.EditRole):
            return record.name
        if role == Qt.ItemDataRole.ToolTipRole:
            return tooltip(history_wording.tooltip_text(record))
        if role == Qt.ItemDataRole.AccessibleTextRole:
            return history_wording.accessible_text(record, time.time())
        return None

    def flags(self, index: ModelIndex) -> Qt.ItemFlag:
        return super().flags(index) | Qt.ItemFlag.ItemIsEditable

    def setData(self, index: ModelIndex, value: Any, role: int = Qt.ItemDataRole.EditRole) -> bool:
        """A new title; what stands there anyway is none."""
        record = self.record(index.row())
        if record is None or role != Qt.ItemDataRole.EditRole or value == record.name:
            return False
        self.renameRequested.emit(record.id, str(value))
        return True


def _load_nothing(_runs: Sequence[str]) -> list[HistoryRecord]:
    return []
