"""From a command line to a window that is shown, or to a picture of it."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from PySide6.QtCore import QEvent, QObject, QTimer, Signal, SignalInstance
from PySide6.QtWidgets import QApplication

from app.cli import PICTURE_SIZE, Options
from app.picture import PictureError, hold_still, save_picture
from app.state import values as typed
from app.state.near import near, short, unknown
from app.state.requests import Outcome
from app.views import VIEWS
from app.window.main_window import MainWindow
from core import strategies

MOST_DELAYS = 20
"""Delayed steps that a picture waits for; what still goes on then would never end."""


class LaunchProblem(Exception):
    """The command line asks for what cannot be done; the message says why."""


async def next_value(signal: SignalInstance) -> object:
    """What `signal` next says (its first argument). Needs a running qasync loop."""
    heard: asyncio.Future[object] = asyncio.get_running_loop().create_future()

    def hear(*said: object) -> None:
        if not heard.done():
            heard.set_result(said[0] if said else None)

    signal.connect(hear)
    try:
        return await heard
    finally:
        signal.disconnect(hear)


async def start(window: MainWindow, options: Options) -> int:
    """Furnish the window and stay until it is closed, or leave a picture and go. Gives back the exit code."""
    if window.is_closed:  # by a quick hand, while it was still empty
        return 0
    window.assemble()
    if options.screenshot is None:
        return await _stay(window, options)
    try:
        return await _leave_picture(window, options, options.screenshot)
    finally:
        window.close()


async def _stay(window: MainWindow, options: Options) -> int:
    problem = ""
    try:
        apply(window, options)
    except LaunchProblem as error:
        problem = str(error)
    window.show()
    if problem:
        window.parts.messages.show_notice(problem, "The command line could not be followed in full")
    elif options.run:
        window.parts.runs.run()
    await next_value(window.closed)
    return 0


async def _leave_picture(window: MainWindow, options: Options, path: Path) -> int:
    try:
        apply(window, options)
        if options.size is None:
            window.resize(*PICTURE_SIZE)
        window.show()
        await painted(window)
        await (_run(window) if options.run else _loaded(window))
        await _settled(window)
        if options.still:
            await _draw_anew(window)
            hold_still(window)
            await painted(window)
        save_picture(window, path)
    except (LaunchProblem, PictureError) as error:
        print(f"tokenscope: {error}", file=sys.stderr)
        return 1
    return 0


def apply(window: MainWindow, options: Options) -> None:
    """Set everything the command line says. Raises LaunchProblem."""
    problems = window.parts.controller.choose(options.model, options.strategy, options.cache, options.drafts)
    if problems:
        raise LaunchProblem(" ".join(problems))
    window.parts.controller.set_more_values(_values(window.parts.chosen.strategy.name, options.params))
    if options.prompt is not None:
        window.parts.setup.prompt.set_prompt(options.prompt, options.chat)
    if options.seed is not None:
        window.parts.toolbar.seed.spin.setValue(options.seed)
        window.parts.toolbar.seed.lock.setChecked(True)
    if options.view and not window.parts.centre.show_view(options.view):
        raise LaunchProblem(unknown("view", options.view, (view.name for view in VIEWS)))
    _apply_appearance(window, options)


def _apply_appearance(window: MainWindow, options: Options) -> None:
    look = window.parts.settings.appearance
    look.theme = options.theme or look.theme
    window.parts.appearance.set_font_scale(options.font_scale or look.font_scale)
    if options.size is not None:
        least = window.minimumSize()
        if options.size[0] < least.width() or options.size[1] < least.height():
            raise LaunchProblem(f"The window is at least {least.width()}x{least.height()} pixels large.")
        window.resize(*options.size)


def _values(strategy_name: str, pairs: tuple[tuple[str, str], ...]) -> dict[str, object]:
    strategy = strategies.registry[strategy_name]
    found: dict[str, object] = {}
    for name, text in pairs:
        if name not in strategy.parameter_names:
            raise LaunchProblem(
                f"{strategy.title} has no setting “{short(name)}”.{near(name, strategy.parameter_names)} "
                f"It has: {', '.join(strategy.parameter_names)}."
            )
        try:
            found[name] = typed.parse(strategy.parameter(name), text)
        except typed.ValueProblem as problem:
            raise LaunchProblem(f"--param {name}: {problem}") from None
    return found


async def _run(window: MainWindow) -> None:
    """Run and wait for the end, and for the views to have drawn it. Raises LaunchProblem when it failed."""
    if problems := window.parts.requests.problems:  # looked at first: a run that has begun empties a chat's editor
        raise LaunchProblem(" ".join(problems))
    window.parts.runs.run()
    outcome = await next_value(window.session.finished)
    assert isinstance(outcome, Outcome)
    await painted(window)
    if outcome.kind == "failed" and outcome.error is not None:
        raise LaunchProblem(f"{outcome.error.title}. {outcome.error.cause} {outcome.error.remedy}".strip())


async def _loaded(window: MainWindow) -> None:
    """Wait until the chosen model is held ready, or has failed to be, and that is drawn; at once if it is not loaded
    before it is asked for."""
    window.parts.loading.warm_up()
    while window.session.state == "loading":
        await next_value(window.session.stateChanged)
    await painted(window)


async def _settled(window: MainWindow) -> None:
    """Wait for what is put off a little while, as a map of a tree that has just grown."""
    for _ in range(MOST_DELAYS):
        due = [timer for timer in window.findChildren(QTimer) if timer.isSingleShot() and timer.isActive()]
        if not due:
            return
        await next_value(due[0].timeout)
        await painted(window)


async def _draw_anew(window: MainWindow) -> None:
    """Show nothing, then the whole run at once: how its events came, in which batches, is then not to be seen."""
    parts = window.parts
    for run in (None, window.session.run):
        for view in (*parts.centre.made, parts.inspector, parts.timeline):
            view.show_run(run)
        parts.inspector.show_report(parts.centre.columns[0].shown.report)
        parts.appearance.apply()  # measures every text again
        await painted(window)
    await _settled(window)


class _Paints(QObject):
    """Says when the window has been asked to paint itself."""

    seen = Signal()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.UpdateRequest:
            self.seen.emit()
        return False


async def painted(window: MainWindow) -> None:
    """Wait until everything asked for so far is drawn and laid out."""
    watch = _Paints()
    window.installEventFilter(watch)
    window.update()
    await next_value(watch.seen)
    window.removeEventFilter(watch)
    await asyncio.sleep(0)
    QApplication.sendPostedEvents()
