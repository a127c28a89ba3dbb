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
    another step or ended; `questionChanged`: a question was asked or answered.
    """

    changed = Signal()
    questionChanged = Signal()

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self.presenter: Presenter | None = None
        self.notes = ""
        """Speaker notes of the current step."""
        self._player: TourPlayer | None = None
        self._guess: GuessController | None = None
        self._is_room = False

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
        player.set_room(self._is_room)
        player.stepShown.connect(self._on_tour_step)
        player.questionChanged.connect(self.questionChanged)
        player.ended.connect(self._on_tour_end)

    def connect_guess(self, guess: GuessController) -> None:
        """Connect the guessing game, whose keys work while presenting too."""
        self._guess = guess
        guess.questionShown.connect(self.changed)
        for signal in (guess.questionShown, guess.answerShown, guess.ended):
            signal.connect(self.questionChanged)

    def set_room(self, is_room: bool) -> None:
        """Count the votes of an audience for a question, or let one person answer."""
        self._is_room = is_room
        for asking in (self._guess, self._player):
            if asking is not None:
                asking.set_room(is_room)

    @property
    def answer(self) -> str:
        """The answer of the open question of the guessing game, for the presenter only; empty without one."""
        return self._guess.answer_preview() if self._guess is not None else ""

    @property
    def has_open_question(self) -> bool:
        """Whether a question of the guessing game or of a lesson waits for an answer."""
        return any(asking is not None and asking.has_open_question for asking in (self._guess, self._tour))

    def press(self, key: int) -> None:
        """Handle a key of the open question."""
        for asking in (self._guess, self._tour):
            if asking is not None and asking.press(key):
                return

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
