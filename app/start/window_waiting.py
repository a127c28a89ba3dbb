"""Waiting for a window, as pictures of it must: until it has run, has been painted, has nothing put off any more."""

from __future__ import annotations

import asyncio

from PySide6.QtCore import QEvent, QObject, QTimer, Signal, SignalInstance
from PySide6.QtWidgets import QApplication, QWidget

from app.state.worker_messages import Outcome
from app.window.main_window import MainWindow

MAX_DELAYS = 20
"""Delayed steps that a picture waits for; what still goes on then would never end."""


class LaunchProblem(Exception):
    """The command line asks for what cannot be done; the message says why."""


async def next_value(signal: SignalInstance) -> object:
    """What `signal` next says (its first argument). Needs a running qasync loop."""
    future: asyncio.Future[object] = asyncio.get_running_loop().create_future()

    def hear(*said: object) -> None:
        if not future.done():
            future.set_result(said[0] if said else None)

    signal.connect(hear)
    try:
        return await future
    finally:
        signal.disconnect(hear)


async def run_to_end(window: MainWindow) -> None:
    """Run and wait for the end, and for the views to have drawn it. Raises LaunchProblem when it failed."""
    if problems := window.parts.requests.problems:  # looked at first: a run that has begun empties a chat's editor
        raise LaunchProblem(" ".join(problems))
    window.parts.runs.run()
    outcome = await next_value(window.session.finished)
    assert isinstance(outcome, Outcome)
    await wait_until_painted(window)
    if outcome.kind == "failed" and outcome.error is not None:
        raise LaunchProblem(f"{outcome.error.title}. {outcome.error.cause} {outcome.error.remedy}".strip())


async def play_tour_to_end(window: MainWindow, name: str) -> None:
    """Play a tour, waiting for nobody, until its last sentence is drawn. Raises LaunchProblem when a run of it was not
    written to its end."""
    from app.state.tours import find_tour

    player = window.parts.tours.player
    finished = asyncio.ensure_future(next_value(player.finished))
    failed = asyncio.ensure_future(next_value(player.failed))
    await asyncio.sleep(0)  # they listen now
    player.play(find_tour(name), without_delay=True)
    done, waiting = await asyncio.wait((finished, failed), return_when=asyncio.FIRST_COMPLETED)
    for other in waiting:
        other.cancel()
    await wait_until_painted(window)
    if failed in done:
        raise LaunchProblem(str(failed.result()))


async def wait_until_loaded(window: MainWindow) -> None:
    """Wait until the chosen model is held ready, or has failed to be, and that is drawn; at once if it is not loaded
    before it is asked for."""
    window.parts.loading.start_preloading()
    while window.session.state == "loading":
        await next_value(window.session.stateChanged)
    await wait_until_painted(window)


async def wait_until_settled(window: MainWindow) -> None:
    """Wait for what is put off a little while, as a map of a tree that has just grown."""
    for _ in range(MAX_DELAYS):
        due = [timer for timer in window.findChildren(QTimer) if timer.isSingleShot() and timer.isActive()]
        if not due:
            break
        await next_value(due[0].timeout)
        await wait_until_painted(window)
    for part in window.findChildren(QWidget):  # a tool that has grown narrower may still stand where it stood
        if (layout := part.layout()) is not None:
            layout.invalidate()
    await wait_until_painted(window)


async def redraw_from_scratch(window: MainWindow) -> None:
    """Show nothing, then the whole run at once: how its events came, in which batches, is then not to be seen."""
    parts = window.parts
    for run in (None, window.session.run):
        for view in (*parts.centre.created_views, parts.inspector, parts.timeline):
            view.show_run(run)
        parts.inspector.show_report(parts.centre.columns[0].current_view.report)
        await wait_until_painted(window)
    parts.appearance.apply()  # measures every text again
    await wait_until_painted(window)
    await wait_until_settled(window)


class _PaintWatcher(QObject):
    """Says when the window has been asked to paint itself."""

    paint_requested = Signal()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.UpdateRequest:
            self.paint_requested.emit()
        return False


async def wait_until_painted(window: MainWindow) -> None:
    """Wait until everything asked for so far is drawn and laid out."""
    watch = _PaintWatcher()
    window.installEventFilter(watch)
    window.update()
    await next_value(watch.paint_requested)
    window.removeEventFilter(watch)
    await asyncio.sleep(0)
    QApplication.sendPostedEvents()
