"""A history with disk errors or damage: reported, and the window keeps working."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from decodescope.app.features.history.store.history_store import FILE_NAME, HistoryStore
from decodescope.app.features.history.store.history_tables import HistoryTables
from decodescope.app.features.labs.view.preference.view import PreferenceView
from decodescope.app.window.main_window import MainWindow
from tests.app.history_files import run_data, run_id
from tests.ui.fake_engine import ScriptedEngine
from tests.ui.histories import history, listed_names, save_run
from tests.ui.windows import open_window, run


def changed(folder: Path, change: str) -> None:
    """Another program changes the history of that folder."""
    with closing(sqlite3.connect(folder / "history" / FILE_NAME, isolation_level=None)) as connection:
        connection.execute(change)


def notice_text(window: MainWindow) -> str:
    banner = window.parts.centre.notice_banner
    return f"{banner.title.text()}: {banner.accessibleDescription()}" if banner.isVisible() else ""


def refuse(*_: object) -> None:
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR
    raise error


def test_history_of_newer_version_shows_notice(qtbot: QtBot, config_dir: Path) -> None:
    HistoryStore(config_dir / "history").close()
    changed(config_dir, "PRAGMA user_version = 99")
    window = open_window(qtbot, config_dir)
    qtbot.waitUntil(window.parts.centre.notice_banner.isVisible)
    assert (
        "The history was written by a newer version of Decodescope"
        in window.parts.centre.notice_banner.accessibleDescription()
    )
    run(qtbot, window)
    assert "a newer version of Decodescope" in history(window).empty.text()


@pytest.mark.parametrize("change", ["runs SET strategy = x'ff00'", "runs SET id = x'ff'", "runs SET bytes = 'many'"])
def test_damage_found_while_listing_shows_notice(qtbot: QtBot, config_dir: Path, change: str) -> None:
    """The list shows the new file, including the next saved run."""
    window = open_window(qtbot, config_dir, ScriptedEngine())
    save_run(qtbot, window, "A first prompt")
    changed(config_dir, f"UPDATE {change}")
    view = history(window)
    qtbot.waitUntil(lambda: notice_text(window).startswith("History repaired: The history was damaged (the “"))
    assert f"The old file was saved as {FILE_NAME}.bad-1" in notice_text(window)
    assert listed_names(view) == []
    assert "No runs saved yet" in view.empty.text()
    save_run(qtbot, window, "A second prompt")
    assert listed_names(view) == ["A second prompt"]


def test_damage_found_by_lab_shows_notice(qtbot: QtBot, config_dir: Path) -> None:
    """The rankings come from the other file of the folder."""
    window = open_window(qtbot, config_dir, ScriptedEngine())
    file = window.parts.services.labs.preference().folder / "rankings.jsonl"
    file.parent.mkdir(parents=True)
    file.write_text('{"prompt": "", "completions": ["a", "b"], "ranks": [1, 2]}\n')
    store = window.history.store
    assert store is not None
    store.rankings.add([{"prompt": "", "completions": ["a", "a"], "ranks": [1, 2]}])
    window.parts.labs.open_preference()
    assert window.findChild(PreferenceView).collect.saved_count.text() == "Saved rankings: 1 · pairs: 1"
    qtbot.waitUntil(lambda: "a saved ranking is invalid" in notice_text(window))
    assert len(store.rankings.all(dict)) == 1
    window.parts.services.labs.stop_all()


def test_run_with_unreadable_parent_is_shown(qtbot: QtBot, config_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    window = open_window(qtbot, config_dir, ScriptedEngine())
    assert window.history.store is not None
    window.history.store.save(run_data(1))
    child = window.history.open_run(save_run(qtbot, window, "One"))
    child.request = replace(child.request, parent=run_id(1))
    monkeypatch.setattr(HistoryTables, "_fetch_all", refuse)
    assert window.session.show(child)
    assert "disk I/O error" in notice_text(window)


def test_disk_error_shows_notice(qtbot: QtBot, config_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    window = open_window(qtbot, config_dir)
    save_run(qtbot, window, "One")
    view = history(window)

    monkeypatch.setattr(HistoryTables, "_fetch_all", refuse)
    window.parts.history_panel.refresh()
    window.parts.run_navigation.back()
    view.footer.buttons["delete"].click()
    assert "disk I/O error" in window.parts.centre.notice_banner.accessibleDescription()
