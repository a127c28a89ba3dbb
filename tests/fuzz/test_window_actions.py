"""Random user actions: no uncaught exception, no menu or card is left, and the window still works at the end. The
disk may be full, or the program's folder may be emptied meanwhile."""

from __future__ import annotations

import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

import pytest
from PySide6.QtCore import QCoreApplication, QEvent
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import (
    QApplication,
    QComboBox,
    QDialog,
    QFileDialog,
    QListView,
    QMenu,
    QPushButton,
    QToolButton,
    QWidget,
)
from pytestqt.qtbot import QtBot

from decodescope.app.widgets.popover import Popover
from decodescope.app.window.main_window import MainWindow
from tests.disks import full_disk
from tests.fuzz.outcomes import LONG
from tests.fuzz.random_user import RandomUser
from tests.ui.fake_engine import ScriptedEngine
from tests.ui.windows import WAIT_MS, open_window, run, whole

DEEDS_A_WINDOW = 40
Trouble = Callable[[Path], AbstractContextManager[None]]
"""Change of the window's folder during an action."""


def full(_folder: Path) -> AbstractContextManager[None]:
    """No file takes a byte more."""
    return full_disk()


@contextmanager
def emptied(folder: Path) -> Iterator[None]:
    """Half of what is in the folder has gone, or is something else."""
    rng = random.Random(len(list(folder.rglob("*"))))
    for path in sorted(folder.iterdir()):
        if rng.random() < 0.5:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
            if rng.random() < 0.3:
                path.write_text("x")
    yield


def without_trouble(_folder: Path) -> AbstractContextManager[None]:
    return nullcontext()


def play(qtbot: QtBot, seed: int, trouble: Trouble = without_trouble) -> None:
    """Use one window at random; failures name all actions. Every fourth action has a fault of the folder."""
    luck = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="decodescope-fuzz-") as folder:
        window = whole(open_window(qtbot, Path(folder), ScriptedEngine(delay=0.001)))
        before, hands = menus(window), RandomUser(window, seed)
        with qtbot.captureExceptions() as raised:
            for _ in range(DEEDS_A_WINDOW):
                with (trouble if luck.random() < 0.25 else without_trouble)(Path(folder)):
                    hands.act()
                assert not raised, (seed, hands.done, raised)
                assert not lost_cards(window), (seed, hands.done)
        settle(qtbot, window, hands)
        left = menus(window) - before
        assert not left, (seed, hands.done, left)
        assert not any(card.isVisible() for card in window.findChildren(Popover)), (seed, hands.done)
        still_works(qtbot, window, (seed, hands.done))
        with qtbot.captureExceptions() as raised, trouble(Path(folder)):
            window.close()
        assert not raised, (seed, hands.done, raised)


def lost_cards(window: MainWindow) -> list[Popover]:
    """Return cards whose subject is no longer visible."""
    cards = [card for card in window.findChildren(Popover) if card.isVisible()]
    return [card for card in cards if not card.parentWidget().isVisible()]


def menus(window: MainWindow) -> Counter[str]:
    """Count the menus and dialogs of each part without those of buttons: late parts have their own."""
    found = [*(menu for menu in window.findChildren(QMenu) if not is_of_button(menu)), *window.findChildren(QDialog)]
    return Counter(f"{type(part).__name__} of {type(part.parent()).__name__}" for part in found)


def is_of_button(menu: QMenu) -> bool:
    """Return whether a button owns the menu or one of the menus around it."""
    button = menu.parent()
    if isinstance(button, QMenu):
        return is_of_button(button)
    return isinstance(button, (QPushButton, QToolButton)) and button.menu() is menu


def settle(qtbot: QtBot, window: MainWindow, hands: RandomUser) -> None:
    """Nothing is open any more, nothing runs, and what was to be deleted is."""
    hands.close_popups()
    window.parts.runs.stop()
    qtbot.waitUntil(lambda: not window.session.busy)
    hands.close_popups()
    window.parts.centre.split_button.setChecked(False)  # the second column has menus and cards of its own
    QApplication.processEvents()
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


def still_works(qtbot: QtBot, window: MainWindow, told: object) -> None:
    """Check that a plain run completes."""
    problems = window.parts.settings_controller.choose("storyteller", "greedy", "dynamic")
    window.parts.settings_controller.set_values({})
    window.parts.setup.prompt.set_prompt("Once upon a time", False)
    assert not problems
    assert not window.parts.requests.problems, (told, window.parts.requests.problems)
    assert run(qtbot, window).kind == "completed", told
    # Earlier requests may still be measured.
    qtbot.waitUntil(lambda: window.session.state == "idle", timeout=WAIT_MS)


@pytest.fixture(autouse=True)
def _nothing_of_the_systems(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the system's file dialogs and browser, which are not tested."""
    monkeypatch.setattr(QFileDialog, "open", lambda dialog, *_: QWidget.show(dialog))
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda _url: True)


TROUBLES = [
    pytest.param(full, marks=pytest.mark.skipif(sys.platform == "win32", reason="its files have no limit")),
    emptied,
]


@pytest.mark.every(4)
@pytest.mark.parametrize("seed", range(4))
def test_random_actions_raise_no_exception(qtbot: QtBot, seed: int) -> None:
    play(qtbot, seed)


@pytest.mark.every(4)
@pytest.mark.parametrize("trouble", TROUBLES)
@pytest.mark.parametrize("seed", range(2))
def test_random_actions_with_faults_raise_no_exception(qtbot: QtBot, seed: int, trouble: Trouble) -> None:
    play(qtbot, seed, trouble)


def test_a_part_of_an_open_list_can_be_reached(qtbot: QtBot) -> None:
    box = QComboBox()
    qtbot.addWidget(box)
    box.addItems(["one", "two"])
    box.show()
    box.showPopup()
    hands = RandomUser(box, 1)
    part = hands.target(QListView)
    assert isinstance(part, QListView)
    assert hands.random_point(part).x() < part.width()
    box.hidePopup()


@pytest.mark.fuzz
def test_many_random_actions_raise_no_exception(qtbot: QtBot) -> None:
    for _ in range(max(1, LONG // 100)):
        play(qtbot, random.randrange(2**31))


@pytest.mark.fuzz
@pytest.mark.parametrize("trouble", TROUBLES)
def test_many_random_actions_with_faults_raise_no_exception(qtbot: QtBot, trouble: Trouble) -> None:
    for _ in range(max(1, LONG // 400)):
        play(qtbot, random.randrange(2**31), trouble)
