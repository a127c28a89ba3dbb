"""Presenter: shows the run step by step in one view, with one sentence and a spotlight."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, QRect, QTimer, Signal, Slot
from PySide6.QtWidgets import QWidget

from decodescope.app.control.audible_feedback import sound_name
from decodescope.app.features.presentation.controller.stage_content import (
    ChoiceDisplay,
    WindowAppearance,
    caption_text,
    caption_title,
)
from decodescope.app.features.presentation.panel.presenter_window import StageCaption
from decodescope.app.panels.centre import Centre
from decodescope.app.session.session import Session
from decodescope.app.state.run import Run
from decodescope.app.state.token_caption import TokenCaption, current_caption, next_caption
from decodescope.app.views.replay import TOKENS_PER_SECOND, Replay
from decodescope.app.widgets.animation.motion import DURATION
from decodescope.app.widgets.overlays import SpotlightOverlay
from decodescope.core.events import TokenChosen

PACES = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
"""Tokens per second."""
DEFAULT_PACE = 1.0


class Playback(Replay):
    """A replay at one of `PACES` that waits for tokens still to be generated."""

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self.pace = DEFAULT_PACE
        self.set_pace(DEFAULT_PACE)

    def set_pace(self, pace: float) -> None:
        """Set the pace in tokens per second, one of `PACES`."""
        self.pace = pace
        self.set_speed(pace / TOKENS_PER_SECOND)

    def change_pace(self, steps: int) -> None:
        """Change the pace by a number of steps within `PACES`."""
        index = min(max(PACES.index(self.pace) + steps, 0), len(PACES) - 1)
        self.set_pace(PACES[index])

    @Slot()
    def play(self) -> None:
        """Play to the end; restart a finished run that is at its end."""
        run = self.run
        if run is None or not (run.length or is_growing(run)):
            return
        self._start()
        if run.cursor >= run.length and not is_growing(run):
            self.cursorRequested.emit(0)

    @Slot()
    def _advance(self) -> None:
        run = self.run
        if run is None or (run.cursor >= run.length and not is_growing(run)):
            self.pause()
        elif run.cursor < run.length:
            self.cursorRequested.emit(run.cursor + 1)


def is_growing(run: Run) -> bool:
    """Return whether more tokens may follow."""
    return run.outcome is None and run.finished is None


class Presenter(QObject):
    """Keeps view, caption and spotlight in sync with the cursor and moves the cursor. `updated` is emitted after each
    update.
    """

    updated = Signal()
    soundTriggered = Signal(str)
    """A step with a sound was shown: accepted, refused, finished."""
    runRequested = Signal()
    """There is nothing to play: start a run."""

    def __init__(
        self, session: Session, centre: Centre, appearance: WindowAppearance, is_tour_playing: Callable[[], bool]
    ) -> None:
        """`is_tour_playing()`: whether a tour controls cursor and caption now."""
        super().__init__(centre)
        self._session, self._centre, self._appearance, self._is_tour_playing = (
            session,
            centre,
            appearance,
            is_tour_playing,
        )
        theme = appearance.theme
        self.playback = Playback(self)
        self.caption, self.spotlight = StageCaption(), SpotlightOverlay(centre.columns[0].stack, theme)
        self.spotlight.target_rect = self._spotlight_rect
        self.choices = ChoiceDisplay(self.caption.middle, theme)
        self._last_shown: tuple[Run | None, int] = (None, 0)
        """The run and position shown last."""
        self._update_timer = QTimer(self, singleShot=True, interval=0)
        self._update_timer.timeout.connect(self.update_stage)
        self._saved_cursor: tuple[Run, int] | None = None
        self.is_on = False
        self.caption.set_theme(theme)
        self._connect()

    def _connect(self) -> None:
        session = self._session
        self.playback.cursorRequested.connect(self.go_to)
        self.playback.playingChanged.connect(self._update_timer.start)
        session.runStarted.connect(self._on_started)
        session.runShown.connect(self._on_shown)
        for signal in (session.cursorMoved, session.selectionChanged, session.eventsArrived, session.finished):
            signal.connect(self._schedule_update)
        self._centre.viewShown.connect(self._on_view)

    @property
    def next_caption(self) -> TokenCaption | None:
        """Caption of the next token; None at the end."""
        return next_caption(self._session.run)

    @property
    def view_title(self) -> str:
        """Title of the shown view."""
        return self._centre.columns[0].current_title

    # Start and end

    def begin(self) -> None:
        """Present the shown run from its cursor, or from its first token if it is still being generated."""
        run = self._session.run
        self.is_on, self.playback.run = True, run
        self._saved_cursor = (run, run.cursor) if run is not None and not run.is_following else None
        self._centre.set_presenting(True)
        self.caption.reset_height()
        self.spotlight.raise_()
        self.caption.setVisible(not self._is_tour_playing())
        self.caption.setFocus()
        if run is not None and self._session.busy and not self._is_tour_playing():
            run.stop_following()
            self.playback.play()
        self.update_stage()

    def end(self) -> None:
        """Restore the views and the cursor."""
        self.playback.pause()
        self.is_on = False
        self.caption.hide()
        self.spotlight.hide()
        self._centre.set_presenting(False)
        run = self._session.run
        if run is not None:
            cursor = (
                self._saved_cursor[1] if self._saved_cursor is not None and self._saved_cursor[0] is run else run.length
            )
            self._session.move_cursor(cursor)

    # Playback

    @Slot()
    def toggle(self) -> None:
        """Play or pause; start a run if there is none."""
        if self._session.run is None:
            self.runRequested.emit()
        else:
            self.playback.toggle()

    @Slot(int)
    def go_to(self, count: int) -> None:
        """Show `count` tokens and stay there while the run grows."""
        run = self._session.run
        if run is not None:
            self._session.select_token(None)
            self._session.move_cursor(count)
            run.stop_following()

    def step(self, by: int) -> None:
        """Move by a number of tokens and pause there."""
        self.playback.step(by)

    def change_pace(self, by: int) -> None:
        """Change the pace."""
        self.playback.change_pace(by)
        self.update_stage()

    @Slot(object)
    def _on_started(self, run: Run) -> None:
        """Follow a new run from its first token at the pace of the presentation."""
        self.playback.pause()
        self.playback.run, self._saved_cursor = run, None
        if self.is_on and not self._is_tour_playing():
            run.stop_following()
            self.playback.play()
            self._update_timer.start()

    @Slot(object)
    def _on_shown(self, run: Run) -> None:
        self.playback.pause()
        self.playback.run, self._saved_cursor = run, None
        self._schedule_update()

    @Slot()
    def _on_view(self) -> None:
        self.caption.reset_height()
        self._schedule_update()

    # Caption and spotlight

    @Slot()
    def _schedule_update(self) -> None:
        """Update after the views were drawn."""
        if self.is_on:
            self._update_timer.start()

    @Slot()
    def update_stage(self) -> None:
        """Update caption, choice and spotlight for the token at the cursor."""
        if not self.is_on:
            return
        for part in (self.caption, self.spotlight):
            part.setVisible(not self._is_tour_playing())
        run, view = self._session.run, self._centre.columns[0].current_view
        now = current_caption(run)
        self.caption.show_texts(caption_title(now), caption_text(run, view, now), self._position_text(run))
        self._show_choice(run, now.token if now is not None else None)
        self.caption.keep_height()
        self.spotlight.update()
        self.updated.emit()

    def _show_choice(self, run: Run | None, token: TokenChosen | None) -> None:
        """Animate the choice when stepping forward with enough time; otherwise show its result."""
        before, self._last_shown = self._last_shown, (run, run.cursor if run is not None else 0)
        is_next = run is not None and before == (run, run.cursor - 1)
        has_time = not self.playback.is_playing or self.playback.interval >= 2 * DURATION
        drafts = self._centre.columns[0].current_name == "speculation"
        self.choices.show(run, token, drafts, animate=is_next and has_time and self._appearance.should_animate())
        if run is not None and is_next:
            self._emit_sound(run)

    def _emit_sound(self, run: Run) -> None:
        """Emit the sound of the end, or of a draft round's first token."""
        count = run.rounds.count_started(run.cursor)
        if run.cursor == run.length and not is_growing(run):
            self.soundTriggered.emit("finished")
        elif count > run.rounds.count_started(run.cursor - 1):
            self.soundTriggered.emit(sound_name(run.rounds.rounds[count - 1]))

    def _position_text(self, run: Run | None) -> str:
        """Return the position such as `▶ 12 / 40`, with the playback state."""
        if run is None or not run.length:
            return ""
        sign = "▶" if self.playback.is_playing else "❙❙"
        return f"{sign}  {run.cursor:,} / {run.length:,}"

    def _spotlight_rect(self) -> QRect:
        view: QWidget = self._centre.columns[0].current_view
        lit = self._centre.columns[0].current_view.spotlight_rect()
        stack = self._centre.columns[0].stack
        return lit.translated(view.mapTo(stack, lit.topLeft()) - lit.topLeft()) if not lit.isEmpty() else lit
