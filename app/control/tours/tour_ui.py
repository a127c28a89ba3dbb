"""The tour's panel and its spotlight: made when the first tour begins, and kept in step with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal, Slot
from PySide6.QtWidgets import QWidget

from app.control.tours.tour_targets import TourTargets
from app.state.tours import Tour
from app.theme.theme import Theme, theme_for
from resources.language import tr

if TYPE_CHECKING:
    from app.panels.tours.tour_panel import TourPanel
    from app.panels.tours.tour_spotlight import TourSpotlight


class TourUi(QObject):
    """`backRequested`, `nextRequested`, `playRequested`, `leaveRequested`: what is pressed in the panel."""

    backRequested = Signal()
    nextRequested = Signal()
    playRequested = Signal()
    leaveRequested = Signal()

    def __init__(self, over: QWidget, dock: Callable[[QWidget], None], targets: TourTargets) -> None:
        super().__init__(targets)
        self._over, self._dock, self.targets = over, dock, targets
        self._theme = theme_for("light")
        self.panel: TourPanel | None = None
        """None until the first tour begins, as is the spotlight."""
        self.spotlight: TourSpotlight | None = None

    def open(self) -> TourPanel:
        """The panel, on the screen and with the keyboard."""
        panel = self.panel or self._make_panel()
        panel.show()
        panel.take_focus()
        return panel

    def show_step(self, tour: Tour, index: int, text: str, is_busy: bool = False) -> None:
        """Show a step's sentence, or what there is in its place."""
        if self.panel is not None:
            self.panel.show_step(tr(tour.title), index, len(tour.steps), text, is_busy)

    def point_at(self, name: str) -> None:
        """Draw the ring around what has that name; around nothing without one."""
        if self.spotlight is not None:
            self.spotlight.point_at((lambda: self.targets.find(name)) if name else None)

    def show_playing(self, is_playing: bool) -> None:
        """Whether the tour goes on by itself."""
        if self.panel is not None:
            self.panel.show_playing(is_playing)

    def close(self) -> None:
        """Nothing is pointed at any more."""
        self.point_at("")
        if self.panel is not None:
            self.panel.restore_focus()
            self.panel.hide()

    @Slot(object)
    def set_theme(self, theme: Theme) -> None:
        """Colours and sizes, now or once it is there."""
        self._theme = theme
        if self.panel is not None and self.spotlight is not None:
            self.panel.set_theme(theme)
            self.spotlight.set_theme(theme)

    def _make_panel(self) -> TourPanel:
        from app.panels.tours.tour_panel import TourPanel
        from app.panels.tours.tour_spotlight import TourSpotlight

        self.panel = TourPanel()
        self.spotlight = TourSpotlight(self._over, self.panel)
        self._dock(self.panel)
        for signal, passed_on in (
            (self.panel.backRequested, self.backRequested),
            (self.panel.nextRequested, self.nextRequested),
            (self.panel.playRequested, self.playRequested),
            (self.panel.leaveRequested, self.leaveRequested),
        ):
            signal.connect(passed_on)
        self.set_theme(self._theme)
        return self.panel
