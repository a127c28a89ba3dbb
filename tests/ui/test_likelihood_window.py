"""Tools › How likely is that? and Which settings wrote this?: two pages, results so far, Stop, errors."""

from __future__ import annotations

import threading

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QTreeWidgetItem
from pytestqt.qtbot import QtBot

from decodescope import core
from decodescope.app.features.likelihood.panel import PATTERN, POSTERIOR
from decodescope.app.features.likelihood.session import PatternQuery, PosteriorQuery
from decodescope.app.session.queries.base import Query, Report
from decodescope.app.window.main_window import MainWindow
from decodescope.core.errors import ParameterError
from tests.core import tiny
from tests.core.test_pattern_probability import _model, _request
from tests.ui.fake_engine import ScriptedEngine
from tests.ui.windows import run

WAIT_MS = 30_000


class LikelihoodEngine(ScriptedEngine):
    """Answers both queries with a tiny model."""

    def __init__(self) -> None:
        super().__init__()
        self.queries: list[Query] = []
        self.waits = False
        self.has_reported = threading.Event()

    def answer(self, query: Query, report: Report) -> object:
        self.queries.append(query)
        if isinstance(query, PatternQuery):
            if query.patterns[0].text == "fails":
                raise ParameterError("The pattern cannot be used.", "Correct it.")
            report(core.pattern_probability(_model(), _request(), query.patterns, max_prefixes=3))
            self.has_reported.set()
            if self.waits:
                assert query.cancel.wait(WAIT_MS / 1000)
                return core.pattern_probability(_model(), _request(), query.patterns, max_prefixes=3)
            return core.pattern_probability(_model(), _request(), query.patterns)
        if isinstance(query, PosteriorQuery):
            return core.infer_settings(tiny.shared("llama"), tiny.prompt(20, 3), given=tiny.prompt())
        return super().answer(query, report)


@pytest.fixture
def engine() -> LikelihoodEngine:
    return LikelihoodEngine()


def test_bounds_and_beginnings_are_shown_when_the_search_ends(
    qtbot: QtBot, window: MainWindow, engine: LikelihoodEngine
) -> None:
    page = window.parts.likelihood.open().pattern
    assert not page.button.isEnabled()
    page.pattern.setPlainText("ab\nb")
    page.kind.setCurrentIndex(1)
    assert [one.text for one in page.patterns] == ["ab", "b"]
    qtbot.mouseClick(page.button, Qt.MouseButton.LeftButton)
    assert page.button.text() == "Stop"
    qtbot.waitUntil(lambda: page.button.text() == "Compute", timeout=WAIT_MS)
    expected = core.pattern_probability(_model(), _request(), ["ab", "b"])
    assert page.headline.text() == core.likelihood.bounds_text(expected.any_bounds)
    assert len(page.sentences.text().splitlines()) == 4
    top = page.tree.topLevelItem(0)
    assert isinstance(top, QTreeWidgetItem)
    assert top.childCount() > 0
    assert top.text(0)[0] == max(expected, key=lambda row: row.probability).text[0]


def test_copy_takes_the_sentences_and_the_table_of_the_shown_page(qtbot: QtBot, window: MainWindow) -> None:
    dialog = window.parts.likelihood.open()
    assert not dialog.copy.isEnabled()
    dialog.pattern.pattern.setPlainText("b")
    dialog.pattern.button.click()
    qtbot.waitUntil(lambda: dialog.pattern.button.text() == "Compute", timeout=WAIT_MS)
    assert dialog.copy.isEnabled()
    dialog.copy.click()
    text = QGuiApplication.clipboard().text()
    assert text.startswith(dialog.pattern.sentences.text())
    assert ",".join(core.likelihood.AnswerPrefix._fields[:2]) in text
    dialog.show_page(POSTERIOR)
    assert not dialog.copy.isEnabled()
    dialog.show_page(PATTERN)
    dialog.pattern.pattern.setPlainText("fails")
    dialog.pattern.button.click()
    qtbot.waitUntil(lambda: dialog.pattern.problem.isVisible(), timeout=WAIT_MS)
    assert not dialog.copy.isEnabled()


