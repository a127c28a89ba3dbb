"""Tools › Why do they differ?: two runs, the first difference in both texts, the elimination."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtGui import QGuiApplication
from pytestqt.qtbot import QtBot

from decodescope import core
from decodescope.app.features.differences.panel import DifferenceDialog
from decodescope.app.features.differences.session import DifferenceQuery
from decodescope.app.session.queries.base import Answer
from decodescope.app.state.worker_messages import ErrorReport
from decodescope.app.window.main_window import MainWindow
from tests.ui.windows import open_window, run

WAIT_MS = 20_000


@pytest.fixture
def window(qtbot: QtBot, config_dir: Path) -> MainWindow:
    return open_window(qtbot, config_dir)


def _opened(qtbot: QtBot, window: MainWindow) -> DifferenceDialog:
    with qtbot.waitSignal(window.session.answered, timeout=WAIT_MS):
        dialog = window.parts.differences.open()
    return dialog


def _two_runs(qtbot: QtBot, window: MainWindow) -> None:
    for _ in range(2):
        run(qtbot, window)
        qtbot.waitUntil(lambda: window.parts.services.history.store_if_open is not None, timeout=WAIT_MS)


def test_window_without_two_runs_says_so(window: MainWindow) -> None:
    dialog = window.parts.differences.open()
    assert "Two runs are needed" in dialog.summary.text()
    assert not dialog.first.isEnabled()
    assert not dialog.copy.isEnabled()


def test_equal_runs_are_shown_without_difference(qtbot: QtBot, window: MainWindow) -> None:
    _two_runs(qtbot, window)
    dialog = _opened(qtbot, window)
    assert dialog.first.count() >= 2
    assert "no difference" in dialog.summary.text()
    assert [row.title.text() for row in dialog.rows][:2] == ["Prompt", "Model"]
    assert dialog.texts[0].toPlainText() == dialog.texts[1].toPlainText() != ""
    assert dialog.texts[0].marked_text == ""


def _sampled(seed: int) -> core.Result:
    settings = {"do_sample": True, "temperature": 1.5, "max_new_tokens": 12}
    return core.run(core.load("storyteller"), core.Request("Once upon a time", settings, seed=seed))


def test_first_difference_is_marked_in_both_texts_and_copied(qtbot: QtBot) -> None:
    dialog = DifferenceDialog()
    qtbot.addWidget(dialog)
    found = core.explain_difference(_sampled(1), _sampled(2))
    dialog.set_theme(dialog.current_theme)
    dialog.show_result(found, None)
    assert found.first is not None
    assert [text.marked_text for text in dialog.texts] == [found.first.a, found.first.b]
    causes = [row for row in dialog.rows if row.verdict.text() == "cause"]
    assert [row.title.text() for row in causes] == ["Random numbers"]
    dialog.copy.click()
    assert "Random numbers: cause" in QGuiApplication.clipboard().text()
    assert not dialog.try_out.isVisibleTo(dialog)


def test_mark_after_emoji_counts_in_letters_of_qt(qtbot: QtBot) -> None:
    dialog = DifferenceDialog()
    qtbot.addWidget(dialog)
    dialog.set_theme(dialog.current_theme)
    dialog.texts[0].show_text("🦊 runs home", core.FirstDifference(1, 1, False, 7, "home", "away"), "home")
    assert dialog.texts[0].marked_text == "home"


def test_swap_exchanges_the_runs(qtbot: QtBot, window: MainWindow) -> None:
    _two_runs(qtbot, window)
    dialog = _opened(qtbot, window)
    before = dialog.first.currentIndex(), dialog.second.currentIndex()
    with qtbot.waitSignal(window.session.answered, timeout=WAIT_MS):
        dialog.swap.click()
    assert (dialog.second.currentIndex(), dialog.first.currentIndex()) == before


def test_failed_comparison_shows_cause_and_remedy(qtbot: QtBot, window: MainWindow) -> None:
    _two_runs(qtbot, window)
    dialog = _opened(qtbot, window)
    with qtbot.waitSignal(dialog.chosen):
        dialog.swap.click()
    query = window.parts.differences._query
    assert isinstance(query, DifferenceQuery)
    report = ErrorReport("DecodescopeError", "The file is gone.", "Choose another run.")
    window.session.answered.emit(Answer(query, error=report))
    assert "Choose another run." in dialog.summary.text()
    assert not dialog.rows or not dialog.rows[0].isVisibleTo(dialog)
