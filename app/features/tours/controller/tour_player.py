"""Tour player: applies the settings of each step, runs it and shows its sentence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from decodescope.app.control.borrowed_settings import TOUR, BorrowedSettings
from decodescope.app.control.requests import ChosenSettings
from decodescope.app.control.run_control import RunController
from decodescope.app.control.settings_controller import SettingsController
from decodescope.app.features.tours.controller.tour_ui import TourUi
from decodescope.app.features.tours.state import (
    StepNarration,
    Tour,
    TourSetting,
    TourStep,
    evaluate_guess,
    narrate,
)
from decodescope.app.panels.centre import Centre
from decodescope.app.panels.prompt_panel import PromptPanel
from decodescope.app.session.session import Session
from decodescope.app.state.run import Run
from decodescope.app.state.worker_messages import Outcome
from decodescope.app.views.speculation.view import SpeculationView
from decodescope.app.views.tree.view import TreeView
from decodescope.core import words
from decodescope.resources.language import join_sentences, tr


class TourViews(QObject):
    """Shows runs, views and positions for the tour player."""

    def __init__(self, session: Session, centre: Centre) -> None:
        super().__init__(centre)
        self._session, self._centre = session, centre

    def show_view(self, name: str) -> None:
        """Show a view by name."""
        self._centre.show_view(name)

    def show_run(self, run: Run) -> None:
        """Show all of a finished run, with the cursor at its end."""
        if self._session.run is not run:
            self._session.show(run)
        self._session.move_cursor(run.length)

    def show_position(self, step: TourStep, narration: StepNarration) -> None:
        """Show the view, cursor, token, draft round and node of a step."""
        if step.view:
            self._centre.show_view(step.view)
        cursor = narration.index_of(step.cursor)
        if cursor is not None:
            self._session.move_cursor(cursor)
        self._session.select_token(narration.index_of(step.token))
        self._show_in_view(narration.index_of(step.round), narration.index_of(step.node))

    def _show_in_view(self, number: int | None, node: int | None) -> None:
        view = self._centre.columns[0].current_view
        if isinstance(view, SpeculationView) and number is not None:
            view.show_round(number)
        if isinstance(view, SpeculationView | TreeView):
            view.canvas.selection.pick(node)


class TourSettings(QObject):
    """Applies the settings of a run and starts it, after borrowing the user's settings."""

    def __init__(
        self,
        controller: SettingsController,
        chosen: ChosenSettings,
        prompt: PromptPanel,
        runs: RunController,
        borrowed: BorrowedSettings,
    ) -> None:
        super().__init__(prompt)
        self._borrowed = borrowed
        self._controller, self._chosen, self._prompt, self._runs = controller, chosen, prompt, runs

    def set(self, setting: TourSetting) -> None:
        """Apply all settings of a run as far as available."""
        self._controller.choose(setting.model, setting.strategy, setting.cache, setting.drafts)
        self._controller.set_values(setting.parameters)
        self._chosen.cache.parameters.set_values(setting.cache_parameters)
        self._chosen.seed.spin.setValue(setting.seed)
        self._chosen.seed.lock_button.setChecked(True)
        self._prompt.set_prompt(setting.prompt)

    def borrow(self) -> None:
        """Save the current settings for `give_back`, unless a tour has them already."""
        self._borrowed.borrow(TOUR)

    def give_back(self) -> None:
        """Restore all settings from before the tour."""
        self._borrowed.give_back(TOUR)

    def run(self) -> bool:
        """Start the run; return False if impossible, with a message in the window."""
        return self._runs.run()


class TourState(NamedTuple):
    """State of a tour, independent of widgets."""

    tour: Tour
    step_index: int
    runs: dict[str, Run]
    """The runs made so far, by their names in the tour."""
    current_run: str
    """Name of the run whose settings are applied."""
    run_before: Run | None
    votes: tuple[int, ...]
    """Votes for the choices of a lesson's guess; empty without a guess."""
    is_room: bool
    """Whether these are the votes of an audience."""


