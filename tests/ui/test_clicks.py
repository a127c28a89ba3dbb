"""Ten things that people do, each by the mouse, and how many clicks it takes. Typed words are not clicks."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QApplication, QFileDialog, QMenu, QWidget
from pytestqt.qtbot import QtBot

from decodescope.app.views.chat.view import ChatView
from decodescope.app.window.main_window import MainWindow
from tests.core import gguf_models
from tests.ui.fake_engine import STORY, ScriptedEngine
from tests.ui.windows import WAIT_MS, find, finish, open_window

CLICKS = {
    "first story": 1,
    "web page for pupils": 2,
    "two temperatures side by side": 2,
    "first chat answer in a GGUF model": 3,
    "continue an edited answer": 2,
    "another answer beside the first": 1,
    "back to the first answer": 1,
    "another token in the answer": 2,
    "switch an adapter off": 2,
    "serve the model": 3,
}
"""Task → clicks. Enter sends a message."""


class MouseUser:
    """A user with a mouse, who presses only visible and enabled widgets. `clicks` is their number."""

    def __init__(self, window: MainWindow) -> None:
        self.window, self.clicks = window, 0

    def press(self, target: QWidget | str, position: QPoint | None = None) -> None:
        """Click a widget, or a button by its object name."""
        widget = find(self.window, QAbstractButton, target) if isinstance(target, str) else target
        assert widget.isVisible(), widget.objectName()
        assert widget.isEnabled(), widget.objectName()
        self.clicks += 1
        QTest.mouseClick(
            widget, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, position or widget.rect().center()
        )
        QApplication.processEvents()

    def choose(self, menu: str, command: str) -> None:
        """Open a menu of the bar and choose a command: two clicks."""
        action = self.window.parts.menu_bar.commands[command]
        assert action.isEnabled()
        assert action in self.window.parts.menu_bar.menus[menu].actions()
        self.clicks += 2
        action.trigger()

    def choose_in(self, menu: QMenu, title: str) -> None:
        """Choose an entry of an open menu."""
        self.clicks += 1
        next(action for action in menu.actions() if title in action.text() and action.isEnabled()).trigger()


@pytest.fixture
def engine() -> ScriptedEngine:
    return ScriptedEngine(tokens=["Yes", ",", " it", " did", "."])


@pytest.fixture
def window(qtbot: QtBot, config_dir: Path, engine: ScriptedEngine) -> MainWindow:
    window = open_window(qtbot, config_dir, engine)
    qtbot.waitUntil(lambda: window.session.model is not None, timeout=WAIT_MS)
    return window


@pytest.fixture
def hand(window: MainWindow) -> MouseUser:
    return MouseUser(window)


def start_chat(qtbot: QtBot, window: MainWindow) -> None:
    window.parts.setup.prompt.mode.button("chat").click()
    window.parts.setup.prompt.editor.setPlainText("Hi")
    finish(qtbot, window, window.parts.runs.run)


def test_clicks_for_a_story_its_page_and_two_temperatures(
    qtbot: QtBot, window: MainWindow, engine: ScriptedEngine, tmp_path: Path
) -> None:
    engine.tokens = STORY
    hand = MouseUser(window)
    finish(qtbot, window, lambda: hand.press("runButton"))
    assert window.session.run.text == "".join(STORY)
    assert hand.clicks == CLICKS["first story"]
    hand = MouseUser(window)
    hand.choose("&File", "save_page")
    dialog = window.findChild(QFileDialog)
    dialog.fileSelected.emit(str(tmp_path / "pupils.html"))
    dialog.close()
    assert (tmp_path / "pupils.html").exists()
    assert hand.clicks == CLICKS["web page for pupils"]
    hand, column = MouseUser(window), window.parts.centre.columns[0]
    places = [column.tabs.tabRect(number).center() for number in range(column.tabs.count())]
    with qtbot.waitSignal(window.session.measuringChanged, timeout=WAIT_MS, check_params_cb=lambda on: not on):
        hand.press(column.tabs, next(place for place in places if column.name_at(place) == "compare"))
        hand.press("compareButton")
    assert [request.settings["temperature"] for request in engine.runs[1:]] == [0.2, 1.2]
    assert hand.clicks == CLICKS["two temperatures side by side"]


def test_clicks_for_a_chat_in_a_gguf_model(
    qtbot: QtBot, window: MainWindow, engine: ScriptedEngine, hand: MouseUser, tmp_path: Path
) -> None:
    from decodescope.core import save_gguf

    path = save_gguf(gguf_models.make("llama"), tmp_path / "tiny.gguf", "Q8_0")
    window.parts.chosen.model.add_folder(str(path), select=False)
    picker = window.parts.toolbar.model
    hand.press(picker)
    rows = picker.popup.list
    index = picker.popup.index_of(str(path))
    rows.scrollTo(index)
    hand.press(rows.viewport(), rows.visualRect(index).center())
    assert window.parts.chosen.model.name == str(path)
    hand.press(window.parts.setup.prompt.mode.button("chat"))
    qtbot.keyClicks(window.parts.setup.prompt.editor, "Hi")
    finish(qtbot, window, lambda: qtbot.keyClick(window.parts.setup.prompt.editor, Qt.Key.Key_Return))
    assert engine.runs[-1].model == str(path)
    assert window.parts.chat.conversation.turns[-1].content == "Yes, it did."
    assert hand.clicks == CLICKS["first chat answer in a GGUF model"]


def test_clicks_for_answers_of_a_chat(qtbot: QtBot, window: MainWindow, engine: ScriptedEngine) -> None:
    start_chat(qtbot, window)
    area, chat = find(window, ChatView, "chatView").area, window.parts.chat.conversation
    hand = MouseUser(window)
    hand.press("editTurnButton")
    area.editor.text.setPlainText("Yes, it was")
    finish(qtbot, window, lambda: hand.press("continueButton"))
    assert engine.runs[-1].beginning[-1] == " was"
    assert hand.clicks == CLICKS["continue an edited answer"]
    hand = MouseUser(window)
    finish(qtbot, window, lambda: hand.press("regenerateButton"))
    assert len(chat.turns[-1].siblings) == 3
    assert hand.clicks == CLICKS["another answer beside the first"]
    hand = MouseUser(window)
    hand.press("previousAnswer")
    assert chat.turns[-1].number == 2
    assert hand.clicks == CLICKS["back to the first answer"]


def test_clicks_for_another_token(qtbot: QtBot, window: MainWindow, engine: ScriptedEngine) -> None:
    start_chat(qtbot, window)
    hand, view = MouseUser(window), find(window, ChatView, "chatView")
    hand.clicks += 1  # the right button on the token opens its menu
    place = view.token_rect(1, 2).center().toPoint()
    view.area.tokenMenuRequested.emit(
        window.parts.chat.conversation.turns[1], 2, view.area.viewport().mapToGlobal(place)
    )
    menu = next(menu for menu in view.findChildren(QMenu) if any("instead" in one.text() for one in menu.actions()))
    finish(qtbot, window, lambda: hand.choose_in(menu, "instead"))
    assert len(engine.runs[-1].beginning) == 3
    assert hand.clicks == CLICKS["another token in the answer"]


def test_clicks_for_an_adapter_and_for_serving(
    qtbot: QtBot, window: MainWindow, engine: ScriptedEngine, tmp_path: Path
) -> None:
    from tests.ui.test_adapters import adapter

    start_chat(qtbot, window)
    window.parts.adapters.add(adapter(tmp_path / "pirate"))
    hand, composer = MouseUser(window), window.parts.chat.composer
    hand.clicks += 1  # the button opens its menu, which would block the test
    assert composer.adapters.isVisible()
    composer.adapters.menu().aboutToShow.emit()
    hand.choose_in(composer.adapters.menu(), "pirate")
    assert window.parts.adapters.choices == ()
    assert hand.clicks == CLICKS["switch an adapter off"]
    hand = MouseUser(window)
    hand.choose("&Tools", "serve_model")
    dialog = window.parts.serving.open()
    dialog.port.setValue(0)
    hand.press(dialog.toggle)
    assert window.parts.serving.server is not None
    assert hand.clicks == CLICKS["serve the model"]
    window.parts.serving.stop()
    dialog.close()
