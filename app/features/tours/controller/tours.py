"""Lazy access to the tours: nothing is imported before the first one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal, Slot
from PySide6.QtWidgets import QWidget

if TYPE_CHECKING:
    from decodescope.app.features.tours.controller.tour_player import TourPlayer, TourState


class Tours(QObject):
    """Starts tours. `setupRequested`, `inspectorRequested`: a panel must be opened; `playerCreated(TourPlayer)`:
    emitted once.
    """

    setupRequested = Signal()
    inspectorRequested = Signal()
    playerCreated = Signal(object)

    def __init__(self, make: Callable[[], TourPlayer], parent_window: QWidget) -> None:
        super().__init__(parent_window)
        self._make, self._parent_window = make, parent_window
        self._player: TourPlayer | None = None

    @property
    def player(self) -> TourPlayer:
        """The tour player, created on first use."""
        if self._player is None:
            player = self._player = self._make()
            player.ui.targets.setupRequested.connect(self.setupRequested)
            player.ui.targets.inspectorRequested.connect(self.inspectorRequested)
            self.playerCreated.emit(player)
        return self._player

    @property
    def is_on(self) -> bool:
        """Whether a tour is playing."""
        return self._player is not None and self._player.tour is not None

    @property
    def name(self) -> str:
        """Name of the playing tour; empty without one."""
        tour = self._player.tour if self._player is not None else None
        return tour.name if tour is not None else ""

    @property
    def state(self) -> TourState | None:
        """State of the playing tour for a rebuilt window; None without one."""
        return self._player.state() if self._player is not None else None

    @Slot(str)
    def start(self, name: str) -> None:
        """Start a tour by name. Raises TourError."""
        from decodescope.app.features.tours.state import find_tour

        self.player.play(find_tour(name))

    @Slot()
    def leave(self) -> None:
        """End the playing tour, if any."""
        if self._player is not None:
            self._player.leave()

    @Slot()
    def open_chooser(self) -> None:
        """Open the tour chooser."""
        from decodescope.app.features.tours.panel.tour_chooser import TourChooser
        from decodescope.app.features.tours.state import load_tours

        chooser = TourChooser(*load_tours(), self._parent_window)
        chooser.chosen.connect(self.start)
        chooser.open()
