"""After a change of language, no text on the screen is left in the previous one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtWidgets import QAbstractButton, QComboBox, QLabel, QTabBar, QWidget
from pytestqt.qtbot import QtBot

from decodescope import core
from decodescope.app.features.tours.state import find_tour as find_tour
from decodescope.app.storage import examples
from decodescope.app.views import VIEWS
from decodescope.app.window.main_window import MainWindow
from decodescope.core.errors import PromptTooLongError
from decodescope.resources.language import ENGLISH, LANGUAGES, current_language, tr
from decodescope.resources.language import set_language as set_text_language
from decodescope.resources.retranslation import _messages, retranslate
from tests.ui.fake_engine import ScriptedEngine
from tests.ui.layout import settle
from tests.ui.test_language_switch import switch
from tests.ui.windows import WAIT_MS, open_window, run

pytestmark = pytest.mark.usefixtures("restore_english")

CHINESE = re.compile(r"[\u3400-\u9fff]")
OURS = {
    english[0]
    for english, foreign in _messages("zh_CN")
    if "{" not in english[0] and english[0] != foreign[0] and CHINESE.search(foreign[0]) and len(english[0]) > 3
}
"""English sentences and titles that differ in Chinese."""
SHARED = {"LM Studio", "mean"}


def visible_texts(window: MainWindow) -> Iterator[tuple[str, str]]:
    """Every text of every part that is seen, with the part's name."""
    for part in (window, *window.findChildren(QWidget)):
        if not part.isVisible():
            continue
        name = part.objectName() or type(part).__name__
        for text in (part.toolTip(), part.accessibleName(), part.accessibleDescription(), part.windowTitle()):
            yield name, text
        if isinstance(part, QLabel | QAbstractButton):
            yield name, part.text()
        if isinstance(part, QComboBox):
            yield from ((name, part.itemText(n)) for n in range(part.count()))
        if isinstance(part, QTabBar):
            yield from ((name, part.tabText(n)) for n in range(part.count()))


def untranslated_texts(window: MainWindow) -> list[tuple[str, str]]:
    """Yield texts that are still in the other language."""
    settle(window)
    window.parts.status.refresh()
    if current_language() == ENGLISH:
        names = set(LANGUAGES.values())
        return [(n, t) for n, t in visible_texts(window) if CHINESE.search(t) and not any(name in t for name in names)]
    return [(n, t) for n, t in visible_texts(window) if t.strip(" …:") in OURS - SHARED or t in OURS - SHARED]


def finished(qtbot: QtBot, window: MainWindow) -> None:
    run(qtbot, window)
    window.session.select_token(3)


def failed(qtbot: QtBot, window: MainWindow) -> None:
    engine = window.property("engine")
    engine.fail_at, engine.error = 0, PromptTooLongError(600, 512)
    run(qtbot, window)
    assert window.parts.status.outcome.text() == tr("The prompt cannot be used")


def stopped(qtbot: QtBot, window: MainWindow) -> None:
    with qtbot.waitSignal(window.session.finished, timeout=WAIT_MS):
        window.parts.runs.run()
        window.session.stop()


def touring(qtbot: QtBot, window: MainWindow) -> None:
    with qtbot.waitSignal(window.parts.tours.player.stepShown, timeout=WAIT_MS):
        window.parts.tours.player.play(find_tour("likeliest"))


def guessing(qtbot: QtBot, window: MainWindow) -> None:
    window.parts.settings_controller.set_values({"max_new_tokens": 40})
    run(qtbot, window)
    with qtbot.waitSignal(window.parts.guess.questionShown, timeout=WAIT_MS) as requested:
        window.parts.guess.start()
    window.parts.guess.pick(requested.args[0].answer)


def with_example(qtbot: QtBot, window: MainWindow) -> None:
    window.parts.setup.prompt.exampleChosen.emit(next(one for one in examples.load_examples() if one.id == "story"))


def noticed(qtbot: QtBot, window: MainWindow) -> None:
    window.parts.messages.show_notice(
        tr("Run something first: a demo shows the current run."), tr("Nothing to record yet")
    )


STATES = [finished, failed, stopped, touring, guessing, with_example, noticed]


@pytest.mark.every(7)
@pytest.mark.parametrize("state", STATES, ids=lambda state: state.__name__)
@pytest.mark.parametrize("first", ["en", "zh_CN"])
def test_no_text_of_previous_language_remains(
    qtbot: QtBot, config_dir: Path, first: str, state: Callable[[QtBot, MainWindow], None]
) -> None:
    engine = ScriptedEngine()
    window = open_window(qtbot, config_dir, engine)
    window.setProperty("engine", engine)
    if first != ENGLISH:
        switch(qtbot, window, first)
    state(qtbot, window)
    assert untranslated_texts(window) == []
    switch(qtbot, window, "zh_CN" if first == "en" else "en")
    assert untranslated_texts(window) == []


@pytest.mark.every(2)
@pytest.mark.parametrize("first", ["en", "zh_CN"])
def test_every_view_is_translated(qtbot: QtBot, config_dir: Path, first: str) -> None:
    window = open_window(qtbot, config_dir)
    if first != ENGLISH:
        switch(qtbot, window, first)
    run(qtbot, window)
    for view in VIEWS:
        if not window.parts.centre.show_view(view.name):
            continue
        untranslated_texts(window)
        switch(qtbot, window, "zh_CN" if current_language() == "en" else "en")
        assert window.parts.centre.columns[0].current_name == view.name
        assert untranslated_texts(window) == [], view.name


def test_tour_continues_after_language_change(qtbot: QtBot, config_dir: Path) -> None:
    window = open_window(qtbot, config_dir)
    before = window.parts.setup.prompt.editor.toPlainText()
    touring(qtbot, window)
    player = window.parts.tours.player
    with qtbot.waitSignal(player.stepShown, timeout=WAIT_MS):
        player.next()
    shown = window.session.run
    switch(qtbot, window, "zh_CN")
    again = window.parts.tours.player
    assert again is not player
    assert (again.step_index, window.session.run) == (1, shown)
    assert CHINESE.search(again.ui.panel.sentence.text())
    again.leave()
    assert window.parts.setup.prompt.editor.toPlainText() == before


def test_example_stays_borrowed_after_language_change(qtbot: QtBot, config_dir: Path) -> None:
    window = open_window(qtbot, config_dir)
    before = window.parts.setup.prompt.editor.toPlainText()
    window.parts.setup.prompt.set_prompt("My own words")
    example = next(one for one in examples.load_examples() if one.id == "beam-search")
    window.parts.setup.prompt.exampleChosen.emit(example)
    switch(qtbot, window, "zh_CN")
    parts = window.parts
    assert parts.chosen.strategy.name == "beam_search"
    assert parts.setup.prompt.editor.toPlainText() == example.prompt != before
    parts.setup.example_bar.back.click()
    assert parts.setup.prompt.editor.toPlainText() == "My own words"


def test_retranslate_works_in_both_directions() -> None:
    error = PromptTooLongError(600, 512)
    set_text_language("zh_CN")
    other = PromptTooLongError(600, 512)
    assert retranslate(error.cause) == other.cause
    assert retranslate(f"{error.cause} {tr(error.title)}") != error.cause
    set_text_language(ENGLISH)
    assert retranslate(other.cause) == error.cause
    assert retranslate("Nothing that this program says: 3 × 4") == "Nothing that this program says: 3 × 4"
    assert core.words.count(1, "token") == "1 token"
