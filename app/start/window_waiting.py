"""Wait for a window before taking a picture: until its run has ended, it is painted, and no delayed step is pending."""

from __future__ import annotations

import asyncio

from PySide6.QtCore import QEvent, QObject, QTimer, Signal, SignalInstance
from PySide6.QtWidgets import QApplication, QWidget

from decodescope.app.state.worker_messages import Outcome
from decodescope.app.window.main_window import MainWindow

MAX_DELAYS = 20
"""Maximum number of delayed steps to wait for; more would suggest that they never end."""


class LaunchProblem(Exception):
    """Raised when the command line cannot be carried out; the message gives the reason."""


async def next_value(signal: SignalInstance) -> object:
    """Wait for the next emission of `signal` and return its first argument. Needs a running qasync loop."""
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
    """Run, wait for the end, and wait until the views have drawn it. Raises LaunchProblem if the run failed."""
    if problems := window.parts.requests.problems:  # checked first: starting a run empties the chat editor
        raise LaunchProblem(" ".join(problems))
    window.parts.runs.run()
    outcome = await next_value(window.session.finished)
    assert isinstance(outcome, Outcome)
    await wait_until_painted(window)
    if outcome.kind == "failed" and outcome.error is not None:
        raise LaunchProblem(f"{outcome.error.title}. {outcome.error.cause} {outcome.error.remedy}".strip())


async def play_tour_to_end(window: MainWindow, name: str) -> None:
    """Play a tour without pauses until its last sentence is drawn. Raises LaunchProblem if one of its runs did not
    finish.
    """
    from decodescope.app.features.tours.state import find_tour

    player = window.parts.tours.player
    finished = asyncio.ensure_future(next_value(player.finished))
    failed = asyncio.ensure_future(next_value(player.failed))
    await asyncio.sleep(0)  # let both tasks connect to their signals
    player.play(find_tour(name), without_delay=True)
    done, waiting = await asyncio.wait((finished, failed), return_when=asyncio.FIRST_COMPLETED)
    for other in waiting:
        other.cancel()
    await wait_until_painted(window)
    if failed in done:
        raise LaunchProblem(str(failed.result()))


async def wait_until_loaded(window: MainWindow) -> None:
    """Wait until the chosen model is loaded or has failed to load, and the result is drawn; return at once if models
    are loaded only on demand.
    """
    window.parts.loading.start_preloading()
    while window.session.state == "loading":
        await next_value(window.session.stateChanged)
    await wait_until_painted(window)


async def wait_until_settled(window: MainWindow) -> None:
    """Wait for delayed updates, such as the overview map of a tree that has just grown."""
    for _ in range(MAX_DELAYS):
        due = [timer for timer in window.findChildren(QTimer) if timer.isSingleShot() and timer.isActive()]
        if not due:
            break
        await next_value(due[0].timeout)
        await wait_until_painted(window)
    for part in window.findChildren(QWidget):  # a tool that became narrower may still have its old position
        if (layout := part.layout()) is not None:
            layout.invalidate()
    await wait_until_painted(window)


async def redraw_from_scratch(window: MainWindow) -> None:
    """Clear the views, then show the complete run at once, so that the picture does not depend on how events were
    batched.
    """
    parts = window.parts
    for run in (None, window.session.run):
        for view in (*parts.centre.created_views, parts.inspector, parts.timeline):
            view.show_run(run)
        parts.inspector.show_report(parts.centre.columns[0].current_view.report)
        await wait_until_painted(window)
    parts.appearance.apply()  # measures all texts again
    await wait_until_painted(window)
    await wait_until_settled(window)


class _PaintWatcher(QObject):
    """Emit a signal when the window receives a paint request."""

    paint_requested = Signal()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.UpdateRequest:
            self.paint_requested.emit()
        return False


async def wait_until_painted(window: MainWindow) -> None:
    """Wait until all pending updates are painted and laid out."""
    watch = _PaintWatcher()
    window.installEventFilter(watch)
    window.update()
    await next_value(watch.paint_requested)
    window.removeEventFilter(watch)
    await asyncio.sleep(0)
    QApplication.sendPostedEvents()
