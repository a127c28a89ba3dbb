"""Completions that are dragged into an order; two that are as good as each other tie."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QSize, Qt, Signal, Slot
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QAbstractItemView, QListWidget, QListWidgetItem, QWidget

from resources.language import tr

_TIE_ROLE = Qt.ItemDataRole.UserRole
_TEXT_ROLE = Qt.ItemDataRole.UserRole + 1


class OrderList(QListWidget):
    """The best on top. `=` ties the current one with the one above; Alt+Up and Alt+Down move it. `changed`."""

    changed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("orderList")
        self.setAccessibleName(tr("Completions, the best on top"))
        self.setWordWrap(True)
        self.setSpacing(2)
        self.setDragDropMode(QAbstractItemView.DragDropMode.InternalMove)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.model().rowsMoved.connect(self._update_ranks)
        self.model().rowsInserted.connect(self._update_ranks)

    def show_texts(self, texts: Sequence[str]) -> None:
        """These, in no order yet."""
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
        """The completions, the best first; those that tie together."""
        result: list[list[str]] = []
        for item in self._items():
            if result and item.data(_TIE_ROLE):
                result[-1].append(item.data(_TEXT_ROLE))
            else:
                result.append([item.data(_TEXT_ROLE)])
        return result

    @Slot()
    def toggle_tie(self) -> None:
        """The current one is as good as the one above, or no longer so."""
        if self.currentRow() > 0:
            item = self.currentItem()
            item.setData(_TIE_ROLE, not item.data(_TIE_ROLE))
            self._update_ranks()

    def move_current(self, by: int) -> None:
        """The current one up or down."""
        row = self.currentRow()
        if min(row, row + by) >= 0 and row + by < self.count():
            item = self.takeItem(row)
            self.insertItem(row + by, item)
            self.setCurrentRow(row + by)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """= and Alt+arrows."""
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
        """Each says its rank; those that tie say the same one."""
        rank = 0
        for place, item in enumerate(self._items()):
            if item.data(_TEXT_ROLE) is None:
                continue
            rank += not (item.data(_TIE_ROLE) and place)
            item.setText(f"{rank} · {item.data(_TEXT_ROLE)}")
        self.changed.emit()