class TourPlayer(QObject):
    """Plays a tour. `stepShown(Step)`: a step is shown; `finished`: the last one is shown; `ended`: the tour was left.

    The settings are borrowed: leaving restores them and the run shown before. If the user changes anything, the tour
    stops advancing automatically and applies its own values again at the next step.
    """

    stepShown = Signal(object)
    finished = Signal()
    ended = Signal()
    failed = Signal(str)
    """A run of the tour failed; the text shown instead of the step."""
    questionChanged = Signal()
    """A lesson requests a guess, or no longer does."""

    def __init__(self, settings: TourSettings, views: TourViews, ui: TourUi, session: Session) -> None:
        super().__init__(ui)
        self._settings, self._views, self.ui, self._session = settings, views, ui, session
        self.tour: Tour | None = None
        """The current tour; None without one."""
        self.step_index = 0
        self.narration: StepNarration | None = None
        """The sentence of the shown step; None while its run is in progress."""
        self.is_playing = False
        """Whether the tour advances automatically."""
        self._without_delay = False
        self.votes: tuple[int, ...] = ()
        """Votes for the choices of a lesson's guess; empty without a guess."""
        self.is_room_vote = False
        """Whether these are the votes of an audience."""
        self._is_room = False
        self._runs: dict[str, Run] = {}
        self._current_run = ""
        """Name of the run whose settings are applied."""
        self._pending_run = ""
        """Name of the run that was started and has not ended."""
        self._run_before: Run | None = None
        """The run shown before the tour."""
        self._is_restoring = False
        """Whether the tour was left and its run is being stopped."""
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.timeout.connect(self.next)
        for signal, slot in (
            (session.runStarted, self._on_run_started),
            (session.finished, self._on_run_ended),
            (session.selectionChanged, self._on_selected),
            (ui.backRequested, self.back),
            (ui.nextRequested, self.next),
            (ui.playRequested, self.toggle_playing),
            (ui.leaveRequested, self.leave),
            (ui.picked, self.pick),
            (ui.voted, self.vote),
        ):
            signal.connect(slot)

    @property
    def step(self) -> TourStep | None:
        """The current step; None without a tour."""
        return self.tour.steps[self.step_index] if self.tour is not None else None

    @property
    def runs(self) -> Mapping[str, Run]:
        """The runs made so far, by their names in the tour."""
        return self._runs

    @property
    def has_open_question(self) -> bool:
        """Whether a lesson waits for a guess."""
        return self.step is not None and self.step.asks

    def set_room(self, is_room: bool) -> None:
        """Count the votes of an audience for a guess, as while presenting, or let one person guess."""
        self._is_room = is_room
        self.ui.set_room(is_room)

    def press(self, key: int) -> bool:
        """Handle a key of the open guess; return False if it has no meaning now."""
        return self.has_open_question and self.ui.press_choice(key)

    @Slot(int)
    def pick(self, number: int) -> None:
        """Take the guess of one person."""
        step = self.step
        if step is not None and step.asks and step.guess is not None and number < len(step.guess.choices):
            self._take_votes(tuple(int(n == number) for n in range(len(step.guess.choices))), is_room=False)

    @Slot(tuple)
    def vote(self, votes: tuple[int, ...]) -> None:
        """Take the votes of an audience."""
        if self.has_open_question:
            self._take_votes(votes, is_room=True)

    def _take_votes(self, votes: tuple[int, ...], is_room: bool) -> None:
        self.votes, self.is_room_vote = votes if any(votes) else (), is_room
        self._go_to_step(self.step_index + 1)

    def play(self, tour: Tour, auto_advance: bool = False, without_delay: bool = False) -> None:
        """Start a tour; `auto_advance` advances without the user, `without_delay` also without pauses."""
        self._timer.stop()
        if self.tour is None and not self._is_restoring:
            self._run_before = self._session.run
        self._is_restoring = False
        self._settings.borrow()
        self.tour, self.narration, self._runs, self._current_run, self._pending_run = tour, None, {}, "", ""
        self.votes, self.is_room_vote = (), False
        self._without_delay = without_delay
        self.ui.open(tour)
        self._set_playing(auto_advance or without_delay)
        self._go_to_step(0)

    def state(self) -> TourState | None:
        """Return what `resume` needs in a rebuilt window (another language); None without a tour."""
        if self.tour is None:
            return None
        shown = (self._current_run, self._run_before, self.votes, self.is_room_vote)
        return TourState(self.tour, self.step_index, dict(self._runs), *shown)

    def resume(self, state: TourState) -> None:
        """Show the step of a saved tour without running anything. The settings are borrowed already."""
        self.tour, self.step_index, self._runs, self._current_run, self._run_before = state[:5]
        self.votes, self.is_room_vote = state.votes, state.is_room
        self.ui.open(self.tour)
        self._set_playing(False)
        self._go_to_step(self.step_index)

    @Slot()
    def next(self) -> None:
        """Go to the next step; leave the tour after the last. A room goes on to its next choice."""
        if self.tour is None or self._pending_run:
            return
        if self.has_open_question and self._is_room and self.ui.confirm_choice():
            return
        if self.step_index + 1 < len(self.tour.steps):
            self._go_to_step(self.step_index + 1)
        else:
            self.leave()

    @Slot()
    def back(self) -> None:
        """Go to the previous step."""
        if self.tour is not None and self.step_index and not self._pending_run:
            self._go_to_step(self.step_index - 1)

    @Slot()
    def toggle_playing(self) -> None:
        """Advance automatically, or wait for the user."""
        self._set_playing(not self.is_playing)
        self._schedule_next()

    @Slot()
    def leave(self) -> None:
        """End the tour, restore the settings and show the previous run."""
        if self.tour is None:
            return
        self._timer.stop()
        self.tour, self.narration, self._pending_run = None, None, ""
        self.ui.close()
        self.questionChanged.emit()
        self._settings.give_back()
        if self._session.run is not None and any(run is self._session.run for run in self._runs.values()):
            self._is_restoring = self._session.busy
            if self._is_restoring:
                self._session.stop()
            else:
                self._show_run_before()
        self.ended.emit()

    def _show_run_before(self) -> None:
        self._is_restoring = False
        run, self._run_before = self._run_before, None
        if run is not None:
            self._session.show(run)

    def _go_to_step(self, index: int) -> None:
        """Run what the step needs, then show the step."""
        assert self.tour is not None
        self._timer.stop()
        self.step_index, self.narration = index, None
        name = self.tour.run_of(index)
        if name and name != self._current_run:
            self._settings.set(self.tour.runs[name])
            self._views.show_view(self.tour.runs[name].view)
            self._current_run = name
        if name and name not in self._runs:
            self._start_run(name)
        else:
            self._show_step(self._runs.get(name))

    def _start_run(self, name: str) -> None:
        self._pending_run = name
        self._say(tr("Generating text…"), is_busy=True)
        if not self._settings.run():
            self._pending_run = ""
            self._show_failure(tr("The tour cannot run with these settings. See the message above."))

    def _show_step(self, run: Run | None) -> None:
        step = self.step
        assert step is not None
        if run is not None:
            self._views.show_run(run)
        self.narration = narrate(step, self._runs)
        self._views.show_position(step, self.narration)
        self._say(self._question(step) or self.narration.text)
        self._show_guess(step)
        self.ui.targets.scroll_into_view(step.points)
        self.ui.point_at(step.points)
        self.stepShown.emit(step)
        self._schedule_next()

    def _question(self, step: TourStep) -> str:
        """Return the question about the next word, with the text that it continues; empty for other steps."""
        guess = step.guess
        if self.tour is None or guess is None or not (step.asks and guess.words):
            return ""
        beginning = tr("{text} …").format(text=self.tour.runs[guess.run].prompt)
        return join_sentences(words.quote(beginning), tr(guess.question))

    def _show_guess(self, step: TourStep) -> None:
        """Offer the choices of a lesson's guess, or show how the run decided them."""
        guess = step.guess
        if guess is not None:
            texts = [choice.strip() if guess.words else tr(choice) for choice in guess.choices]
            if step.asks:
                self.ui.show_choices(texts, self._is_room)
            else:
                self.ui.show_result(texts, evaluate_guess(guess, self._runs), self.votes, self.is_room_vote)
        self.questionChanged.emit()

    def _show_failure(self, reason: str) -> None:
        """Show why the step failed; the user can go on, back, or leave."""
        self._set_playing(False)
        self._say(reason)
        self.ui.point_at("")
        self.failed.emit(reason)

    def _say(self, text: str, is_busy: bool = False) -> None:
        if self.tour is not None:
            self.ui.show_step(self.tour, self.step_index, text, is_busy)

    def _schedule_next(self) -> None:
        """Advance after a delay if the tour or the step does so."""
        self._timer.stop()
        step, tour = self.step, self.tour
        if step is None or tour is None or self.narration is None:
            return
        if self.step_index + 1 == len(tour.steps):
            self._set_playing(False)
            self.finished.emit()
        elif self.is_playing or step.waits == "time":
            self._timer.start(0 if self._without_delay else round(1000 * step.seconds))

    def _set_playing(self, on: bool) -> None:
        self.is_playing = on
        self.ui.show_playing(on)

    @Slot(object)
    def _on_run_started(self, run: Run) -> None:
        """Register the tour's own run; any other run stops the automatic advance."""
        self._is_restoring = False
        if self.tour is not None and self._pending_run and self._pending_run not in self._runs:
            self._runs[self._pending_run] = run
        elif self.tour is not None:
            self._timer.stop()
            self._current_run = ""
            self._set_playing(False)

    @Slot(object)
    def _on_run_ended(self, outcome: Outcome) -> None:
        if self._is_restoring:
            self._show_run_before()
        if not self._pending_run or self._session.run is not self._runs.get(self._pending_run):
            return
        name, self._pending_run = self._pending_run, ""
        if outcome.kind == "completed":
            self._show_step(self._runs[name])
        else:
            del self._runs[name]
            self._show_failure(tr("The text was not completed, so this step cannot be shown."))

    @Slot(object)
    def _on_selected(self, run: Run) -> None:
        """Advance if the step waits for a selected token."""
        step = self.step
        waits = step is not None and step.waits == "token" and self.narration is not None
        if waits and run.selected is not None and not self.is_playing:
            self._timer.start(0)
