"""The way to the tours: nothing of them is imported or made before the first is wanted."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal, Slot
from PySide6.QtWidgets import QWidget

from app.theme.theme import Theme, theme_for

if TYPE_CHECKING:
    from app.control.tours.tour_player import TourPlayer, TourState


class Tours(QObject):
    """`setupRequested`, `inspectorRequested`: a panel has to be open for what is pointed at; `playerCreated(TourPlayer)`, once."""

    setupRequested = Signal()
    inspectorRequested = Signal()
    playerCreated = Signal(object)

    def __init__(self, make: Callable[[], TourPlayer], over: QWidget) -> None:
        super().__init__(over)
        self._make, self._over = make, over
        self._player: TourPlayer | None = None
        self._theme = theme_for("light")

    @property
    def player(self) -> TourPlayer:
        """Plays them; made when it is first asked for."""
        if self._player is None:
            player = self._player = self._make()
            player.ui.set_theme(self._theme)
            player.ui.targets.setupRequested.connect(self.setupRequested)
            player.ui.targets.inspectorRequested.connect(self.inspectorRequested)
            self.playerCreated.emit(player)
        return self._player

    @property
    def is_on(self) -> bool:
        """Whether a tour is being played."""
        return self._player is not None and self._player.tour is not None

    @property
    def name(self) -> str:
        """The tour that is being played; empty while none is."""
        tour = self._player.tour if self._player is not None else None
        return tour.name if tour is not None else ""

    @property
    def state(self) -> TourState | None:
        """The tour under way, for a window that is built again; None while there is none."""
        return self._player.state() if self._player is not None else None

    @Slot(str)
    def start(self, name: str) -> None:
        """Begin the tour of that name. Raises TourProblem."""
        from app.state.tours import find_tour

        self.player.play(find_tour(name))

    @Slot()
    def leave(self) -> None:
        """End the tour that is being played, if one is."""
        if self._player is not None:
            self._player.leave()

    @Slot()
    def open_chooser(self) -> None:
        """Offer every scene."""
        from app.panels.tours.tour_chooser import TourChooser
        from app.state.tours import load_tours

        chooser = TourChooser(*load_tours(), self._theme, self._over)
        chooser.chosen.connect(self.start)
        chooser.open()

    @Slot(object)
    def set_theme(self, theme: Theme) -> None:
        """Colours and sizes, now or once there is something to draw."""
        self._theme = theme
        if self._player is not None:
            self._player.ui.set_theme(theme)
