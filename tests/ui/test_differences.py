"""Tools › Why do they differ?: two runs, the first difference in both texts, the elimination."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from decodescope import core
from decodescope.app.features.differences.panel import DRAFTS, NEAR_MISSES, DifferenceDialog
from decodescope.app.features.differences.session import (
    DifferenceQuery,
    DraftCheckQuery,
    EngineCheckQuery,
    NearMissQuery,
)
from decodescope.app.features.differences.view.model_check_pages import CheckPage, DraftPage
from decodescope.app.features.differences.view.run_pair_page import RunPairPage
from decodescope.app.session.local_models import LocalModels
from decodescope.app.session.queries.base import Answer, Query, Report
from decodescope.app.state.worker_messages import ErrorReport, LoadRequest, RunRequest
from decodescope.app.window.main_window import MainWindow
from decodescope.resources.language import current_language
from tests.ui.fake_engine import ScriptedEngine
from tests.ui.windows import open_window, run

WAIT_MS = 60_000


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
    assert "Two runs are needed" in dialog.runs.summary.text()
    assert not dialog.runs.first.isEnabled()
    assert not dialog.runs.copy.isEnabled()


def test_equal_runs_are_shown_without_difference(qtbot: QtBot, window: MainWindow) -> None:
    _two_runs(qtbot, window)
    dialog = _opened(qtbot, window)
    assert dialog.runs.first.count() >= 2
    assert "no difference" in dialog.runs.summary.text()
    assert [row.title.text() for row in dialog.runs.rows][:2] == ["Prompt", "Model"]
    assert dialog.runs.texts[0].toPlainText() == dialog.runs.texts[1].toPlainText() != ""
    assert dialog.runs.texts[0].marked_text == ""


def _sampled(seed: int) -> core.Result:
    settings = {"do_sample": True, "temperature": 1.5, "max_new_tokens": 12}
    return core.run(core.load("storyteller"), core.Request("Once upon a time", settings, seed=seed))


def test_first_difference_is_marked_in_both_texts_and_copied(qtbot: QtBot) -> None:
    page = RunPairPage()
    qtbot.addWidget(page)
    found = core.explain_difference(_sampled(1), _sampled(2))
    page.set_theme(page.current_theme)
    page.show_result(found, None)
    assert found.first is not None
    assert [text.marked_text for text in page.texts] == [found.first.a, found.first.b]
    causes = [row for row in page.rows if row.verdict.text() == "cause"]
    assert [row.title.text() for row in causes] == ["Random numbers"]
    page.copy.click()
    assert "Random numbers: cause" in QGuiApplication.clipboard().text()
    assert not page.try_out.isVisibleTo(page)


def test_mark_after_emoji_counts_in_letters_of_qt(qtbot: QtBot) -> None:
    page = RunPairPage()
    qtbot.addWidget(page)
    page.set_theme(page.current_theme)
    page.texts[0].show_text("🦊 runs home", core.FirstDifference(1, 1, False, 7, "home", "away"), "home")
    assert page.texts[0].marked_text == "home"


def test_swap_exchanges_the_runs(qtbot: QtBot, window: MainWindow) -> None:
    _two_runs(qtbot, window)
    dialog = _opened(qtbot, window)
    before = dialog.runs.first.currentIndex(), dialog.runs.second.currentIndex()
    with qtbot.waitSignal(window.session.answered, timeout=WAIT_MS):
        dialog.runs.swap.click()
    assert (dialog.runs.second.currentIndex(), dialog.runs.first.currentIndex()) == before


def test_failed_comparison_shows_cause_and_remedy(qtbot: QtBot, window: MainWindow) -> None:
    _two_runs(qtbot, window)
    dialog = _opened(qtbot, window)
    with qtbot.waitSignal(dialog.runs.chosen):
        dialog.runs.swap.click()
    query = window.parts.differences._query
    assert isinstance(query, DifferenceQuery)
    report = ErrorReport("DecodescopeError", "The file is gone.", "Choose another run.")
    window.session.answered.emit(Answer(query, error=report))
    assert "Choose another run." in dialog.runs.summary.text()
    assert not dialog.runs.rows or not dialog.runs.rows[0].isVisibleTo(dialog.runs)


class CheckEngine(ScriptedEngine):
    """Answers the queries of the two other pages with the storyteller; a query of 99 tokens waits to be stopped."""

    def answer(self, query: Query, report: Report) -> object:
        if isinstance(query, NearMissQuery | DraftCheckQuery):
            self.checks = [*getattr(self, "checks", []), query]
            tokens = query.request.config["max_new_tokens"]
            if tokens == 99:
                query.cancel.wait(20)
                return None
            request, story = core.Request("Once upon a time", {"max_new_tokens": tokens}), core.load("storyteller")
            if isinstance(query, DraftCheckQuery):
                return core.check_draft(story, core.load("storyteller-draft"), request)
            other = core.load("storyteller", weights=query.weights) if query.weights else None
            return core.near_misses(story, request, other, cache=query.cache or None, calibration_tokens=16)
        if isinstance(query, EngineCheckQuery):
            self.checks = [*getattr(self, "checks", []), query]
            return self._test(query, report)
        return super().answer(query, report)

    @staticmethod
    def _test(query: EngineCheckQuery, report: Report) -> core.EngineCheck:
        """Two answers as expected; 99 tokens: it waits to be stopped."""
        groups = [core.RankGroup(1, 1, 9.0, 10), core.RankGroup(2, 2), core.RankGroup(21, None, 7.0, 6)]
        state = core.EngineCheck(0.05, 2, 16, evidence=[0.1, -0.2, 0.3], ranks=groups)
        report(state)
        if query.tokens == 99:
            query.cancel.wait(20)
        return state


@pytest.fixture
def engine() -> CheckEngine:
    return CheckEngine()


@pytest.fixture
def dialog(qtbot: QtBot, config_dir: Path, engine: CheckEngine) -> DifferenceDialog:
    return open_window(qtbot, config_dir, engine).parts.differences.open()


def _start(qtbot: QtBot, page: CheckPage, choice: str, tokens: int) -> None:
    page.choice.setCurrentIndex(page.choice.findData(choice))
    page.tokens.setValue(tokens)
    page.button.click()
    assert page.is_busy


def empty_text(page: CheckPage) -> str:
    """Return the sentence in place of the rows, which is to be seen in the middle of the table."""
    table = page.table
    text = table.accessibleDescription()
    shown = table.viewport().grab().toImage()
    table.set_empty_text("")
    assert shown != table.viewport().grab().toImage()
    table.set_empty_text(text)
    return text


def test_near_miss_page_reads_a_greedy_text_and_shows_its_hits(
    qtbot: QtBot, dialog: DifferenceDialog, engine: CheckEngine
) -> None:
    dialog.show_page(NEAR_MISSES)
    page = dialog.near_misses
    assert empty_text(page) == "No results yet. Press Start."
    _start(qtbot, page, "weights:int4", 24)
    assert empty_text(page) == "The results will be listed here."
    qtbot.waitUntil(lambda: not page.is_busy, timeout=WAIT_MS)
    query = engine.checks[0]
    assert (query.weights, query.cache, query.request.strategy) == ("int4", "", "greedy")
    rows = page.table.texts()
    assert any(row[-1].startswith("hit") for row in rows)
    assert "near misses" in page.summary.text()
    _start(qtbot, page, "cache:static", 8)
    qtbot.waitUntil(lambda: not page.is_busy, timeout=WAIT_MS)
    assert engine.checks[1].cache == "static"
    assert not any(row[-1].startswith("hit") for row in page.table.texts())


def test_near_miss_page_leaves_out_the_settings_of_sampling(
    qtbot: QtBot, config_dir: Path, engine: CheckEngine
) -> None:
    window = open_window(qtbot, config_dir, engine)
    window.parts.settings_controller.choose(strategy="sampling")
    assert window.parts.requests.current_request().options
    page = window.parts.differences.open().near_misses
    _start(qtbot, page, "cache:static", 8)
    qtbot.waitUntil(lambda: not page.is_busy, timeout=WAIT_MS)
    assert engine.checks[0].request.options == {}


def test_draft_page_shows_every_rule_with_its_distance(qtbot: QtBot, dialog: DifferenceDialog) -> None:
    dialog.show_page(DRAFTS)
    page = dialog.drafts
    page.show_choices([("storyteller-draft", "storyteller-draft")])
    _start(qtbot, page, "storyteller-draft", 8)
    qtbot.waitUntil(lambda: not page.is_busy, timeout=WAIT_MS)
    rows = page.table.texts()
    assert {row[2] for row in rows if row[1] == "yes"} == {"0"}
    assert len(rows) == 5
    assert "accepted by rejection sampling" in page.summary.text()


def test_draft_models_with_the_tokenizer_of_the_model_come_first(window: MainWindow) -> None:
    page, model = window.parts.differences.open().drafts, window.parts.chosen.model
    entries = {entry.name: entry for entry in model.entries}
    listed = [page.choice.itemData(place) for place in range(page.choice.count())]
    fits = [core.catalog.same_tokenizer(entries[name], entries[model.name]) for name in listed if name in entries]
    assert True in fits
    assert fits == sorted(fits, reverse=True)


def _choose_engine(dialog: DifferenceDialog) -> DraftPage:
    dialog.show_page(DRAFTS)
    page = dialog.drafts
    page.show_choices([("storyteller-draft", "Draft"), ("engine:http://127.0.0.1:9/v1", "Engine: tale")])
    assert not page.answers.isVisibleTo(page)
    page.choice.setCurrentIndex(1)
    assert page.answers.isVisibleTo(page)
    assert page.tokens.value() == 8
    page.answers.setValue(70)
    return page


def test_engine_is_tested_with_its_answers_ranks_and_evidence(
    qtbot: QtBot, dialog: DifferenceDialog, engine: CheckEngine
) -> None:
    page = _choose_engine(dialog)
    page.button.click()
    qtbot.waitUntil(lambda: not page.is_busy, timeout=WAIT_MS)
    query = engine.checks[-1]
    assert (query.engine.model, query.answers, query.tokens) == ("http://127.0.0.1:9/v1", 70, 8)
    assert query.load.model == ""
    assert page.table.texts() == [["1", "9.0", "10", ""], ["other", "7.0", "6", ""]]
    assert "No sign of a difference after 2 answers" in page.summary.text()
    assert page.plot.isVisibleTo(page)
    page.copy.click()
    assert "Rank of the token,Expected,Drawn" in QGuiApplication.clipboard().text()


def test_stopped_test_of_an_engine_keeps_its_state_also_in_a_new_window(
    qtbot: QtBot, config_dir: Path, engine: CheckEngine
) -> None:
    differences = open_window(qtbot, config_dir, engine).parts.differences
    dialog = differences.open()
    page = _choose_engine(dialog)
    page.tokens.setValue(99)
    page.button.click()
    qtbot.waitUntil(lambda: "No sign" in page.summary.text(), timeout=WAIT_MS)
    assert page.is_busy
    with qtbot.waitSignal(dialog.destroyed, timeout=WAIT_MS):
        dialog.close()
    page = differences.open().drafts
    assert page.is_busy
    assert page.tokens.value() == 99
    page.button.click()
    qtbot.waitUntil(lambda: not page.is_busy, timeout=WAIT_MS)
    assert page.summary.text().startswith("Stopped. No sign of a difference")


def test_two_models_are_loaded_to_try_a_difference_out() -> None:
    models, reports = LocalModels(), list[object]()
    request = core.Request("Once upon a time", {"max_new_tokens": 12})
    names = ("storyteller", "storyteller-draft")
    runs = [tuple(core.run(core.load(name), request).events) for name in names]
    loads = [LoadRequest(name) for name in names]
    query = DifferenceQuery(*runs, tries=True, load=loads[0], other_load=loads[1])
    found = query.run(models, reports.append)
    assert found.first is not None
    assert found.cause == "model"
    assert "Loading storyteller-draft" in reports


def test_near_misses_ignore_the_options_of_sampling(qtbot: QtBot, config_dir: Path, engine: CheckEngine) -> None:
    window = open_window(qtbot, config_dir, engine)
    window.parts.settings_controller.choose(strategy="sampling")
    window.parts.settings_controller.update_values({"dynatemp_range": 0.5})
    dialog = window.parts.differences.open()
    _start(qtbot, dialog.near_misses, "cache:static", 8)
    qtbot.waitUntil(lambda: not dialog.near_misses.is_busy, timeout=WAIT_MS)
    query = engine.checks[-1]
    assert (query.request.strategy, dict(query.request.options)) == ("greedy", {})


def test_draft_head_is_checked_by_its_name(qtbot: QtBot, dialog: DifferenceDialog, engine: CheckEngine) -> None:
    dialog.show_page(DRAFTS)
    page = dialog.drafts
    _start(qtbot, page, "head:storyteller-eagle", 8)
    qtbot.waitUntil(lambda: not page.is_busy, timeout=WAIT_MS)
    query = engine.checks[-1]
    assert (query.head, query.request.draft_names) == ("storyteller-eagle", ())
    found = query.run(LocalModels(), lambda _progress: None)
    page.show_result(found)
    assert f"The head reads layer {len(found.layers) - 1}." in page.summary.text()


def test_near_misses_of_another_model_are_read_by_it() -> None:
    request = RunRequest("Once upon a time", {"max_new_tokens": 12}, load=LoadRequest("storyteller"))
    query = NearMissQuery(request, model="storyteller-draft", load=request.load)
    found = query.run(LocalModels(), lambda _progress: None)
    assert len(found) == 12
    assert found.hits
    assert all(row.other_text for row in found.hits)


def test_stopped_check_says_so_and_can_be_started_again(qtbot: QtBot, dialog: DifferenceDialog) -> None:
    page = dialog.near_misses
    _start(qtbot, page, "cache:static", 99)
    page.button.click()
    qtbot.waitUntil(lambda: not page.is_busy, timeout=WAIT_MS)
    assert page.summary.text() == "Stopped."
    assert empty_text(page) == "No results yet. Press Start."


def test_empty_result_is_told_in_the_table(dialog: DifferenceDialog) -> None:
    dialog.show_page(NEAR_MISSES)
    found = core.NearMisses([])
    found.spread = 0.0
    dialog.near_misses.show_result(found)
    assert empty_text(dialog.near_misses) == "No near misses."


def test_window_is_open_on_the_same_page_after_a_change_of_the_language(qtbot: QtBot, window: MainWindow) -> None:
    window.parts.differences.open().show_page(NEAR_MISSES)
    switch = window.parts.services.language_switch
    for code in ("zh_CN", "en"):
        switch.choose(code)
        qtbot.waitUntil(lambda code=code: current_language() == code, timeout=WAIT_MS)
        assert window.parts.differences.page == NEAR_MISSES


def test_shown_page_keeps_the_size_of_a_small_window(qtbot: QtBot, dialog: DifferenceDialog) -> None:
    """Long sentences that were set while their page was hidden make the window no higher."""
    page = dialog.drafts
    page.show_message("A sentence that is longer than a narrow column. " * 6)
    dialog.resize(860, 560)
    dialog.show_page(DRAFTS)
    QApplication.processEvents()
    assert (dialog.width(), dialog.height()) == (860, 560)
