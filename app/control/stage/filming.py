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

LONGEST = 2000
"""Steps of a run that becomes a film."""


class Order(NamedTuple):
    """What is to be filmed, and how."""

    path: Path
    view: str
    size: QSize
    """Pixels."""
    theme: Theme
    pace: float
    """Tokens a second."""
    animated: bool


def film(run: Run, order: Order) -> Generator[int]:
    """Write it, and tell of every step that is done. Raises OSError or FilmError; where it does, or is closed before
    its end, nothing is left."""
    if not run.length:
        raise FilmError(tr("There is no run to be filmed: write something first."))
    if run.length > LONGEST:
        told = tr("A film has at most {most:,} steps; this run has {count:,}.")
        raise FilmError(told.format(most=LONGEST, count=run.length))
    own, out = _copy_of(run), Film(order.path)
    scene = OffscreenStage(order.view, order.size, order.theme)
    try:
        for frame in scene.frames(own, order.pace, order.animated):
            out.add(frame)
            yield own.cursor
        out.close()
    except BaseException:
        with suppress(OSError):
            out.drop()
        raise
    finally:
        scene.close()
        scene.deleteLater()


def _copy_of(run: Run) -> Run:
    """The same events with a cursor of its own; the text that is shown."""
    copy = Run(run.request)
    copy.apply(run.events)
    copy.outcome = run.outcome
    copy.show(run.shown)
    return copy


class Filming(QObject):
    """Films while there is nothing else to do; `progressed(steps done)`, `ended(what went wrong)`: empty where nothing
    did, and where it was cancelled."""

    progressed = Signal(int)
    ended = Signal(str)

    def __init__(self, run: Run, order: Order, parent: QObject) -> None:
        super().__init__(parent)
        self._steps, self._order = film(run, order), order
        self._turn = QTimer(self, interval=0)
        self._turn.timeout.connect(self._go_on)
        self._turn.start()

    @Slot()
    def cancel(self) -> None:
        """Leave it, and leave nothing behind."""
        if self._turn.isActive():
            self._turn.stop()
            self._steps.close()
            self.ended.emit("")

    @Slot()
    def _go_on(self) -> None:
        try:
            done = next(self._steps, None)
        except (OSError, FilmError) as error:
            self._end(why_not(error, self._order.path))
            return
        if done is None:
            self._end("")
        else:
            self.progressed.emit(done)

    def _end(self, problem: str) -> None:
        self._turn.stop()
        self.ended.emit(problem)


def why_not(error: OSError | FilmError, path: Path) -> str:
    """Why there is no film, and what can be done."""
    if isinstance(error, FilmError):
        return str(error)
    cause = error.strerror or tr("it cannot be written")
    told = tr("{path} was not saved: {cause}. Choose a folder you may write to.")
    return told.format(path=path, cause=cause)
