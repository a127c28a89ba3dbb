"""The welcome page: shown once, at a first start without options; every button works."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import qasync
from PySide6.QtCore import Qt, QTimer
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QDialog, QFileDialog, QPushButton, QWidget
from pytestqt.qtbot import QtBot

from decodescope.app import build_window
from decodescope.app.features.tours.panel.tour_chooser import TourChooser
from decodescope.app.panels.welcome.welcome_page import WelcomePage
from decodescope.app.start import launch
from decodescope.app.start.cli import CommandLineOptions, parse
from decodescope.app.storage.settings_file import SettingsStore
from decodescope.app.theme.theme import theme_for
from decodescope.app.window.main_window import MainWindow
from decodescope.resources import language
from tests.ui.fake_engine import ScriptedEngine
from tests.ui.layout import faults, settle
from tests.ui.windows import WAIT_MS, activate, find, open_window, run


@pytest.fixture
def use_language() -> Iterator[Callable[[str], None]]:
    """Use another language until the test ends."""
    yield language.set_language
    language.set_language(language.ENGLISH)


@pytest.fixture
def window(qtbot: QtBot, config_dir: Path, engine: ScriptedEngine) -> MainWindow:
    return activate(qtbot, open_window(qtbot, config_dir, engine))


@pytest.fixture
def page(window: MainWindow) -> QWidget:
    window.parts.actions.do("show_welcome")
    return find(window, QWidget, "welcomePage")


def shows_welcome_page(qapp: QApplication, folder: Path, options: CommandLineOptions) -> bool:
    """Return whether a program with these arguments shows the page."""
    window = build_window(folder, ScriptedEngine(), assembled=False)
    seen = []

    def look() -> None:
        seen.append(window.parts.welcome.is_open)
        window.close()

    window.firstPainted.connect(lambda: QTimer.singleShot(0, window, look))
    with qasync.QEventLoop(qapp, set_running_loop=False) as loop:
        loop.run_until_complete(launch.start(window, options))
    asyncio.set_event_loop(None)
    window.deleteLater()
    return seen[0]


@pytest.mark.slow
def test_welcome_page_is_shown_at_first_start_only(qapp: QApplication, config_dir: Path) -> None:
    assert shows_welcome_page(qapp, config_dir, parse(["--theme", "dark", "--size", "1000x700"]))
    assert SettingsStore(config_dir).load().habits.welcomed
    assert not shows_welcome_page(qapp, config_dir, parse([]))


@pytest.mark.slow
def test_welcome_page_is_not_shown_with_run_option(qapp: QApplication, config_dir: Path) -> None:
    assert not shows_welcome_page(qapp, config_dir, parse(["--run"]))
    assert not SettingsStore(config_dir).load().habits.welcomed  # it has not been seen


@pytest.mark.parametrize(
    ("line", "does"),
    [([], False), (["--theme", "dark", "--config-dir", "x"], False), (["--language", "zh_CN"], False),
     (["--run"], True), (["--view", "tree"], True), (["a.decodescope"], True), (["--prompt", "Once"], True),
     (["--present"], True), (["--screenshot", "a.png"], True)],
)  # fmt: skip
def test_sets_more_than_appearance_depends_on_options(line: list[str], does: bool) -> None:
    assert parse(line).sets_more_than_appearance is does


def test_welcome_page_is_not_created_by_default(window: MainWindow) -> None:
    assert window.parts.welcome.page is None
    assert not window.findChildren(QWidget, "welcomePage")


def test_story_button_runs_storyteller(qtbot: QtBot, window: MainWindow, page: QWidget, engine: ScriptedEngine) -> None:
    window.parts.centre.show_view("memory")
    with qtbot.waitSignal(window.session.finished, timeout=WAIT_MS):
        QTest.keyClick(QApplication.focusWidget(), Qt.Key.Key_Return)
    assert page.isHidden()
    assert engine.runs[-1].model == "storyteller"
    assert window.parts.centre.columns[0].current_name == "tokens"
    assert window.session.run is not None
    assert window.session.run.text


def test_tour_button_opens_tour_chooser(qtbot: QtBot, window: MainWindow, page: QWidget) -> None:
    qtbot.mouseClick(find(window, QPushButton, "tourWay"), Qt.MouseButton.LeftButton)
    chooser = next(dialog for dialog in window.findChildren(TourChooser) if dialog.isVisible())
    assert page.isHidden()
    chooser.close()


def test_lesson_button_opens_lessons(window: MainWindow, page: QWidget) -> None:
    find(window, QPushButton, "lessonWay").click()
    assert page.isHidden()
    assert window.parts.lessons.page is not None
    window.parts.lessons.page.close()


def test_first_start_asks_for_wording_once(window: MainWindow) -> None:
    """Enter answers, and the focus goes to the first way to start."""
    welcome = window.parts.welcome
    welcome.show_once()
    plain, exact = (find(window, QPushButton, f"wording.{depth}") for depth in ("plain", "exact"))
    assert QApplication.focusWidget() is plain
    assert "p = 0.05" in exact.accessibleDescription()
    assert "about 5 in 100" in plain.accessibleDescription()
    QTest.keyClick(plain, Qt.Key.Key_Right)
    QTest.keyClick(exact, Qt.Key.Key_Return)
    assert window.parts.settings.appearance.depth == "exact"
    assert (exact.isChecked(), plain.isChecked()) == (True, False)
    assert QApplication.focusWidget() is find(window, QPushButton, "storyWay")
    window.parts.appearance.set_depth("usual")
    welcome.leave()
    welcome.show_once()
    assert not welcome.is_open
    window.parts.actions.do("show_welcome")
    assert not welcome.asks_wording
    assert plain.isHidden()


def test_model_button_opens_download_dialog(window: MainWindow, page: QWidget) -> None:
    find(window, QPushButton, "modelWay").click()
    assert find(window, QDialog, "downloadDialog").isVisible()
    assert page.isHidden()
    find(window, QPushButton, "chooseFolder").click()
    dialogs = window.findChildren(QFileDialog)
    assert len(dialogs) == 1
    dialogs[0].close()


def test_escape_closes_welcome_page_and_focuses_editor(window: MainWindow, page: QWidget) -> None:
    QTest.keyClick(QApplication.focusWidget(), Qt.Key.Key_Escape)
    assert page.isHidden()
    assert QApplication.focusWidget() is window.parts.setup.prompt.editor


def test_tab_and_arrow_keys_cycle_within_page(window: MainWindow, page: QWidget) -> None:
    names = []
    for _ in range(6):
        names.append(QApplication.focusWidget().objectName())
        QTest.keyClick(QApplication.focusWidget(), Qt.Key.Key_Tab)
    assert names == ["storyWay", "lessonWay", "tourWay", "modelWay", "skipWelcome", "storyWay"]
    find(window, QPushButton, "storyWay").setFocus()
    QTest.keyClick(QApplication.focusWidget(), Qt.Key.Key_Up)
    assert QApplication.focusWidget().objectName() == "modelWay"


def test_other_run_hides_welcome_page(qtbot: QtBot, window: MainWindow, page: QWidget) -> None:
    run(qtbot, window)
    assert page.isHidden()


@pytest.mark.parametrize(
    ("size", "scale", "theme", "code"),
    [((1280, 800), 1.0, "light", "en"), ((900, 600), 1.5, "dark", "zh_CN"), ((900, 600), 2.0, "light", "en")],
)
def test_welcome_page_is_not_clipped(
    qtbot: QtBot,
    size: tuple[int, int],
    scale: float,
    theme: str,
    code: str,
    use_language: Callable[[str], None],
) -> None:
    use_language(code)
    body, look = QWidget(), theme_for(theme, scale)
    qtbot.addWidget(body)
    body.setStyleSheet(look.stylesheet())
    body.resize(*size)
    page = WelcomePage(body)
    page.set_theme(look)
    with qtbot.waitExposed(body):
        body.show()
    page.open(asks_wording=True)
    settle(body)
    assert page.geometry() == body.rect()
    assert faults(page) == []
