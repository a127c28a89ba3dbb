"""The history through the window: runs are kept, found, opened, named, pinned, deleted; nothing else is kept."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from PySide6.QtCore import QEvent, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QMenu, QMessageBox
from pytestqt.qtbot import QtBot

from decodescope.app.features.history.panel import history_wording
from decodescope.app.features.history.store.history_store import HistoryStore
from decodescope.app.window.main_window import MainWindow
from tests.app.history_files import run_data
from tests.ui.fake_engine import ScriptedEngine
from tests.ui.histories import click, history, listed_names, name_editor, save_run, search, shown_run
from tests.ui.windows import WAIT_MS, find, finish, open_window, run


@pytest.fixture(scope="module")
def shared(shared: MainWindow) -> MainWindow:
    """With the panel in sight."""
    shared.parts.history_panel.show()
    return shared


@pytest.fixture
def window(shared: MainWindow) -> MainWindow:
    """The shared window with an empty history, no messages and no search text."""
    panel = shared.parts.history_panel
    assert panel.view is not None
    panel.view.search.clear()
    panel.close()
    shared.history.delete_all()
    shared.parts.messages.dismiss()
    return shared


def test_run_is_saved_and_available_at_next_start(qtbot: QtBot, config_dir: Path) -> None:
    window = open_window(qtbot, config_dir)
    save_run(qtbot, window, "A first prompt")
    first = shown_run(window)
    window.close()
    again = open_window(qtbot, config_dir)
    view = history(again)
    assert listed_names(view) == ["A first prompt"]
    assert view.search.placeholderText().startswith("Search 1 run (")
    click(view, 0)
    opened = shown_run(again)
    assert (opened.id, opened.text, opened.events) == (first.id, first.text, first.events)
    assert opened is not first
    assert opened.request == first.request
    assert again.parts.status.outcome.text() == first.outcome.message if first.outcome else ""


def test_measurement_runs_are_not_saved(qtbot: QtBot, window: MainWindow) -> None:
    save_run(qtbot, window, "Kept")
    with qtbot.waitSignal(window.session.measuringChanged, timeout=WAIT_MS, check_params_cb=lambda on: not on):
        window.session.measure([shown_run(window).request])
    assert listed_names(history(window)) == ["Kept"]
    assert not list(window.parts.store.data_folder.rglob("under-way/*/*.decodescope"))


def test_search_finds_run_and_opens_it(qtbot: QtBot, window: MainWindow) -> None:
    for prompt in ("Dragons breathe fire", "A quiet 猫 sleeps", "Something else"):
        save_run(qtbot, window, prompt)
    view = history(window)
    assert listed_names(view) == ["Something else", "A quiet 猫 sleeps", "Dragons breathe fire"]
    search(qtbot, view, "FIRE drag")
    assert listed_names(view) == ["Dragons breathe fire"]
    assert view.footer.summary.text() == "1 found"
    assert view.search.placeholderText().startswith("Search 3 runs (")
    click(view, 0)
    assert shown_run(window).request.prompt == "Dragons breathe fire"
    search(qtbot, view, "猫")
    assert listed_names(view) == ["A quiet 猫 sleeps"]
    search(qtbot, view, "nowhere")
    assert listed_names(view) == []
    assert "No saved run contains" in view.empty.text()
    assert view.empty.isVisible()


def test_pinned_run_is_listed_first(qtbot: QtBot, window: MainWindow) -> None:
    for prompt in ("One", "Two"):
        save_run(qtbot, window, prompt)
    view = history(window)
    assert not view.footer.buttons["pin"].isEnabled(), "no row is picked yet"
    click(view, 1)
    view.footer.buttons["pin"].click()
    assert listed_names(view) == ["One", "Two"]
    assert view.list.record is not None
    assert view.list.record.opening == "One", "the same run is still picked"
    assert view.footer.buttons["pin"].toolTip() == "Unpin"
    view.footer.buttons["pin"].click()
    assert listed_names(view) == ["Two", "One"]


def test_run_is_renamed_in_list(qtbot: QtBot, window: MainWindow) -> None:
    save_run(qtbot, window, "One")
    view = history(window)
    click(view, 0)
    QTest.keyClick(view.list, Qt.Key.Key_F2)
    editor = name_editor(view)
    QTest.keyClicks(editor, "My dragons")
    with qtbot.waitSignal(view.renameRequested, timeout=WAIT_MS):
        QTest.keyClick(editor, Qt.Key.Key_Return)
    assert listed_names(view) == ["My dragons"]
    search(qtbot, view, "dragons")
    assert listed_names(view) == ["My dragons"]


def test_deleting_can_be_undone(qtbot: QtBot, window: MainWindow) -> None:
    for prompt in ("One", "Two", "Three"):
        save_run(qtbot, window, prompt)
    view = history(window)
    click(view, 1)
    gone = view.list.record
    assert gone is not None
    QTest.keyClick(view.list, Qt.Key.Key_Delete)
    assert listed_names(view) == ["Three", "One"]
    assert view.list.record is not None
    assert view.list.record.opening == "One", "the next one is picked"
    assert view.footer.deleted.text() == "Deleted “Two”"
    store = window.history.store
    assert store is not None
    assert store.trace_path(gone.id).exists()
    view.footer.undo.click()
    assert listed_names(view) == ["Three", "Two", "One"]
    assert not view.footer.undo.isVisible()
    view.footer.buttons["delete"].click()
    view.header.close_button.click()
    assert not store.trace_path(gone.id).exists(), "once the panel is closed it is gone for good"


def test_delete_all_requires_confirmation(qtbot: QtBot, window: MainWindow) -> None:
    save_run(qtbot, window, "A secret-4711 prompt")
    view = history(window)
    answer(window, "Cancel")
    assert listed_names(view) == ["A secret-4711 prompt"]
    answer(window, "Delete all")
    assert listed_names(view) == []
    assert "No runs saved yet" in view.empty.text()
    assert shown_run(window).text, "what is shown stays"
    history_files = (window.parts.store.data_folder / "history").rglob(
        "*"
    )  # the settings keep the prompt in the editor
    files = [path for path in history_files if path.is_file()]
    assert files
    assert not any(b"secret-4711" in path.read_bytes() for path in files)


def answer(window: MainWindow, words: str) -> None:
    window.parts.history_edits.confirm_delete_all()
    box = find(window, QMessageBox, "forgetAllQuestion")
    assert "1 run" in box.text()
    next(button for button in box.buttons() if button.text() == words).click()
    box.deleteLater()
    QApplication.sendPostedEvents(None, 0)


def test_the_settings_of_a_run_are_restored(qtbot: QtBot, window: MainWindow) -> None:
    controller, parts = window.parts.settings_controller, window.parts
    controller.choose(strategy="sampling", cache="sliding")
    controller.set_values({"temperature": 1.25, "top_k": 7})
    parts.toolbar.seed.spin.setValue(77)
    save_run(qtbot, window, "Restore")
    was = shown_run(window).request
    controller.choose(strategy="greedy", cache="dynamic")
    parts.toolbar.seed.spin.setValue(5)
    parts.setup.prompt.set_prompt("Something else")
    view = history(window)
    click(view, 0)
    view.footer.buttons["restore"].click()
    assert parts.requests.current_request() == was
    assert not view.isVisible(), "prompt and parameters are in sight again"
    assert parts.changes.changes == []


def test_run_of_missing_model_shows_notice(qtbot: QtBot, window: MainWindow) -> None:
    save_run(qtbot, window, "One")
    store = window.history.store
    assert store is not None
    gone = run_data(1, "By a model that is gone")
    gone.request.update(load={"model": "nowhere"}, strategy="sampling")
    store.save(gone)
    view = history(window)
    window.parts.history_panel.refresh()
    click(view, listed_names(view).index("By a model that is gone"))
    assert "cannot be" in window.parts.centre.error_banner.title.text(), "it has no recording"
    view.footer.buttons["restore"].click()
    assert "nowhere" in window.parts.centre.notice_banner.accessibleDescription()
    assert window.parts.setup.prompt.editor.toPlainText() == "By a model that is gone"


def test_run_again_uses_current_model_permissions(qtbot: QtBot, config_dir: Path) -> None:
    """The recording grants nothing, the settings do."""
    engine = ScriptedEngine()
    window = open_window(qtbot, config_dir, engine)
    window.parts.toolbar.seed.lock_button.setChecked(True)
    stored = save_run(qtbot, window, "One")
    window.parts.settings.models.allow_pickle.append(shown_run(window).request.model)
    assert window.history.show(stored)
    assert not shown_run(window).request.load.allow_pickle
    finish(qtbot, window, window.parts.runs.run_again)
    assert engine.runs[-1].load.allow_pickle


def test_compare_button_requests_comparison(qtbot: QtBot, config_dir: Path) -> None:
    window = open_window(qtbot, config_dir)
    stored = save_run(qtbot, window, "One")
    view = history(window)
    click(view, 0)
    with qtbot.waitSignal(window.parts.history_panel.compareRequested, timeout=WAIT_MS) as wanted:
        view.footer.buttons["compare"].click()
    assert wanted.args[0].id == stored
    assert wanted.args[0].text == shown_run(window).text


def test_back_and_forward_show_runs_in_order(qtbot: QtBot, config_dir: Path) -> None:
    window = open_window(qtbot, config_dir)
    parts, ids = window.parts, []
    assert not parts.run_navigation.can_go_back
    for prompt in ("One", "Two", "Three"):
        ids.append(save_run(qtbot, window, prompt))
    window.setFocus()
    assert (parts.run_navigation.can_go_back, parts.run_navigation.can_go_forward) == (True, False)
    QTest.keyClick(window, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    assert shown_run(window).id == ids[1]
    QTest.keyClick(window, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    assert shown_run(window).id == ids[0]
    assert (parts.run_navigation.can_go_back, parts.run_navigation.can_go_forward) == (False, True)
    QTest.keyClick(window, Qt.Key.Key_Y, Qt.KeyboardModifier.ControlModifier)
    assert shown_run(window).id == ids[1]
    both = Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier
    QTest.keyClick(window, Qt.Key.Key_Z, both)
    assert shown_run(window).id == ids[2]
    parts.run_navigation.back()
    ids.append(save_run(qtbot, window, "Four"))
    assert parts.run_navigation.generations.ids == ids, "nothing is lost by going back and running again"
    parts.run_navigation.back()
    assert shown_run(window).request.prompt == "Three"


def test_menu_enables_available_run_navigation(qtbot: QtBot, config_dir: Path) -> None:
    window = open_window(qtbot, config_dir)
    bar = window.parts.menu_bar
    steps = {name: bar.commands[name] for name in ("previous_run", "next_run")}
    window.parts.timeline.setFocus()
    bar.refresh()
    assert not any(action.isEnabled() for action in steps.values())
    for prompt in ("One", "Two"):
        save_run(qtbot, window, prompt)
    window.parts.timeline.setFocus()
    bar.refresh()
    assert steps["previous_run"].isEnabled()
    steps["previous_run"].trigger()
    assert shown_run(window).request.prompt == "One"
    bar.refresh()
    assert steps["next_run"].isEnabled()
    assert not steps["previous_run"].isEnabled()


def test_undo_in_text_field_takes_precedence(qtbot: QtBot, config_dir: Path) -> None:
    window = open_window(qtbot, config_dir)
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow)
    for prompt in ("One", "Two"):
        save_run(qtbot, window, prompt)
    editor = window.parts.setup.prompt.editor
    editor.setFocus()
    QTest.keyClicks(editor, "more")
    QTest.keyClick(editor, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    assert shown_run(window).request.prompt == "Two"
    assert "more" not in editor.toPlainText()
    while editor.document().isUndoAvailable():
        QTest.keyClick(editor, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    assert shown_run(window).request.prompt == "Two"
    QTest.keyClick(editor, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    assert shown_run(window).request.prompt == "One", "where there is nothing left to undo, it is the window's"


def test_escape_closes_name_editor_then_history(qtbot: QtBot, window: MainWindow) -> None:
    save_run(qtbot, window, "One")
    view = history(window)
    click(view, 0)
    QTest.keyClick(view.list, Qt.Key.Key_F2)
    with qtbot.waitSignal(view.list.itemDelegate().closeEditor, timeout=WAIT_MS):
        QTest.keyClick(name_editor(view), Qt.Key.Key_Escape)
    assert view.isVisible()
    QTest.keyClick(view.search, Qt.Key.Key_Escape)
    assert not view.isVisible()


def test_back_opens_saved_runs_of_earlier_sessions(qtbot: QtBot, config_dir: Path) -> None:
    window = open_window(qtbot, config_dir)
    for prompt in ("One", "Two"):
        save_run(qtbot, window, prompt)
    window.close()
    again = open_window(qtbot, config_dir)
    qtbot.waitUntil(lambda: again.parts.run_navigation.can_go_back)
    again.parts.run_navigation.back()
    assert shown_run(again).request.prompt == "Two"
    again.parts.run_navigation.back()
    assert shown_run(again).request.prompt == "One"
    assert not again.parts.run_navigation.can_go_back
    again.parts.run_navigation.forward()
    assert shown_run(again).request.prompt == "Two"


def test_saved_runs_cannot_be_opened_during_run(qtbot: QtBot, config_dir: Path) -> None:
    engine = ScriptedEngine()
    window = open_window(qtbot, config_dir, engine)
    for prompt in ("One", "Two"):
        save_run(qtbot, window, prompt)
    engine.delay = 0.05
    window.parts.runs.run()
    assert not window.parts.run_navigation.can_go_back
    window.parts.run_navigation.back()
    view = history(window)
    click(view, 1)
    assert shown_run(window).outcome is None
    qtbot.waitUntil(lambda: bool(shown_run(window).tokens))  # a run without text is not saved
    with qtbot.waitSignal(window.history.runSaved, timeout=WAIT_MS):
        window.session.stop()
    assert window.parts.run_navigation.can_go_back
    assert len(listed_names(view)) == 3
    record = view.list.runs.record(0)
    assert record is not None
    assert record.outcome == "stopped"


def test_disabled_history_saves_nothing_but_back_works(qtbot: QtBot, config_dir: Path) -> None:
    (config_dir / "settings.json").write_text(json.dumps({"history": {"version": 1, "keep": False}}))
    window = open_window(qtbot, config_dir)
    prompts = []
    for prompt in ("One", "Two"):
        window.parts.setup.prompt.set_prompt(prompt)
        run(qtbot, window)
        prompts.append(shown_run(window).request.prompt)
    window.parts.run_navigation.back()
    assert shown_run(window).request.prompt == "One"
    view = history(window)
    assert "History is off" in view.empty.text()
    assert not list((config_dir / "history").glob("*/*"))
    find(window, QMenu, "historyActions").actions()[0].trigger()
    assert json.loads((config_dir / "settings.json").read_text())["history"]["keep"] is True
    save_run(qtbot, window, "Three")
    assert listed_names(view) == ["Three"]


def test_trim_enforces_storage_budget(qtbot: QtBot, config_dir: Path) -> None:
    window = open_window(qtbot, config_dir)
    for prompt in ("One", "Two", "Three"):
        save_run(qtbot, window, prompt)
    store = window.history.store
    assert store is not None
    size = store.records(store.ids())[0].bytes
    window.parts.settings.history.budget_mib = 0
    window.history.trim()
    assert [record.opening for record in store.records(store.ids())] == ["Three"]
    assert len(list(store.traces.iterdir())) == 1
    assert size > 0


def test_activated_window_lists_runs_of_other_programs(window: MainWindow) -> None:
    view = history(window)
    assert listed_names(view) == []
    other = HistoryStore(window.parts.store.data_folder / "history")
    other.save(run_data(1, "By another program"))
    other.close()
    QApplication.sendEvent(window, QEvent(QEvent.Type.WindowActivate))
    assert listed_names(view) == ["By another program"]


def test_scroll_position_is_kept_when_run_is_saved(qtbot: QtBot, config_dir: Path) -> None:
    store = HistoryStore(config_dir / "history")
    for number in range(80):
        store.save(run_data(number, f"Prompt {number}"))
    store.close()
    window = open_window(qtbot, config_dir)
    view = history(window)
    view.list.verticalScrollBar().setValue(500)
    save_run(qtbot, window, "The new one")
    assert view.list.verticalScrollBar().value() == 500
    assert listed_names(view)[0] == "The new one"


def test_restore_with_unknown_strategy_keeps_settings(window: MainWindow) -> None:
    store = window.history.store
    assert store is not None
    later, model = run_data(1, "From tomorrow"), window.parts.chosen.model.name
    later.request.update(load={"model": model}, strategy="from_tomorrow", config={"temperature": 0.3})
    store.save(later)
    before = window.parts.requests.current_request().settings
    view = history(window)
    view.list.setCurrentIndex(view.list.runs.index(0))
    view.footer.buttons["restore"].click()
    assert "from_tomorrow" in window.parts.centre.notice_banner.accessibleDescription()
    assert window.parts.requests.current_request().settings == before


def test_two_windows_share_one_history(qtbot: QtBot, config_dir: Path) -> None:
    window = open_window(qtbot, config_dir)
    other = open_window(qtbot, config_dir)
    save_run(qtbot, window, "Mine")
    save_run(qtbot, other, "Yours")
    save_run(qtbot, window, "Mine again")
    assert listed_names(history(window)) == listed_names(history(other)) == ["Mine again", "Yours", "Mine"]
    assert window.parts.run_navigation.generations.ids != other.parts.run_navigation.generations.ids
    assert not window.parts.centre.notice_banner.isVisible()


def test_long_list_loads_only_visible_runs(qtbot: QtBot, config_dir: Path) -> None:
    store = HistoryStore(config_dir / "history")
    for number in range(300):
        store.save(run_data(number, f"Prompt {number}"))
    store.close()
    window = open_window(qtbot, config_dir)
    view = history(window)
    read: list[int] = []
    stored = window.history.store
    assert stored is not None

    def load(runs: Sequence[str]) -> list[object]:
        read.append(len(runs))
        return list(stored.records(runs))

    view.show_runs(stored.ids(), load, "", "")  # type: ignore[arg-type]
    QApplication.processEvents()
    assert view.list.runs.rowCount() == 300
    assert sum(read) <= 128
    view.list.scrollToBottom()
    QApplication.processEvents()
    assert view.list.runs.index(299).data() == "Prompt 0"


def test_row_texts_of_history() -> None:
    now = time.mktime((2025, 3, 12, 14, 32, 0, 0, 0, -1))
    moments = {0: "14:32", 15 * 3600: "yesterday", 3 * 86400: "9 Mar", 100 * 86400: "2 Dec 2024", 1e300: "1 Jan 1970"}
    assert {ago: history_wording.time_text(now - ago, now) for ago in moments} == moments
    assert history_wording.summary_text(run_data(1).record) == "Sampling · 0 tokens · storyteller"
    reported = run_data(1, tokens=50, speed=118.4, outcome="stopped").record
    assert history_wording.summary_text(reported) == "stopped · Sampling · 50 tokens · 118 tok/s · storyteller"
    assert history_wording.strategy_title("from_tomorrow") == "From tomorrow"


def test_pending_open_after_close_does_not_reopen_store(qtbot: QtBot, config_dir: Path) -> None:
    window = open_window(qtbot, config_dir, ScriptedEngine())
    window.history.open_later()
    window.close()
    QApplication.processEvents()
    assert window.history.store is None
    assert window.history.store_if_open is None
