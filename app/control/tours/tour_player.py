"""Plays a tour: step after step it has the real program do what the step speaks of, and shows the sentence."""

from __future__ import annotations

from typing import NamedTuple

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from app.control.tours.tour_runs import TourPlaces
from app.control.tours.tour_settings import TourSettings
from app.control.tours.tour_ui import TourFace
from app.session.session import Session
from app.state.run import Run
from app.state.tours import StepNarration, Tour, TourStep, tell
from app.state.worker_messages import Outcome
from resources.language import tr


class TourState(NamedTuple):
    """A tour under way; plain values that outlive the parts of a window."""

    tour: Tour
    place: int
    runs: dict[str, Run]
    """Those made so far, by their names in the tour."""
    set: str
    """The run that everything is set to."""
    run_before: Run | None


class TourPlayer(QObject):
    """`stepShown(Step)` with every sentence, `finished` when the last one stands there, `ended` when the tour is left.

    The settings are borrowed: leaving restores them, and the run that was shown before. A person may change anything
    meanwhile: the player then no longer goes on by itself, and sets its own values again when it is asked for another
    step.
    """

    stepShown = Signal(object)
    finished = Signal()
    ended = Signal()
    stuck = Signal(str)
    """A run of the tour could not be made: what is said in its step's place."""

    def __init__(self, settings: TourSettings, places: TourPlaces, face: TourFace, session: Session) -> None:
        super().__init__(face)
        self._settings, self._places, self.face, self._session = settings, places, face, session
        self.tour: Tour | None = None
        """The one that is played; None while none is."""
        self.place = 0
        self.told: StepNarration | None = None
        """What the shown step says; None while its run is under way."""
        self.is_playing = False
        """Whether it goes on by itself."""
        self._is_hurried = False
        self._runs: dict[str, Run] = {}
        self._set = ""
        """The run that everything is set to."""
        self._begun = ""
        """The run that was asked for and has not ended."""
        self._run_before: Run | None = None
        """The run that was shown when the tour began."""
        self._is_restoring = False
        """Whether the tour has been left while a run of its own was under way, which is being stopped."""
        self._clock = QTimer(self)
        self._clock.setSingleShot(True)
        self._clock.timeout.connect(self.next)
        for signal, slot in (
            (session.runStarted, self._on_run_started),
            (session.finished, self._on_run_ended),
            (session.selectionChanged, self._on_selected),
            (face.backWanted, self.back),
            (face.nextWanted, self.next),
            (face.playWanted, self.toggle_playing),
            (face.leaveWanted, self.leave),
        ):
            signal.connect(slot)

    @property
    def step(self) -> TourStep | None:
        """The step that is shown."""
        return self.tour.steps[self.place] if self.tour is not None else None

    def play(self, tour: Tour, by_itself: bool = False, hurried: bool = False) -> None:
        """Begin a tour; `by_itself` it waits for nobody, `hurried` not even for a reader."""
        self._clock.stop()
        if self.tour is None and not self._is_restoring:
            self._run_before = self._session.run
        self._is_restoring = False
        self._settings.borrow()
        self.tour, self.told, self._runs, self._set, self._begun = tour, None, {}, "", ""
        self._is_hurried = hurried
        self.face.open()
        self._set_playing(by_itself or hurried)
        self._enter(0)

    def state(self) -> TourState | None:
        """What `resume` needs in a window that is built again, in another language; None while no tour is on."""
        if self.tour is None:
            return None
        return TourState(self.tour, self.place, dict(self._runs), self._set, self._run_before)

    def resume(self, state: TourState) -> None:
        """Show the step at which a tour stood, without running anything again. The settings are borrowed already."""
        self.tour, self.place, self._runs, self._set, self._run_before = state
        self.face.open()
        self._set_playing(False)
        self._enter(self.place)

    @Slot()
    def next(self) -> None:
        """The next step; behind the last one the tour is left."""
        if self.tour is None or self._begun:
            return
        if self.place + 1 < len(self.tour.steps):
            self._enter(self.place + 1)
        else:
            self.leave()

    @Slot()
    def back(self) -> None:
        """The step before."""
        if self.tour is not None and self.place and not self._begun:
            self._enter(self.place - 1)

    @Slot()
    def toggle_playing(self) -> None:
        """Go on by itself, or wait for the person."""
        self._set_playing(not self.is_playing)
        self._wait()

    @Slot()
    def leave(self) -> None:
        """End the tour, restore the settings and show the run that was shown before."""
        if self.tour is None:
            return
        self._clock.stop()
        self.tour, self.told, self._begun = None, None, ""
        self.face.close()
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

    def _enter(self, place: int) -> None:
        """Have the run that the step speaks of, then show the step."""
        assert self.tour is not None
        self._clock.stop()
        self.place, self.told = place, None
        name = self.tour.run_of(place)
        if name and name != self._set:
            self._settings.set(self.tour.runs[name])
            self._places.show_view(self.tour.runs[name].view)
            self._set = name
        if name and name not in self._runs:
            self._begin(name)
        else:
            self._show(self._runs.get(name))

    def _begin(self, name: str) -> None:
        self._begun = name
        self._say(tr("The text is being written …"), is_busy=True)
        if not self._settings.run():
            self._begun = ""
            self._stick(tr("This cannot be run as it is set: the message above says why."))

    def _show(self, run: Run | None) -> None:
        step = self.step
        assert step is not None
        if run is not None:
            self._places.show_run(run)
        self.told = tell(step, self._runs)
        self._places.show_place(step, self.told)
        self.face.targets.bring_into_sight(step.points)
        self._say(self.told.text)
        self.face.point_at(step.points)
        self.stepShown.emit(step)
        self._wait()

    def _stick(self, why: str) -> None:
        """Say what stands in a step's way; whoever sees it can go on, back, or leave."""
        self._set_playing(False)
        self._say(why)
        self.face.point_at("")
        self.stuck.emit(why)

    def _say(self, text: str, is_busy: bool = False) -> None:
        if self.tour is not None:
            self.face.say(self.tour, self.place, text, is_busy)

    def _wait(self) -> None:
        """Go on after a while, where the tour or the step does so by itself."""
        self._clock.stop()
        step, tour = self.step, self.tour
        if step is None or tour is None or self.told is None:
            return
        if self.place + 1 == len(tour.steps):
            self._set_playing(False)
            self.finished.emit()
        elif self.is_playing or step.waits == "time":
            self._clock.start(0 if self._is_hurried else round(1000 * step.seconds))

    def _set_playing(self, on: bool) -> None:
        self.is_playing = on
        self.face.show_playing(on)

    @Slot(object)
    def _on_run_started(self, run: Run) -> None:
        """The one that was asked for; or somebody else's, and then nothing goes on by itself."""
        self._is_restoring = False
        if self.tour is not None and self._begun and self._begun not in self._runs:
            self._runs[self._begun] = run
        elif self.tour is not None:
            self._clock.stop()
            self._set = ""
            self._set_playing(False)

    @Slot(object)
    def _on_run_ended(self, outcome: Outcome) -> None:
        if self._is_restoring:
            self._show_run_before()
        if not self._begun or self._session.run is not self._runs.get(self._begun):
            return
        name, self._begun = self._begun, ""
        if outcome.kind == "completed":
            self._show(self._runs[name])
        else:
            del self._runs[name]
            self._stick(tr("This text was not written to its end, so there is nothing to say of it."))

    @Slot(object)
    def _on_selected(self, run: Run) -> None:
        """A token was picked: what a step may wait for."""
        step = self.step
        waits = step is not None and step.waits == "token" and self.told is not None
        if waits and run.selected is not None and not self.is_playing:
            self._clock.start(0)
