"""Keyboard navigation of the window: F6 between regions, Shift+F10 for the context menu."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QObject, Qt, Slot
from PySide6.QtGui import QContextMenuEvent
from PySide6.QtWidgets import QApplication, QWidget

from decodescope.app.panels.centre import Centre
from decodescope.app.window.window_parts import Panels


class FocusRegions(QObject):
    """Regions: toolbar, setup, views, inspector, timeline, status line; closed ones are skipped."""

    def __init__(self, panels: Panels, stops: Callable[[], Sequence[QWidget]]) -> None:
        """`stops()`: all widgets in tab order."""
        super().__init__(panels.centre)
        self._panels, self._stops = panels, stops
        self._last_focus: dict[QWidget, QWidget] = {}

    @Slot()
    def next(self) -> None:
        """Go to the next region (F6)."""
        self._go(1)

    @Slot()
    def back(self) -> None:
        """Go to the previous region (Shift+F6)."""
        self._go(-1)

    @Slot()
    def open_menu(self) -> None:
        """Open the context menu of the focused widget (Shift+F10), which not every desktop supports."""
        here = QApplication.focusWidget()
        if here is not None and QApplication.activePopupWidget() is None:
            center = here.rect().center()
            reason = QContextMenuEvent.Reason.Keyboard
            QApplication.sendEvent(here, QContextMenuEvent(reason, center, here.mapToGlobal(center)))

    def _regions(self) -> list[tuple[QWidget, list[QWidget]]]:
        """Return the visible regions with their focusable widgets."""
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


def _first_stop(region: QWidget, inside: Sequence[QWidget], centre: Centre) -> QWidget:
    """Return the first widget to focus in a region: the view of a column, not its tabs."""
    for column in centre.columns:
        if column is region:
            return next((stop for stop in inside if column.current_view.isAncestorOf(stop)), inside[0])
    return inside[0]
