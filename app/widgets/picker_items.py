"""Items and commands of a picker, and the part of the picker that its list uses."""

from __future__ import annotations

from typing import Any, NamedTuple

from PySide6.QtCore import QRectF, Signal
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import QWidget

from decodescope.app.theme.theme import Theme
from decodescope.app.theme.themed import Themed
from decodescope.app.widgets import icons
from decodescope.app.widgets.inputs import LazyComboBox
from decodescope.resources.language import join_names


class PickerItem(NamedTuple):
    """One list item. With a `reason` it is shown but cannot be chosen."""

    title: str
    data: Any
    subtitle: str = ""
    reason: str = ""
    help: str = ""
    group: str = ""
    """Title of its group; adjacent items with the same title are one group."""
    icon: str = ""
    columns: tuple[str, ...] = ()
    """Short texts at the right, aligned with those of the other items."""
    badge: str = ""
    """A word beside the title, such as “Start here”."""
    keywords: str = ""
    """Further words by which a search finds it."""

    @property
    def accessible_text(self) -> str:
        """The item's text for screen readers."""
        parts = (self.title, self.badge, self.reason or self.subtitle, *self.columns)
        return join_names(part for part in parts if part)


class PickerCommand(NamedTuple):
    """A button below the list."""

    name: str
    title: str
    description: str
    icon: str


class Picker(Themed, LazyComboBox):
    """A box with items, as far as its list uses it. `commandChosen(name)`: a button of the list was pressed."""

    commandChosen = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.items: tuple[PickerItem, ...] = ()
        """The current list items."""
        self.recent_items: tuple[PickerItem, ...] = ()
        """Items that the popup shows once more, above all others."""
        self.commands: tuple[PickerCommand, ...] = ()
        """The buttons below the list."""
        self.note = ""
        """A sentence below the list."""

    def choose(self, data: Any) -> None:
        """Select the item with that data as a click in the list does, and close the list."""
        self.hidePopup()
        index = self.findData(data)
        if index >= 0:
            self.setCurrentIndex(index)
            self.activated.emit(index)

    def is_marked(self, data: Any) -> bool:
        """Return whether the popup marks the item as chosen."""
        return bool(data == self.currentData())

    def paint_mark(self, painter: QPainter, theme: Theme, rect: QRectF, data: Any) -> None:
        """Paint the mark at the right end of a row: a tick if it is chosen."""
        if self.is_marked(data):
            icons.paint_icon(painter, "check", theme.accent, rect)

    def press_mark(self, data: Any) -> bool:
        """Handle a press on that mark; return whether it did something other than choosing the row."""
        return False
