"""Windows for tests, with a scripted engine and their own settings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from decodescope.app import build_window
from decodescope.app.state.worker_messages import Outcome
from decodescope.app.theme.theme import theme_for
from decodescope.app.theme.themed import Themed
from decodescope.app.window.main_window import MainWindow
from tests.ui.fake_engine import ScriptedEngine

WAIT_MS = 60_000
T = TypeVar("T", bound=QObject)
ThemedWidget = TypeVar("ThemedWidget", bound=Themed)


def open_window(qtbot: QtBot, folder: Path, engine: ScriptedEngine | None = None) -> MainWindow:
    """Open a window whose parts are created on demand: `whole` creates the rest. It is closed when the test ends.

    The program makes them when it has nothing else to do, which takes longer than most tests.
    """
    window = build_window(folder, engine or ScriptedEngine(), assembled=False)
    window.assemble()
    for make in _later(window):
        window.firstPainted.disconnect(make)
    qtbot.addWidget(window)
    window.resize(1280, 800)
    with qtbot.waitExposed(window):
        window.show()
    return window


def open_core_window(qtbot: QtBot, folder: Path) -> MainWindow:
    """Open a window over the real core and wait for its model. It is closed when the test ends."""
    window = build_window(folder)
    qtbot.addWidget(window)
    window.resize(1280, 800)
    with qtbot.waitSignal(window.session.modelReady, timeout=6 * WAIT_MS):
        window.show()
    return window


def activate(qtbot: QtBot, window: MainWindow) -> MainWindow:
    """Make it the window that receives keys."""
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow)
    return window


def show_widget(qtbot: QtBot, widget: ThemedWidget, width: int, height: int, theme: str = "light") -> ThemedWidget:
    """Show a widget in a window of its own. It is closed when the test ends."""
    qtbot.addWidget(widget)
    widget.set_theme(theme_for(theme))
    widget.resize(width, height)
    with qtbot.waitExposed(widget):
        widget.show()
    return widget


def whole(window: MainWindow) -> MainWindow:
    """The same window, with everything in it made."""
    window.parts.centre.create_all_views()
    window.parts.history_panel.ensure_view()
    for make in _later(window):
        make()
    return window


def _later(window: MainWindow) -> list[Callable[[], None]]:
    parts = window.parts
    return [parts.centre.create_remaining_views, parts.setup.create_all_rows, parts.inspector.area.create_token_page]


def find(window: MainWindow, kind: type[T], name: str) -> T:
    """The one part of that name."""
    found = window.findChildren(kind, name) or whole(window).findChildren(kind, name)
    assert len(found) == 1, f"{len(found)} parts are called {name}"
    return found[0]


def finish(qtbot: QtBot, window: MainWindow, action: Callable[[], object]) -> Outcome:
    """Do what starts or ends a run, and wait until the run has ended and the inspector is updated."""
    with qtbot.waitSignal(window.session.finished, timeout=WAIT_MS) as signal:
        action()
    QApplication.processEvents()
    return signal.args[0]


def run(qtbot: QtBot, window: MainWindow) -> Outcome:
    """Run with the current settings."""
    return finish(qtbot, window, window.parts.runs.run)
