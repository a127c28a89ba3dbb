"""The presenter: the shown run step by step, in one view and one sentence, under a spotlight."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, QRect, QTimer, Signal, Slot
from PySide6.QtWidgets import QWidget

from app.control.sound_effects import cue_of
from app.control.stage.choice_display import ChoiceDisplay
from app.control.stage.playback import Playback, is_growing
from app.control.stage.stage_words import title_of, told_of
from app.control.stage.window_appearance import WindowAppearance
from app.panels.centre import Centre
from app.panels.stage.stage_caption import StageCaption
from app.session.session import Session
from app.state.run import Run
from app.state.token_caption import TokenCaption, after, moment
from app.theme.theme import Theme
from app.widgets.animation.motion import DURATION
from app.widgets.spotlight import SpotlightOverlay
from core.events import TokenChosen


class Presenter(QObject):
    """Keeps view, words and light in step with the cursor, which it moves. `told` once they have followed."""

    told = Signal()
    happened = Signal(str)
    """A step has been shown that has a sound: accepted, refused, finished."""
    runWanted = Signal()
    """There is nothing to play: something is to be written."""

    def __init__(self, session: Session, centre: Centre, look: WindowAppearance, is_toured: Callable[[], bool]) -> None:
        """`is_toured()`: whether a tour moves the cursor now, and says what there is to say."""
        super().__init__(centre)
        self._session, self._centre, self._look, self._is_toured = session, centre, look, is_toured
        theme = look.theme
        self.playback = Playback(self)
        self.caption, self.light = StageCaption(), SpotlightOverlay(centre.columns[0].stack, theme)
        self.light.place = self._place
        self.choices = ChoiceDisplay(self.caption.middle, theme)
        self._told: tuple[Run | None, int] = (None, 0)
        """The run and the place that were told of last."""
        self._later = QTimer(self, singleShot=True, interval=0)
        self._later.timeout.connect(self.tell)
        self._kept: tuple[Run, int] | None = None
        self.is_on = False
        self.set_theme(theme)
        self._connect()

    def _connect(self) -> None:
        session = self._session
        self.playback.wanted.connect(self.go_to)
        self.playback.playingChanged.connect(self._later.start)
        session.runStarted.connect(self._on_started)
        session.runShown.connect(self._on_shown)
        for signal in (session.cursorMoved, session.selectionChanged, session.eventsArrived, session.finished):
            signal.connect(self._soon)
        self._centre.viewShown.connect(self._on_view)

    @Slot(object)
    def set_theme(self, theme: Theme) -> None:
        """Take other colours and sizes."""
        self.caption.set_theme(theme)
        self.choices.set_theme(theme)
        self.light.set_theme(theme)

    @property
    def following(self) -> TokenCaption | None:
        """What comes next; None at the end."""
        return after(self._session.run)

    @property
    def view_title(self) -> str:
        """The title of the view that is seen."""
        return self._centre.columns[0].title

    # On and off the stage

    def begin(self) -> None:
        """Present the shown run from where its cursor stands; one that is being written, from its first token."""
        run = self._session.run
        self.is_on, self.playback.run = True, run
        self._kept = (run, run.cursor) if run is not None and not run.following else None
        self._centre.set_presenting(True)
        self.caption.forget_height()
        self.light.raise_()
        self.caption.setVisible(not self._is_toured())
        self.caption.setFocus()
        if run is not None and self._session.busy and not self._is_toured():
            run.hold()
            self.playback.play()
        self.tell()

    def end(self) -> None:
        """Everything as it was, the cursor too."""
        self.playback.pause()
        self.is_on = False
        self.caption.hide()
        self.light.hide()
        self._centre.set_presenting(False)
        run = self._session.run
        if run is not None:
            kept = self._kept[1] if self._kept is not None and self._kept[0] is run else run.length
            self._session.move_cursor(kept)

    # Playing

    @Slot()
    def toggle(self) -> None:
        """Play or pause; write something where there is nothing to play."""
        if self._session.run is None:
            self.runWanted.emit()
        else:
            self.playback.toggle()

    @Slot(int)
    def go_to(self, count: int) -> None:
        """Draw so many tokens, and stay there however the run grows."""
        run = self._session.run
        if run is not None:
            self._session.select_token(None)
            self._session.move_cursor(count)
            run.hold()

    def step(self, by: int) -> None:
        """So many tokens on, or back, and hold there."""
        self.playback.step(by)

    def change_pace(self, by: int) -> None:
        """Faster or slower."""
        self.playback.change_pace(by)
        self.tell()

    @Slot(object)
    def _on_started(self, run: Run) -> None:
        """It is followed at the stage's own pace from its first token; nothing waits for that."""
        self.playback.pause()
        self.playback.run, self._kept = run, None
        if self.is_on and not self._is_toured():
            run.hold()
            self.playback.play()
            self._later.start()

    @Slot(object)
    def _on_shown(self, run: Run) -> None:
        self.playback.pause()
        self.playback.run, self._kept = run, None
        self._soon()

    @Slot()
    def _on_view(self) -> None:
        self.caption.forget_height()
        self._soon()

    # Words and light

    @Slot()
    def _soon(self) -> None:
        """Once the views have drawn what has changed."""
        if self.is_on:
            self._later.start()

    @Slot()
    def tell(self) -> None:
        """Say why of what is chosen at the cursor, and light it."""
        if not self.is_on:
            return
        for part in (self.caption, self.light):
            part.setVisible(not self._is_toured())
        run, view = self._session.run, self._centre.columns[0].shown
        now = moment(run)
        self.caption.say(title_of(now), told_of(run, view, now), self._place_told(run))
        self._show_choice(run, now.token if now is not None else None)
        self.caption.keep_height()
        self.light.update()
        self.told.emit()

    def _show_choice(self, run: Run | None, token: TokenChosen | None) -> None:
        """Let it happen where it is the next one, and there is time; else show what came of it."""
        before, self._told = self._told, (run, run.cursor if run is not None else 0)
        is_next = run is not None and before == (run, run.cursor - 1)
        has_time = not self.playback.playing or self.playback.interval >= 2 * DURATION
        drafts = self._centre.columns[0].current == "speculation"
        self.choices.show(run, token, drafts, moves=is_next and has_time and self._look.animates())
        if run is not None and is_next:
            self._tell_cue(run)

    def _tell_cue(self, run: Run) -> None:
        """The end, or the first token of a round."""
        count = run.rounds.shown(run.cursor)
        if run.cursor == run.length and not is_growing(run):
            self.happened.emit("finished")
        elif count > run.rounds.shown(run.cursor - 1):
            self.happened.emit(cue_of(run.rounds.rounds[count - 1]))

    def _place_told(self, run: Run | None) -> str:
        """`▶ 12 / 40`: how far it has come, and whether it plays by itself."""
        if run is None or not run.length:
            return ""
        sign = "▶" if self.playback.playing else "❙❙"
        return f"{sign}  {run.cursor:,} / {run.length:,}"

    def _place(self) -> QRect:
        view: QWidget = self._centre.columns[0].shown
        lit = self._centre.columns[0].shown.spotlight()
        stack = self._centre.columns[0].stack
        return lit.translated(view.mapTo(stack, lit.topLeft()) - lit.topLeft()) if not lit.isEmpty() else lit
