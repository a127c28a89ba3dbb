"""The leak check of every test: leftovers of a test are reported, late ones of an older window are not."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QObject, QThread
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from tests import leaks
from tests.leaks import LeakWatch


def test_running_thread_is_reported_unless_owned_by_older_window(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leaks, "GRACE_SECONDS", 0.0)
    older = QWidget()
    qtbot.addWidget(older)
    with LeakWatch() as watch:
        newer = QWidget()
        qtbot.addWidget(newer)
        threads = {name: QThread(QObject(owner)) for name, owner in (("older", older), ("newer", newer))}
        for name, thread in threads.items():
            thread.setObjectName(name)
            thread.start()
        reported = [line for line in watch.leaks() if "QThread" in line]
        for thread in threads.values():
            thread.quit()
            thread.wait()
    assert len(reported) == 1
    assert reported[0].startswith("- QThread newer, started at ")
