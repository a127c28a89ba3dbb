"""What the keyboard does in the whole window: F6 from room to room, Shift+F10 the menu of what has the cursor."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QObject, Qt, Slot
from PySide6.QtGui import QContextMenuEvent
from PySide6.QtWidgets import QApplication, QWidget

from app.panels.centre import Centre
from app.window.window_parts import Panels


class FocusRegions(QObject):
    """Toolbar, what is set, views, inspector, timeline, status line; one that is closed is passed by."""

    def __init__(self, panels: Panels, stops: Callable[[], Sequence[QWidget]]) -> None:
        """`stops()`: every widget that Tab comes to."""
        super().__init__(panels.centre)
        self._panels, self._stops = panels, stops
        self._last_focus: dict[QWidget, QWidget] = {}

    @Slot()
    def next(self) -> None:
        """F6."""
        self._go(1)

    @Slot()
    def back(self) -> None:
        """Shift+F6."""
        self._go(-1)

    @Slot()
    def open_menu(self) -> None:
        """Shift+F10, which not every desktop turns into what the Menu key does."""
        here = QApplication.focusWidget()
        if here is not None and QApplication.activePopupWidget() is None:
            center = here.rect().center()
            reason = QContextMenuEvent.Reason.Keyboard
            QApplication.sendEvent(here, QContextMenuEvent(reason, center, here.mapToGlobal(center)))

    def _regions(self) -> list[tuple[QWidget, list[QWidget]]]:
        """Those that are open and have something to go to, with that."""
        panels, stops = self._panels, self._stops()
        rooms = (
            panels.toolbar, panels.setup, *panels.centre.columns, panels.inspector, panels.timeline, panels.status
        )  # fmt: skip
        found = ((room, [stop for stop in stops if room.isAncestorOf(stop)]) for room in rooms)
        return [(room, inside) for room, inside in found if inside]

    def _go(self, by: int) -> None:
        rooms, here = self._regions(), QApplication.focusWidget()
        if not rooms:
            return
        indices = [n for n, (_room, inside) in enumerate(rooms) if here in inside]
        if indices and here is not None:
            self._last_focus[rooms[indices[0]][0]] = here
        index = (indices[0] + by if indices else 0 if by > 0 else -1) % len(rooms)
        room, inside = rooms[index]
        last = self._last_focus.get(room)
        stop = last if last in inside else _first_stop(room, inside, self._panels.centre)
        stop.setFocus(Qt.FocusReason.TabFocusReason if by > 0 else Qt.FocusReason.BacktabFocusReason)


def _first_stop(room: QWidget, inside: Sequence[QWidget], centre: Centre) -> QWidget:
    """Of a column the view, not its tabs; else what Tab comes to first."""
    for column in centre.columns:
        if column is room:
            return next((stop for stop in inside if column.current_view.isAncestorOf(stop)), inside[0])
    return inside[0]
