"""Which of the panels around the views are open, and how wide they are."""

from __future__ import annotations

from typing import NamedTuple

from PySide6.QtCore import QObject, Signal, Slot
from PySide6.QtWidgets import QAbstractButton, QWidget

from app.panels.side_splitter import PREFERRED_WIDTHS, SideSplitter
from app.storage.settings import WindowLayout


class ClosablePanel(NamedTuple):
    """A panel that can be closed, and the button at the foot of the window that does it."""

    widget: QWidget
    toggle: QAbstractButton


class PanelLayout(QObject):
    """Opens and closes the panels; `changed` with the states of all, by the action that changes them."""

    changed = Signal(dict)

    def __init__(
        self, setup: ClosablePanel, timeline: ClosablePanel, inspector: ClosablePanel, splitter: SideSplitter
    ) -> None:
        super().__init__(splitter)
        self._setup, self._timeline, self._inspector = setup, timeline, inspector
        self._splitter = splitter
        self._is_open = {panel: not panel.widget.isHidden() for panel in (setup, timeline, inspector)}
        self._is_hidden = False
        for panel, slot in (
            (setup, self.toggle_setup),
            (timeline, self.toggle_timeline),
            (inspector, self.toggle_inspector),
        ):
            panel.toggle.clicked.connect(slot)

    @property
    def is_open(self) -> dict[str, bool]:
        """The panels' states, by the action that changes them."""
        return {
            "toggle_setup": self._is_open[self._setup],
            "toggle_timeline": self._is_open[self._timeline],
            "toggle_inspector": self._is_open[self._inspector],
        }

    @Slot()
    def toggle_setup(self) -> None:
        """Show or hide prompt and parameters."""
        self._set(self._setup, not self._is_open[self._setup])

    @Slot()
    def toggle_timeline(self) -> None:
        """Show or hide the timeline."""
        self._set(self._timeline, not self._is_open[self._timeline])

    @Slot()
    def toggle_inspector(self) -> None:
        """Show or hide the inspector."""
        self._set(self._inspector, not self._is_open[self._inspector])

    @Slot()
    def show_setup(self) -> None:
        """Open prompt and parameters, if they are not."""
        self._set(self._setup, True)

    @Slot()
    def show_inspector(self) -> None:
        """Open the inspector, if it is not."""
        self._set(self._inspector, True)

    @Slot()
    def make_room_for_inspector(self) -> None:
        """Open the inspector; where both side panels leave too little room for it, close the other one."""
        self._set(self._inspector, True)
        self._splitter.distribute_width()
        if not self._inspector.widget.width() or not self._splitter.sizes()[2]:
            self._set(self._setup, False)

    def restore(self, layout: WindowLayout) -> None:
        """Open the panels that were open, as wide as they were."""
        self._set(self._setup, layout.setup)
        self._set(self._timeline, layout.timeline)
        self._set(self._inspector, layout.inspector)
        self._splitter.set_preferred_widths(layout.sides or PREFERRED_WIDTHS)

    def store(self, layout: WindowLayout) -> None:
        """Write what is open, and how wide, into the settings."""
        layout.setup = self._is_open[self._setup]
        layout.timeline = self._is_open[self._timeline]
        layout.inspector = self._is_open[self._inspector]
        layout.sides = list(self._splitter.preferred_widths)

    def set_hidden(self, on: bool) -> None:
        """Let no panel be seen, whatever is opened meanwhile, or let those that are open be seen again."""
        self._is_hidden = on
        for panel, is_open in self._is_open.items():
            panel.widget.setVisible(is_open and not on)

    def _set(self, panel: ClosablePanel, is_open: bool) -> None:
        self._is_open[panel] = is_open
        panel.widget.setVisible(is_open and not self._is_hidden)
        panel.toggle.setChecked(is_open)
        self.changed.emit(self.is_open)