def test_bounds_narrow_while_it_runs_and_stop_keeps_them(
    qtbot: QtBot, window: MainWindow, engine: LikelihoodEngine
) -> None:
    engine.waits = True
    page = window.parts.likelihood.open().pattern
    page.pattern.setPlainText("b")
    page.place.setCurrentIndex(1)
    page.button.click()
    qtbot.waitUntil(lambda: page.headline.text() not in ("", "0.0 % to 100.0 %"), timeout=WAIT_MS)
    page.button.click()
    qtbot.waitUntil(lambda: page.button.text() == "Compute", timeout=WAIT_MS)
    assert "undecided" in page.sentences.text()


def test_failed_search_shows_cause_and_remedy(qtbot: QtBot, window: MainWindow) -> None:
    page = window.parts.likelihood.open().pattern
    page.pattern.setPlainText("fails")
    page.button.click()
    qtbot.waitUntil(lambda: page.problem.isVisible(), timeout=WAIT_MS)
    assert page.problem.text() == "The pattern cannot be used. Correct it."
    assert page.tree.isHidden()
    assert page.button.text() == "Compute"


def test_shown_run_is_judged_with_its_exact_tokens_until_it_is_edited(
    qtbot: QtBot, window: MainWindow, engine: LikelihoodEngine
) -> None:
    run(qtbot, window)
    page = window.parts.likelihood.open_posterior().posterior
    shown = window.session.run
    assert shown is not None
    assert page.text.toPlainText() == shown.text
    page.button.click()
    qtbot.waitUntil(lambda: page.found is not None, timeout=WAIT_MS)
    (query,) = (one for one in engine.queries if isinstance(one, PosteriorQuery))
    assert query.ids == tuple(token.id for token in shown.tokens)
    assert query.prompt_ids == tuple(token.id for token in shown.prompt)
    page.text.setPlainText("Another text")
    page.button.click()
    qtbot.waitUntil(lambda: page.button.text() == "Find the settings", timeout=WAIT_MS)
    last = [one for one in engine.queries if isinstance(one, PosteriorQuery)][-1]
    assert (last.text, last.ids, last.prompt_ids) == ("Another text", (), ())


def test_map_follows_its_settings_and_the_arrow_keys(qtbot: QtBot, window: MainWindow) -> None:
    page = window.parts.likelihood.open_posterior().posterior
    page.text.setPlainText("A text")
    page.button.click()
    qtbot.waitUntil(lambda: page.found is not None, timeout=WAIT_MS)
    assert page.cell.text().startswith("Likeliest cell: temperature")
    page.second.setCurrentIndex(0)  # equal to the first: another one is chosen
    assert page.first.currentData() != page.second.currentData()
    page.map.setFocus()
    qtbot.keyClick(page.map, Qt.Key.Key_Left)
    before = page.cell.text()
    qtbot.keyClick(page.map, Qt.Key.Key_Left)
    assert page.cell.text() != before
    assert page.map.accessibleDescription() == page.cell.text()


def test_marked_tokens_are_those_that_forbid_the_setting(qtbot: QtBot, window: MainWindow) -> None:
    page = window.parts.likelihood.open_posterior().posterior
    page.text.setPlainText("A text")
    page.button.click()
    qtbot.waitUntil(lambda: page.found is not None, timeout=WAIT_MS)
    assert page.found is not None
    page.marks.setCurrentIndex(1)
    expected = page.found.forbidding("top_k", 10)
    assert expected
    assert len(page.tokens.extraSelections()) == len(expected)
    page.tokens.moveCursor(page.tokens.textCursor().MoveOperation.End)
    assert f"number {page.found[-1].rank} " in page.token.text()


def test_closed_window_keeps_entries_and_results(qtbot: QtBot, window: MainWindow) -> None:
    dialog = window.parts.likelihood.open()
    dialog.pattern.pattern.setPlainText("b")
    dialog.pattern.button.click()
    qtbot.waitUntil(lambda: dialog.pattern.button.text() == "Compute", timeout=WAIT_MS)
    bounds = dialog.pattern.headline.text()
    with qtbot.waitSignal(dialog.destroyed):
        dialog.close()
    again = window.parts.likelihood.open()
    assert again.pattern.pattern.toPlainText() == "b"
    assert again.pattern.headline.text() == bounds
