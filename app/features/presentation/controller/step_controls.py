"""Step controls of the presentation: they act on the playing tour or guessing game, else on the shown run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal, Slot

from decodescope.resources.language import tr

if TYPE_CHECKING:
    from decodescope.app.features.guess.controller import GuessController
    from decodescope.app.features.presentation.controller.presenter import Presenter
    from decodescope.app.features.tours.controller.tour_player import TourPlayer
    from decodescope.app.features.tours.state import TourStep


class StepControls(QObject):
    """Forwards step and play commands to tour or presenter, which are created on demand. `changed`: a tour showed
    another step or ended.
    """

    changed = Signal()

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self.presenter: Presenter | None = None
        self.notes = ""
        """Speaker notes of the current step."""
        self._player: TourPlayer | None = None
        self._guess: GuessController | None = None

    @property
    def is_tour_playing(self) -> bool:
        """Whether a tour controls cursor and caption."""
        return self._tour is not None

    @property
    def _tour(self) -> TourPlayer | None:
        return self._player if self._player is not None and self._player.tour is not None else None

    @Slot(object)
    def connect_tours(self, player: TourPlayer) -> None:
        """Connect the tour player."""
        self._player = player
        player.stepShown.connect(self._on_tour_step)
        player.ended.connect(self._on_tour_end)

    def connect_guess(self, guess: GuessController) -> None:
        """Connect the guessing game, whose keys work while presenting too."""
        self._guess = guess
        guess.questionShown.connect(self.changed)

    @property
    def answer(self) -> str:
        """The answer of the open question of the guessing game, for the presenter only; empty without one."""
        return self._guess.answer_preview() if self._guess is not None else ""

    @Slot(int)
    def pick(self, number: int) -> None:
        """Guess choice `number` of the open question."""
        if self._guess is not None:
            self._guess.pick(number)

    @property
    def is_guessing(self) -> bool:
        """Whether the guessing game decides what is shown."""
        return self._guess is not None and self._guess.is_on

    def take_focus(self) -> bool:
        """Give the keyboard to the guessing game; False if there is none."""
        panel = self._guess.panel if self._guess is not None and self._guess.is_on else None
        if panel is not None:
            panel.take_focus()
        return panel is not None

    @Slot(object)
    def _on_tour_step(self, step: TourStep) -> None:
        self.set_notes(tr(step.notes))

    @Slot()
    def _on_tour_end(self) -> None:
        self.set_notes("")

    @Slot(str)
    def set_notes(self, notes: str) -> None:
        """Set the speaker notes."""
        self.notes = notes
        self.changed.emit()

    @Slot(int)
    def step(self, by: int) -> None:
        """Go one step forward or back."""
        tour = self._tour
        if tour is not None:
            (tour.next if by > 0 else tour.back)()
        elif self._guess is not None and self._guess.is_on:
            if by > 0:
                self._guess.next()
        elif self.presenter is not None:
            self.presenter.step(by)

    @Slot()
    def toggle(self) -> None:
        """Play or pause."""
        tour = self._tour
        if tour is not None:
            tour.toggle_playing()
        elif self._guess is not None and self._guess.is_on:
            self._guess.next()
        elif self.presenter is not None:
            self.presenter.toggle()
