"""Commands of the program by name, for shortcuts, menus and the palette."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from PySide6.QtCore import QObject, Slot
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QWidget

from decodescope.app.panels.centre import Centre
from decodescope.app.panels.commands import MAX_VIEW_KEYS


class Actions(QObject):
    """Table of commands by name; titles, menus and shortcuts are in `app.panels.commands`."""

    def __init__(self, table: Mapping[str, Callable[[], object]]) -> None:
        super().__init__()
        self.table = dict(table)

    @Slot(str)
    def do(self, name: str) -> None:
        """Run a command. Raises KeyError if there is none called `name`."""
        self.table[name]()


def bind_view_keys(window: QWidget, centre: Centre) -> None:
    """Bind Ctrl+1, Ctrl+2 … to the views."""
    for number in range(MAX_VIEW_KEYS):
        bound = QShortcut(QKeySequence(f"Ctrl+{number + 1}"), window)
        bound.activated.connect(lambda number=number: centre.show_number(number))
