"""Completions that are dragged into an order; two that are as good as each other tie."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QSize, Qt, Signal, Slot
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QAbstractItemView, QListWidget, QListWidgetItem, QWidget

from resources.language import tr

_TIES = Qt.ItemDataRole.UserRole
_TEXT = Qt.ItemDataRole.UserRole + 1


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
        self.model().rowsMoved.connect(self._number)
        self.model().rowsInserted.connect(self._number)

    def show_texts(self, texts: Sequence[str]) -> None:
        """These, in no order yet."""
        self.clear()
        for text in texts:
            item = QListWidgetItem(text)
            item.setData(_TEXT, text)
            item.setData(_TIES, False)
            item.setSizeHint(QSize(0, self.fontMetrics().height() * 4))
            self.addItem(item)
        self._number()

    @property
    def groups(self) -> list[list[str]]:
        """The completions, the best first; those that tie together."""
        found: list[list[str]] = []
        for item in self._items():
            if found and item.data(_TIES):
                found[-1].append(item.data(_TEXT))
            else:
                found.append([item.data(_TEXT)])
        return found

    @Slot()
    def tie(self) -> None:
        """The current one is as good as the one above, or no longer so."""
        if self.currentRow() > 0:
            item = self.currentItem()
            item.setData(_TIES, not item.data(_TIES))
            self._number()

    def shift(self, by: int) -> None:
        """The current one up or down."""
        place = self.currentRow()
        if min(place, place + by) >= 0 and place + by < self.count():
            item = self.takeItem(place)
            self.insertItem(place + by, item)
            self.setCurrentRow(place + by)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """= and Alt+arrows."""
        step = {Qt.Key.Key_Up: -1, Qt.Key.Key_Down: 1}.get(Qt.Key(event.key()))
        if event.text() == "=":
            self.tie()
        elif step is not None and event.modifiers() & Qt.KeyboardModifier.AltModifier:
            self.shift(step)
        else:
            super().keyPressEvent(event)

    def _items(self) -> list[QListWidgetItem]:
        return [self.item(place) for place in range(self.count())]

    @Slot()
    def _number(self) -> None:
        """Each says its rank; those that tie say the same one."""
        rank = 0
        for place, item in enumerate(self._items()):
            if item.data(_TEXT) is None:
                continue
            rank += not (item.data(_TIES) and place)
            item.setText(f"{rank} · {item.data(_TEXT)}")
        self.changed.emit()
