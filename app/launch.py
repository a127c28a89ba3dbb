"""From a command line to a window that is shown, or to a picture of it."""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress
from pathlib import Path

from PySide6.QtCore import QEvent, QObject, QPoint, Signal, SignalInstance
from PySide6.QtGui import QImage, QPainter
from PySide6.QtWidgets import QApplication

from app.cli import Options
from app.state import values as typed
from app.state.requests import Outcome
from app.window.main_window import MainWindow
from core import strategies


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
        window.show()
        await painted(window)
        if options.run:
            await _run(window)
        save_picture(window, path)
    except LaunchProblem as error:
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
        raise LaunchProblem(f"There is no view “{options.view}”.")
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
                f"{strategy.title} has no setting “{name}”. It has: {', '.join(strategy.parameter_names)}."
            )
        try:
            found[name] = typed.parse(strategy.parameter(name), text)
        except typed.ValueProblem as problem:
            raise LaunchProblem(str(problem)) from None
    return found


async def _run(window: MainWindow) -> None:
    """Run and wait for the end, and for the views to have drawn it. Raises LaunchProblem when it failed."""
    window.parts.runs.run()
    if window.parts.requests.problems:
        raise LaunchProblem(" ".join(window.parts.requests.problems))
    outcome = await next_value(window.session.finished)
    assert isinstance(outcome, Outcome)
    await painted(window)
    if outcome.kind == "failed" and outcome.error is not None:
        raise LaunchProblem(f"{outcome.error.title}. {outcome.error.cause} {outcome.error.remedy}".strip())


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


def save_picture(window: MainWindow, path: Path) -> None:
    """Save the window as a PNG of exactly its size in pixels. Raises LaunchProblem."""
    image = QImage(window.size(), QImage.Format.Format_RGB32)
    painter = QPainter(image)
    window.render(painter, QPoint())
    painter.end()
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
    if not image.save(str(path), "PNG"):
        raise LaunchProblem(f"The picture could not be saved as {path}. Choose a folder you may write to.")
