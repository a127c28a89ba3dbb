"""A demo as a film: the shown run is played on a stage that nobody sees, as fast as frames can be drawn."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from PySide6.QtCore import QObject, QSize, QTimer, Signal, Slot

from app.control.stage.offscreen_stage import OffscreenStage
from app.state.run import Run
from app.storage.film.film_formats import Film
from app.storage.film.frame import FilmError
from app.theme.theme import Theme
from resources.language import tr

MAX_STEPS = 2000
"""Steps of a run that becomes a film."""


class FilmSettings(NamedTuple):
    """What is to be filmed, and how."""

    path: Path
    view: str
    size: QSize
    """Pixels."""
    theme: Theme
    pace: float
    """Tokens a second."""
    animated: bool


def render_film(run: Run, order: FilmSettings) -> Generator[int]:
    """Write it, and tell of every step that is done. Raises OSError or FilmError; where it does, or is closed before
    its end, nothing is left."""
    if not run.length:
        raise FilmError(tr("There is no run to be filmed: write something first."))
    if run.length > MAX_STEPS:
        text = tr("A film has at most {most:,} steps; this run has {count:,}.")
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
    """The same events with a cursor of its own; the text that is shown."""
    copy = Run(run.request)
    copy.apply(run.events)
    copy.outcome = run.outcome
    copy.show_sequence(run.shown_index)
    return copy


class FilmJob(QObject):
    """Films while there is nothing else to do; `progressed(steps done)`, `ended(what went wrong)`: empty where nothing
    did, and where it was cancelled."""

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
        """Leave it, and leave nothing behind."""
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
    """Why there is no film, and what can be done."""
    if isinstance(error, FilmError):
        return str(error)
    cause = error.strerror or tr("it cannot be written")
    text = tr("{path} was not saved: {cause}. Choose a folder you may write to.")
    return text.format(path=path, cause=cause)
