"""The draft picker: one click takes one draft model; ticking more merges what they draft."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QObject, QRect, QRectF, Qt, Signal, Slot
from PySide6.QtGui import QKeyEvent, QMouseEvent, QPainter, QPen
from PySide6.QtWidgets import QWidget

from app.widgets.drafter_marks import paint_drafter_mark
from app.widgets.painted_rows import Index
from app.widgets.picker_combo import SUBTITLE, PickerCombo, PickerItem, TwoLineDelegate
from resources.language import tr

if TYPE_CHECKING:
    from PySide6.QtWidgets import QStyleOptionViewItem

MAX_DRAFTERS = 4
"""Draft models at once; more cost more than they guess."""
_BOX_WIDTH = 42
"""Width of the column of boxes."""


def _hint_item() -> PickerItem:
    return PickerItem(tr("Tick to draft with several"), None, reason=tr("Their guesses are merged into one tree."))


class _TickDelegate(TwoLineDelegate):
    """An item with a box at its right end: empty, or with the mark the drafter has in the speculation view."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        assert isinstance(parent, DraftPicker)
        self._picker = parent

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        if self.theme is None or not self._picker.has_boxes:
            super().paint(painter, option, index)
            return
        whole = QRect(option.rect)
        option.rect = whole.adjusted(0, 0, -self.theme.px(_BOX_WIDTH), 0)
        super().paint(painter, option, index)
        option.rect = whole
        if index.flags() & Qt.ItemFlag.ItemIsEnabled:
            self._paint_box(painter, whole, index)

    def _paint_box(self, painter: QPainter, row: QRect, index: Index) -> None:
        theme = self.theme
        assert theme is not None
        side = theme.px(20)
        left = row.right() - (theme.px(_BOX_WIDTH) + side) / 2
        box = QRectF(left, row.center().y() - side / 2 + 1, side, side)
        chosen = self._picker.chosen
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if index.data(Qt.ItemDataRole.UserRole) in chosen:
            paint_drafter_mark(painter, theme, chosen.index(index.data(Qt.ItemDataRole.UserRole)), box)
        else:
            painter.setPen(QPen(theme.color("faint"), 1.4 * theme.scale))
            painter.setBrush(theme.color("field"))
            painter.drawRoundedRect(box.adjusted(1, 1, -1, -1), 4, 4)
        painter.restore()


class DraftPicker(PickerCombo):
    """Draft models by name, the first chosen one first. A click on a line takes that one alone; its box, or Space,
    adds it to the others or takes it away."""

    chosenChanged = Signal()
    delegate_class = _TickDelegate

    def __init__(self, name: str, label: str, width: int = 160, parent: QWidget | None = None) -> None:
        super().__init__(name, label, width, parent)
        self._additional: list[str] = []
        self.setToolTip(tr("The small model that runs ahead. Tick several to merge their guesses."))
        self.activated.connect(self._on_activated)

    @property
    def chosen(self) -> tuple[str, ...]:
        """Names in the order they were chosen; empty when there is none."""
        first = self.currentData()
        return (str(first), *self._additional) if first else ()

    @property
    def has_boxes(self) -> bool:
        """Whether there is more than one to choose from."""
        return len(self._usable()) > 1

    def offer(self, items: Iterable[PickerItem]) -> None:
        """Replace the list; what was chosen stays as far as it can be, else the first that can be is taken."""
        wanted = self.chosen
        listed = list(items)
        several = sum(not item.reason for item in listed) > 1
        self.set_items([*listed, _hint_item()] if several else listed)
        self.choose_all(wanted)

    def select_data(self, data: object) -> bool:
        """Take that one alone; False when it is not listed."""
        self._additional = []
        found = super().select_data(data)
        self._update_summary()
        return found

    def choose_all(self, names: Sequence[str]) -> list[str]:
        """Take these, in this order; the names that are not listed or cannot draft. Never leaves nothing chosen."""
        usable = self._usable()
        taken = list(dict.fromkeys(name for name in names if name in usable))[:MAX_DRAFTERS]
        first = taken[0] if taken else self.currentData() if self.currentData() in usable else next(iter(usable), None)
        self.setCurrentIndex(self.findData(first) if first else -1)
        self._additional = taken[1:]
        self._update_summary()
        return [name for name in names if name not in taken]

    def unsupported_reason(self, name: str) -> str | None:
        """The reason a listed model cannot draft; empty when it can, None when it is not listed."""
        row = self.findData(name)
        if row < 0:
            return None
        return "" if name in self._usable() else str(self.itemData(row, SUBTITLE))

    def toggle(self, name: str) -> None:
        """Add it to the chosen ones, or take it away; the last one stays."""
        chosen = list(self.chosen)
        if name in chosen and len(chosen) > 1:
            chosen.remove(name)
        elif name not in chosen and len(chosen) < MAX_DRAFTERS:
            chosen.append(name)
        self.choose_all(chosen)
        if self.is_open:
            self.view().viewport().update()

    def showPopup(self) -> None:
        """Open the list, and hear what is done in it."""
        super().showPopup()
        for part in (self.view(), self.view().viewport()):
            part.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Boxes and Space tick; the list stays open."""
        if isinstance(event, QMouseEvent) and event.type() == QEvent.Type.MouseButtonRelease:
            index = self.view().indexAt(event.position().toPoint())
            if index.isValid() and self._is_box(event.position().x(), self.view().visualRect(index)):
                return self._tick(index)
        elif isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress and event.key() == Qt.Key.Key_Space:
            return self._tick(self.view().currentIndex())
        return super().eventFilter(watched, event)

    def _is_box(self, x: float, row: QRect) -> bool:
        width = self._theme.px(_BOX_WIDTH) if self._theme is not None else _BOX_WIDTH
        return self.has_boxes and x > row.right() - width

    def _tick(self, index: Index) -> bool:
        name = index.data(Qt.ItemDataRole.UserRole)
        if self.has_boxes and name in self._usable():
            self.toggle(str(name))
        return True

    def _usable(self) -> list[str]:
        model = self.model()
        rows = (row for row in range(self.count()) if model.index(row, 0).flags() & Qt.ItemFlag.ItemIsEnabled)
        return [str(self.itemData(row)) for row in rows if self.itemData(row)]

    def _title(self) -> str:
        return tr("{count} drafts, merged").format(count=len(self.chosen)) if self._additional else super()._title()

    @Slot()
    def _on_activated(self) -> None:
        self._additional = []
        self._update_summary()

    def _update_summary(self) -> None:
        titles = [self.itemText(self.findData(name)) for name in self.chosen]
        self.set_subtitle(", ".join(titles) if self._additional else None)
        self.chosenChanged.emit()
