"""Another language while the program runs: at once, nothing lost, nothing left over."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path

import pytest
import shiboken6
from PySide6.QtCore import QMetaMethod, QObject
from PySide6.QtWidgets import QComboBox, QDialog
from pytestqt.qtbot import QtBot

from decodescope.app import build_window
from decodescope.app.panels.settings.settings_dialog import SettingsDialog
from decodescope.app.window.main_window import MainWindow
from decodescope.resources.language import current_language
from tests.ui.fake_engine import ScriptedEngine
from tests.ui.windows import WAIT_MS, find, run

pytestmark = pytest.mark.usefixtures("restore_english")

SIGNAL = QMetaMethod.MethodType.Signal


def switch(qtbot: QtBot, window: MainWindow, choice: str) -> None:
    """Change the language as the menu does and wait for the rebuilt window."""
    with qtbot.waitSignal(window.parts.services.language_switch.rebuildRequested, timeout=WAIT_MS):
        window.parts.services.language_switch.choose(choice)


def listeners(window: MainWindow) -> dict[str, int]:
    """Return the number of receivers of each signal of the persistent services."""
    lasting = window.parts.services
    found = {}
    for part in (
        window,
        lasting.session,
        lasting.history,
        lasting.settings_saver,
        lasting.run_navigation,
        lasting.language_switch,
    ):
        methods = (part.metaObject().method(number) for number in range(part.metaObject().methodCount()))
        for signature in [str(one.methodSignature(), "ascii") for one in methods if one.methodType() == SIGNAL]:
            found[f"{type(part).__name__}.{signature}"] = part.receivers(f"2{signature}")
    return found


def test_language_change_keeps_state(qtbot: QtBot, window: MainWindow) -> None:
    run(qtbot, window)
    session, history, parts = window.session, window.history, window.parts
    parts.settings_controller.choose(strategy="beam_search", cache="static")
    parts.settings_controller.set_values({"num_beams": 5})
    parts.setup.prompt.set_prompt("A prompt of my own, 从前")
    parts.toolbar.seed.spin.setValue(7)
    parts.centre.show_view("memory")
    parts.centre.split_button.setChecked(True)
    parts.centre.columns[1].show_view("compare")
    parts.layout.toggle_timeline()
    parts.history_panel.show()
    session.select_token(3)
    session.move_cursor(5)
    shown, model, geometry = session.run, session.model, window.geometry()
    switch(qtbot, window, "zh_CN")
    parts = window.parts
    assert current_language() == "zh_CN"
    assert (window.session, window.history, session.run, session.model) == (session, history, shown, model)
    assert (parts.chosen.strategy.name, parts.chosen.cache.name) == ("beam_search", "static")
    assert parts.setup.parameters.changed_values()["num_beams"] == 5
    assert parts.setup.prompt.editor.toPlainText() == "A prompt of my own, 从前"
    assert parts.toolbar.seed.spin.value() == 7
    assert [column.current_name for column in parts.centre.columns] == ["memory", "compare"]
    assert parts.timeline.isHidden()
    assert parts.history_panel.search_text == ""
    assert (shown.selected, shown.cursor) == (3, 5)
    assert parts.status.outcome.text()
    assert parts.status.settings_button.isVisible()
    assert window.geometry() == geometry
    assert window.parts.store.saved_language == "zh_CN"
    assert parts.run_navigation.generations.shown == shown.id
    assert run(qtbot, window).kind == "completed"


def test_comparison_and_error_survive_language_change(qtbot: QtBot, window: MainWindow) -> None:
    run(qtbot, window)
    view = window.parts.centre.columns[0].view("compare")
    window.parts.centre.show_view("compare")
    with qtbot.waitSignal(window.session.measuringChanged, check_params_cb=lambda on: not on, timeout=WAIT_MS):
        view.compare_or_stop()
    entries = [entry.result for entry in view.comparison.entries]
    window.parts.messages.show_setup_error("Cannot run yet", "No model is selected.")
    switch(qtbot, window, "zh_CN")
    again = window.parts.centre.columns[0].current_view
    assert again is not view
    assert entries
    assert [entry.result for entry in again.comparison.entries] == entries
    assert window.parts.centre.error_banner.isVisible()


def test_language_change_destroys_old_widgets(qtbot: QtBot, window: MainWindow) -> None:
    run(qtbot, window)
    switch(qtbot, window, "zh_CN")
    before, received = len(window.findChildren(QObject)), listeners(window)
    old = [weakref.ref(part) for part in vars(window.parts).values() if isinstance(part, QObject)]
    switch(qtbot, window, "en")
    gc.collect()
    lasting = [*window.parts.services, window.parts.settings]
    left = [ref() for ref in old if ref() is not None and ref() not in lasting]
    assert [part for part in left if shiboken6.isValid(part) and part is not None] == []
    assert (len(window.findChildren(QObject)), listeners(window)) == (before, received)


def test_language_change_waits_for_end_of_run(qtbot: QtBot, window: MainWindow) -> None:
    notice = window.parts.centre.notice_banner
    with qtbot.waitSignal(window.parts.services.language_switch.rebuildRequested, timeout=WAIT_MS):
        window.parts.runs.run()
        window.parts.actions.do("speak_chinese")
        assert (window.session.busy, current_language()) == (True, "en")
        assert notice.title.text() == "Language change pending"
        window.parts.actions.do("speak_english")
        assert not notice.isVisible()
        window.parts.actions.do("speak_chinese")
    assert (window.session.busy, current_language()) == (False, "zh_CN")
    assert not window.parts.centre.notice_banner.isVisible()
    assert window.session.run.outcome.kind == "completed"


def test_settings_dialog_stays_open_and_is_translated(qtbot: QtBot, window: MainWindow) -> None:
    window.parts.actions.do("open_settings")
    combo = find(window, QComboBox, "languageChoice")
    combo.setCurrentIndex(combo.findData("zh_CN"))
    with qtbot.waitSignal(window.parts.services.language_switch.rebuildRequested, timeout=WAIT_MS):
        combo.activated.emit(combo.currentIndex())
    assert current_language() == "zh_CN"
    dialog = find(window, SettingsDialog, "settingsDialog")
    assert dialog.isVisible()
    assert find(window, QComboBox, "languageChoice").currentData() == "zh_CN"
    with qtbot.waitSignal(dialog.destroyed):
        dialog.close()
    assert window.findChildren(QDialog) == []


def test_language_option_is_not_saved(qtbot: QtBot, config_dir: Path) -> None:
    window = build_window(config_dir, ScriptedEngine(), language="zh_CN")
    qtbot.addWidget(window)
    assert (current_language(), window.parts.services.language_switch.choice) == ("zh_CN", "zh_CN")
    window.close()
    assert window.parts.store.saved_language == "system"
