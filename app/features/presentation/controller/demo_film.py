"""Offscreen stage: shows a run step by step and renders each step as a frame of a film."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

from PySide6.QtCore import QCoreApplication, QEvent, QObject, QSize, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QLayout, QProgressDialog, QVBoxLayout, QWidget

from decodescope.app.control.messages import Messages
from decodescope.app.features.presentation.controller.stage_content import (
    ChoiceDisplay,
    WindowAppearance,
    caption_text,
    caption_title,
)
from decodescope.app.features.presentation.panel.demo_dialog import DemoDialog, DemoOptions
from decodescope.app.features.presentation.panel.presenter_window import StageCaption
from decodescope.app.features.presentation.store import KINDS, PNGS, Film, FilmError, Frame
from decodescope.app.panels.centre import Centre
from decodescope.app.session.session import Session
from decodescope.app.state.run import Run
from decodescope.app.state.token_caption import current_caption
from decodescope.app.theme.theme import Theme, panel_stylesheet, stage_theme, theme_for
from decodescope.app.theme.themed import Themed
from decodescope.app.views import VIEWS
from decodescope.app.widgets.animation.motion import DURATION, AnimatedWidget
from decodescope.app.widgets.building import arrange
from decodescope.app.widgets.file_dialogs import open_save_dialog
from decodescope.app.widgets.overlays import SpotlightOverlay
from decodescope.app.widgets.plain_text import as_plain_text
from decodescope.app.widgets.widget_pictures import render_widget
from decodescope.core.system.file_writing import not_written_error
from decodescope.resources.language import tr

FIRST_MS, LAST_MS = 1500, 3000
"""Duration of the prompt before the first step, and of the end after the last one."""
FRAME_MS = 60
"""Milliseconds between two frames of an animated choice."""


class OffscreenStage(Themed, QWidget):
    """A view, its caption and the spotlight as in the presentation, in any size and theme."""

    def __init__(self, view: str, size: QSize, theme: Theme) -> None:
        super().__init__()
        self.setAttribute(Qt.WidgetAttribute.WA_DontShowOnScreen)
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        staged = stage_theme(theme, size)
        self._view_name = view
        self._view = next(spec for spec in VIEWS if spec.name == view).factory()
        self._caption = StageCaption()
        self._choices = ChoiceDisplay(self._caption.middle, staged)
        self._spotlight = SpotlightOverlay(self._view, staged)
        self._spotlight.target_rect = self._view.spotlight_rect
        column = arrange(QVBoxLayout(self), margins=0, spacing=0)
        column.setSizeConstraint(QLayout.SizeConstraint.SetNoConstraint)  # all frames have the same size
        arrange(column, (self._view, 1), self._caption)
        self.setStyleSheet(staged.stylesheet() + panel_stylesheet(staged) + f"Scene {{ background: {staged.window}; }}")
        self.set_theme(staged)
        self._background = staged.color("window")
        self.resize(size)
        self.show()
        self._view.set_presenting(True)

    def frames(self, run: Run, pace: float, animated: bool) -> Iterator[Frame]:
        """Yield the frames of a run at `pace` tokens per second; animations are part of the duration of their step.
        Moves the cursor of `run`.
        """
        step = round(1000 / pace)
        moves = animated and step > DURATION
        self._spotlight.raise_()
        run.move_cursor(0)
        run.stop_following()
        self._view.show_run(run)
        yield self._frame(run, moves=False, milliseconds=FIRST_MS)
        for position in range(1, run.length + 1):
            run.move_cursor(position)
            run.stop_following()
            self._view.cursor_moved(run)
            self._show_step(run, moves)
            shown = 0
            for widget in self._choices.all:
                for _ in self._animation_times(widget):
                    yield self._render(FRAME_MS)
                    shown += FRAME_MS
            yield self._render(LAST_MS if position == run.length else step - shown)

    def _animation_times(self, widget: AnimatedWidget) -> Iterator[int]:
        """Step through an animation and leave it at its end."""
        if widget.animation.state() == AnimatedWidget.STOPPED:
            return
        widget.animation.pause()
        for passed in range(0, DURATION, FRAME_MS):
            widget.animation.setCurrentTime(passed)
            yield passed
        widget.animation.stop()

    def _frame(self, run: Run, moves: bool, milliseconds: int) -> Frame:
        self._show_step(run, moves)
        return self._render(milliseconds)

    def _show_step(self, run: Run, moves: bool) -> None:
        now = current_caption(run)
        position = f"{run.cursor:,} / {run.length:,}"
        self._caption.show_texts(caption_title(now), caption_text(run, self._view, now), position)
        self._choices.show(run, now.token if now is not None else None, self._view_name == "speculation", moves)
        self._apply_layout()
        self._caption.keep_height()
        self._apply_layout()

    def _apply_layout(self) -> None:
        """Process layout requests, as no event loop runs between two frames."""
        for part in (self, *self.findChildren(QWidget)):
            QCoreApplication.sendPostedEvents(part, QEvent.Type.LayoutRequest)

    def _render(self, milliseconds: int) -> Frame:
        image = render_widget(self, self._background).convertToFormat(QImage.Format.Format_RGBX8888)
        return Frame(image.width(), image.height(), bytes(image.constBits()), milliseconds)


MAX_STEPS = 2000
"""Maximum number of steps in a film."""


class FilmSettings(NamedTuple):
    """Settings of a film."""

    path: Path
    view: str
    size: QSize
    """In pixels."""
    theme: Theme
    pace: float
    """Tokens per second."""
    animated: bool


def render_film(run: Run, order: FilmSettings) -> Generator[int]:
    """Render the film and yield after every step. Raises OSError or FilmError; an incomplete file is deleted."""
    if not run.length:
        raise FilmError(tr("There is no run to record. Run something first."))
    if run.length > MAX_STEPS:
        text = tr("A recording can have at most {most:,} steps; this run has {count:,}.")
        raise FilmError(text.format(most=MAX_STEPS, count=run.length))
    run_copy, out = _copy_run(run), Film(order.path)
    scene = OffscreenStage(order.view, order.size, order.theme)
    try:
        for frame in scene.frames(run_copy, order.pace, order.animated):
            out.add(frame)
            yield run_copy.cursor
        out.close()
    except BaseException:
        with suppress(OSError):
            out.discard()
        raise
    finally:
        scene.close()
        scene.deleteLater()


def _copy_run(run: Run) -> Run:
    """Return a copy of the run with its own cursor and the same shown text."""
    copy = Run(run.request)
    copy.apply(run.events)
    copy.outcome = run.outcome
    copy.show_sequence(run.shown_index)
    return copy


class FilmJob(QObject):
    """Renders a film when the event loop is idle. `progressed(steps done)`, `ended(problem)`: empty on success and
    after cancelling.
    """

    progressed = Signal(int)
    ended = Signal(str)

    def __init__(self, run: Run, order: FilmSettings, parent: QObject) -> None:
        super().__init__(parent)
        self._steps, self._settings = render_film(run, order), order
        self._timer = QTimer(self, interval=0)
        self._timer.timeout.connect(self._render_step)
        self._timer.start()

    @Slot()
    def cancel(self) -> None:
        """Cancel and delete the incomplete file."""
        if self._timer.isActive():
            self._timer.stop()
            self._steps.close()
            self.ended.emit("")

    @Slot()
    def _render_step(self) -> None:
        try:
            done = next(self._steps, None)
        except (OSError, FilmError) as error:
            self._end(failure_text(error, self._settings.path))
            return
        if done is None:
            self._end("")
        else:
            self.progressed.emit(done)

    def _end(self, problem: str) -> None:
        self._timer.stop()
        self.ended.emit(problem)


def failure_text(error: OSError | FilmError, path: Path) -> str:
    """Return why there is no film, and the remedy."""
    if isinstance(error, FilmError):
        return str(error)
    return str(not_written_error(path, error))


class DemoRecorder(QObject):
    """Records one film at a time. `saved(path)`: the film was saved."""

    saved = Signal(str)

    def __init__(self, centre: Centre, session: Session, messages: Messages, appearance: WindowAppearance) -> None:
        super().__init__(centre)
        self._centre, self._session, self._messages = centre, session, messages
        self._appearance = appearance
        self.film_job: FilmJob | None = None
        self.progress: QProgressDialog | None = None

    def open_dialog(self) -> None:
        """Open the dialog with the options."""
        run = self._session.run
        if run is None or not run.length:
            title = tr("Nothing to record yet")
            self._messages.show_notice(tr("Run something first: a demo shows the current run."), title)
            return
        dialog = DemoDialog(run.length, self._window)
        dialog.chosen.connect(self._choose_path)
        dialog.open()

    @property
    def _window(self) -> QWidget:
        return self._centre.window()

    @Slot(object)
    def _choose_path(self, demo: DemoOptions) -> None:
        files = f"{tr(KINDS[demo.kind].title)} (*.{demo.kind})"
        open_save_dialog(self._centre, tr("Save demo"), f"demo.{demo.kind}", files, partial(self.record, demo))

    def record(self, demo: DemoOptions, path: str) -> None:
        """Record the shown run in the front view."""
        run = self._session.run
        if run is None or self.film_job is not None:
            return
        theme = theme_for(demo.theme or self._appearance.settings_theme.name)
        view = self._centre.columns[0].current_name
        order = FilmSettings(
            Path(path), view, demo.size, theme, demo.tokens_per_second, self._appearance.should_animate()
        )
        label = as_plain_text(tr("Recording {name}…").format(name=Path(path).name))
        self.progress = QProgressDialog(label, tr("Cancel"), 0, run.length, self._window)
        self.progress.setWindowTitle(tr("Record demo"))
        self.progress.setWindowModality(Qt.WindowModality.WindowModal)
        self.progress.setMinimumDuration(0)
        self.progress.setAutoClose(False)
        self.progress.setAutoReset(False)
        self.film_job = FilmJob(run, order, self)
        self.film_job.progressed.connect(self.progress.setValue)
        self.film_job.ended.connect(partial(self._on_ended, output_path(order)))
        self.progress.canceled.connect(self.film_job.cancel)
        self.progress.setValue(0)

    def _on_ended(self, path: Path, problem: str) -> None:
        if self.progress is not None:
            self.progress.canceled.disconnect()
            self.progress.close()
            self.progress.deleteLater()
        self.film_job, self.progress = None, None
        if problem:
            self._messages.show_notice(problem, tr("Demo not saved"))
        elif path.exists():
            self.saved.emit(str(path))
            self._messages.show_notice(str(path), tr("Demo saved"))


def output_path(order: FilmSettings) -> Path:
    """Return the output path: a folder for a sequence of pictures."""
    return order.path.with_suffix("") if order.path.suffix.lower() == f".{PNGS}" else order.path
