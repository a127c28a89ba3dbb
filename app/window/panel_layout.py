"""Visibility and width of the panels around the views."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

from PySide6.QtCore import QByteArray, QEvent, QObject, QSize, Signal, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QAbstractButton, QMainWindow, QWidget

from decodescope.app.panels.window_layout import PREFERRED_WIDTHS, SideSplitter
from decodescope.app.storage.settings import WindowLayout
from decodescope.app.widgets.screen import screen_of


class ClosablePanel(NamedTuple):
    """A panel that can be closed, and its button in the status line."""

    widget: QWidget
    toggle: QAbstractButton


class PanelLayout(QObject):
    """Opens and closes the panels. `changed`: visibility of all panels, by action name."""

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
        """Visibility of the panels, by action name."""
        return {
            "toggle_setup": self._is_open[self._setup],
            "toggle_timeline": self._is_open[self._timeline],
            "toggle_inspector": self._is_open[self._inspector],
        }

    @Slot()
    def toggle_setup(self) -> None:
        """Show or hide the setup panel."""
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
        """Show the setup panel."""
        self._set(self._setup, True)

    @Slot()
    def show_inspector(self) -> None:
        """Show the inspector."""
        self._set(self._inspector, True)

    @Slot()
    def make_room_for_inspector(self) -> None:
        """Show the inspector; hide the setup panel if there is not enough space for both."""
        self._set(self._inspector, True)
        self._splitter.distribute_width()
        if not self._inspector.widget.width() or not self._splitter.sizes()[2]:
            self._set(self._setup, False)

    def restore(self, layout: WindowLayout) -> None:
        """Restore visibility and width of the panels."""
        self._set(self._setup, layout.setup)
        self._set(self._timeline, layout.timeline)
        self._set(self._inspector, layout.inspector)
        self._splitter.set_preferred_widths(layout.sides or PREFERRED_WIDTHS)

    def store(self, layout: WindowLayout) -> None:
        """Store visibility and width of the panels in the settings."""
        layout.setup = self._is_open[self._setup]
        layout.timeline = self._is_open[self._timeline]
        layout.inspector = self._is_open[self._inspector]
        layout.sides = list(self._splitter.preferred_widths)

    def set_hidden(self, on: bool) -> None:
        """Hide all panels, or show the open ones again."""
        self._is_hidden = on
        for panel, is_open in self._is_open.items():
            panel.widget.setVisible(is_open and not on)

    def _set(self, panel: ClosablePanel, is_open: bool) -> None:
        self._is_open[panel] = is_open
        panel.widget.setVisible(is_open and not self._is_hidden)
        panel.toggle.setChecked(is_open)
        self.changed.emit(self.is_open)


class ViewOnlyMode(QObject):
    """Hides and restores the parts around the view. `resized`: the window was resized in this mode."""

    resized = Signal()

    def __init__(self, window: QMainWindow, around: Sequence[QWidget], layout: PanelLayout) -> None:
        """`around`: widgets to hide besides the panels of `layout`."""
        super().__init__(layout)
        self._window, self._around, self._layout = window, around, layout
        self._geometry = QByteArray()
        self._size = QSize()
        self._focus: QWidget | None = None

    def hide_surroundings(self) -> None:
        """Hide the surrounding parts."""
        self._geometry, self._focus = self._window.saveGeometry(), self._window.focusWidget()
        self._layout.set_hidden(True)
        for part in self._around:
            part.hide()

    def show_full_screen(self) -> bool:
        """Show the window in full screen, on the audience's screen if there is one; return True then. A window larger
        than its screen is left as it is, for screenshots.
        """
        window, hall = self._window, audience_screen(QGuiApplication.screens(), QGuiApplication.primaryScreen())
        self._size = window.size()
        window.installEventFilter(self)
        room = screen_of(window).size()
        if not window.isVisible() or window.width() > room.width() or window.height() > room.height():
            return False
        if hall is not None:
            window.setGeometry(hall.geometry())
        window.showFullScreen()
        return hall is not None

    def stop_watching(self) -> None:
        """Stop emitting `resized`."""
        self._window.removeEventFilter(self)

    def show_surroundings(self) -> None:
        """Show the hidden parts again."""
        for part in self._around:
            part.show()
        self._layout.set_hidden(False)

    def restore(self) -> None:
        """Restore geometry and focus."""
        if self._window.isFullScreen():
            self._window.restoreGeometry(self._geometry)
        if self._focus is not None:
            self._focus.setFocus()
            self._focus = None

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Emit `resized` when the size changes."""
        if watched is self._window and event.type() == QEvent.Type.Resize and self._window.size() != self._size:
            self._size = self._window.size()
            self.resized.emit()
        return False


S = TypeVar("S")


def audience_screen(screens: Sequence[S], own: S) -> S | None:
    """Return the audience's screen: the first that is not the presenter's; None if there is only one."""
    return next((screen for screen in screens if screen != own), None)
