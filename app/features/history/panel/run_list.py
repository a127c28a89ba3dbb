"""History list: click or Enter opens a run, F2 renames it, Delete deletes it; the menu offers the same."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from PySide6.QtCore import (
    QAbstractListModel,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    QPoint,
    QRect,
    QRectF,
    Qt,
    Signal,
    Slot,
)
from PySide6.QtGui import QFont, QFontMetrics, QKeyEvent, QPainter
from PySide6.QtWidgets import QAbstractItemView, QListView, QMenu, QStyle, QStyleOptionViewItem, QWidget

from decodescope.app.features.history.panel import history_wording
from decodescope.app.features.history.store.history_record import HistoryRecord
from decodescope.app.theme.theme import Theme
from decodescope.app.theme.themed import Themed
from decodescope.app.widgets import icons
from decodescope.app.widgets.building import set_up
from decodescope.app.widgets.painted_rows import ABOVE, BETWEEN, Index, LinesDelegate, paint_line
from decodescope.app.widgets.plain_text import tooltip
from decodescope.resources.language import tr

PAGE_SIZE = 64
MAX_PAGES = 16
RECORD_ROLE = Qt.ItemDataRole.UserRole
ModelIndex = QModelIndex | QPersistentModelIndex
_ROOT = QModelIndex()
LoadRecords = Callable[[Sequence[str]], list[HistoryRecord]]


class HistoryModel(QAbstractListModel):
    """List model of the kept runs. Emits `renameRequested(id, title)` when a row was edited."""

    renameRequested = Signal(str, str)

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._ids: list[str] = []
        self._load: LoadRecords = _load_nothing
        self._pages: OrderedDict[int, dict[str, HistoryRecord]] = OrderedDict()

    def show_runs(self, ids: Sequence[str], load: LoadRecords) -> None:
        """List these runs; `load` returns the records of some of them."""
        self.beginResetModel()
        self._ids, self._load = list(ids), load
        self._pages.clear()
        self.endResetModel()

    def record(self, row: int) -> HistoryRecord | None:
        """Return the record of the run in `row`, or None if it no longer exists."""
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
        """Return the row of a run, or −1."""
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
        """Request a new title, unless it is unchanged."""
        record = self.record(index.row())
        if record is None or role != Qt.ItemDataRole.EditRole or value == record.name:
            return False
        self.renameRequested.emit(record.id, str(value))
        return True


def _load_nothing(_runs: Sequence[str]) -> list[HistoryRecord]:
    return []


SIDE, GAP = 16, 8
MARK_WIDTH = 3
"""Width of the bar that marks the shown run."""


class RunDelegate(LinesDelegate):
    """Paint three lines; all rows are equally high, so that a long list is laid out quickly."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.shown_run = ""
        """Id of the run shown in the window."""

    def line_fonts(self, theme: Theme) -> tuple[QFont, ...]:
        return _fonts(theme)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        record = index.data(RECORD_ROLE)
        if self.theme is None or not isinstance(record, HistoryRecord):
            return
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        self._paint_background(painter, option, record)
        lines = self._lines(option.rect)
        self._paint_name(painter, lines[0], record)
        fonts, colors = _fonts(self.theme), (self.theme.color("text"), self.theme.color("muted"))
        details = f"{history_wording.time_text(record.made, time.time())} · {history_wording.summary_text(record)}"
        for line, font, color, text in zip(lines[1:], fonts[1:], colors, (record.words or "–", details), strict=True):
            paint_line(painter, line, font, color, text)
        painter.restore()

    def updateEditorGeometry(self, editor: QWidget, option: QStyleOptionViewItem, index: Index) -> None:
        """Place the editor over the first line."""
        line = self._lines(option.rect)[0]
        height = max(line.height(), editor.sizeHint().height())
        editor.setGeometry(QRect(line.left() - 6, line.center().y() - height // 2, line.width() + 12, height))

    def _lines(self, row: QRect) -> list[QRect]:
        """Return the rectangles of the three lines."""
        theme = self.theme
        if theme is None:
            return [row] * 3
        left, width = row.left() + theme.space(SIDE), row.width() - 2 * theme.space(SIDE)
        top, lines = row.top() + theme.space(ABOVE), []
        for font in _fonts(theme):
            height = QFontMetrics(font).lineSpacing()
            lines.append(QRect(left, top, width, height))
            top += height + theme.px(BETWEEN)
        return lines

    def _paint_background(self, painter: QPainter, option: QStyleOptionViewItem, record: HistoryRecord) -> None:
        theme = self.theme
        assert theme is not None
        state = option.state
        row = QRectF(option.rect)
        if state & (QStyle.StateFlag.State_Selected | QStyle.StateFlag.State_MouseOver):
            selected = bool(state & QStyle.StateFlag.State_Selected)
            painter.fillRect(row, theme.color("tint" if selected else "hover"))
        if record.id == self.shown_run:
            painter.fillRect(QRectF(row.left(), row.top(), theme.px(MARK_WIDTH), row.height()), theme.color("accent"))
        painter.fillRect(QRectF(row.left(), row.bottom() - 1, row.width(), 1), theme.color("line"))
        if state & QStyle.StateFlag.State_HasFocus:
            painter.setPen(theme.color("accent"))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRect(row.adjusted(0.5, 0.5, -0.5, -1.5))

    def _paint_name(self, painter: QPainter, line: QRect, record: HistoryRecord) -> None:
        """Paint the name, and a pin at the right if the run is pinned."""
        theme = self.theme
        assert theme is not None
        room = QRect(line)
        if record.pinned:
            side = theme.px(13)
            left = line.right() - side
            icons.paint_icon(painter, "pin", theme.accent, QRectF(left, line.center().y() - side / 2 + 1, side, side))
            room.setRight(left - theme.px(GAP))
        paint_line(painter, room, _fonts(theme)[0], theme.color("text"), record.name)


def _fonts(theme: Theme) -> tuple[QFont, QFont, QFont]:
    return theme.font(13, 600), theme.font(12), theme.font(11, tabular=True)


class RunList(Themed, QListView):
    """List of kept runs. Emits `openRequested(id)`, `picked(record or None)` when the current row changes, and
    `menuRequested(QMenu)` to have a menu filled.
    """

    openRequested = Signal(str)
    deleteRequested = Signal()
    picked = Signal(object)
    menuRequested = Signal(QMenu)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        set_up(self, name="historyList", accessible_name=tr("Saved runs"))
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
        """The record of the current row."""
        return self.runs.record(self.currentIndex().row())

    def restyle(self, theme: Theme) -> None:
        self._delegate.theme = theme
        self.verticalScrollBar().setSingleStep(theme.px(24))
        self.scheduleDelayedItemsLayout()
        self.viewport().update()

    def mark_shown(self, run: str) -> None:
        """Mark the run that the window shows."""
        self._delegate.shown_run = run
        self.viewport().update()

    def select(self, run: str, fallback_row: int = 0) -> None:
        """Make a run's row the current one, or row `fallback_row` if the run no longer exists."""
        row = self.runs.row_of(run)
        row = row if row >= 0 else min(fallback_row, self.runs.rowCount() - 1)
        self.setCurrentIndex(self.runs.index(row))
        self.picked.emit(self.record)

    @Slot()
    def open_current(self) -> None:
        """Request to show the current run."""
        self._on_open(self.currentIndex())

    @contextmanager
    def keep_scroll_position(self) -> Iterator[None]:
        """Keep the scroll position while other runs are listed."""
        place = self.verticalScrollBar().value()
        yield
        self.doItemsLayout()
        self.verticalScrollBar().setValue(place)

    def rename(self) -> None:
        """Edit the current run's title in place."""
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
