"""The compare view: one button, every cache or strategy, a table, charts, texts and files."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from app.state.requests import ErrorReport, LoadRequest, ModelInfo, Outcome, RunRequest
from app.state.run import Run
from app.theme.theme import theme_for
from app.views.compare.view import CompareView
from app.window.main_window import MainWindow
from core.events import Finished, Metrics, Prefilled, TokenChosen
from tests.ui.fake_engine import ScriptedEngine
from tests.ui.scripted import PROMPT, started, story
from tests.ui.windows import WAIT_MS, open_window
from tests.ui.windows import run as run_window

REASON = "storyteller was trained without a window."


def finished(request: RunRequest, tokens: list[TokenChosen], size: int = 4096) -> Run:
    run = Run(request)
    metrics = Metrics(len(PROMPT), len(tokens), 1.0, 0.02, 900.0, 50.0, cache_bytes=size, cache_peak_bytes=2 * size)
    texts = ("".join(token.text for token in tokens),)
    run.apply([started(), Prefilled(len(PROMPT), 0.02), *tokens, Finished("completed", ((),), texts, metrics)])
    run.outcome = Outcome("completed")
    return run


class Bench:
    """Does what the session does with the view's signals, one request at a time."""

    def __init__(self, view: CompareView) -> None:
        self.view, self.waiting = view, []
        view.signals.measureWanted.connect(self.measure)
        view.model_ready(ModelInfo("storyteller", refused_caches={"sliding_window": REASON}))
        view.show_run(finished(RunRequest("Once", strategy="sampling", load=LoadRequest("storyteller")), story(10)))

    def measure(self, requests: list[RunRequest]) -> None:
        self.waiting = list(requests)
        self.view.measuring_changed(True)

    def end_next(self, tokens: list[TokenChosen], size: int = 4096) -> None:
        self.view.measured(finished(self.waiting.pop(0), tokens, size))

    def fail_next(self, cause: str) -> None:
        run = Run(self.waiting.pop(0))
        run.outcome = Outcome("failed", "no", ErrorReport("no", cause))
        self.view.measured(run)

    def choose(self, *keys: str) -> None:
        for chip in self.view.choices.findChildren(QPushButton):
            key = chip.objectName().removeprefix("compare.")
            if chip.isEnabled() and chip.isChecked() != (key in keys):
                chip.click()


@pytest.fixture
def view(qtbot: QtBot) -> Iterator[CompareView]:
    view = CompareView()
    qtbot.addWidget(view)
    view.set_theme(theme_for("light"))
    view.resize(760, 640)
    with qtbot.waitExposed(view):
        view.show()
    return view


def texts(view: CompareView, row: int) -> list[str]:
    items = [view.results.item(row, column) for column in range(view.results.columnCount())]
    return [item.text() if item is not None else "" for item in items]


def test_an_empty_page_and_a_run_under_way_offer_nothing(view: CompareView) -> None:
    assert not view.button.isVisible()
    run = finished(RunRequest("", load=LoadRequest("storyteller")), story(3))
    run.outcome = None
    view.show_run(run)
    assert not view.button.isEnabled()
    run.outcome = Outcome("completed")
    view.events_arrived(run, ())
    assert view.button.isEnabled()


def test_what_cannot_serve_is_greyed_with_the_reason(view: CompareView) -> None:
    Bench(view)
    chip = view.choices.findChild(QPushButton, "compare.sliding_window")
    assert not chip.isEnabled()
    assert chip.toolTip() == REASON
    rows = [texts(view, row) for row in range(view.results.rowCount())]
    assert ["Sliding window", REASON] in [row[:2] for row in rows]


def test_one_button_fills_the_table(view: CompareView, qtbot: QtBot) -> None:
    bench = Bench(view)
    bench.choose("dynamic", "static", "sink")
    with qtbot.waitSignal(view.signals.measureWanted) as wanted:
        qtbot.mouseClick(view.button, Qt.MouseButton.LeftButton)
    assert [request.cache for request in wanted.args[0]] == ["dynamic", "static", "sink"]
    assert not view.button.isEnabled()
    assert texts(view, 0)[1] == "runs…"
    bench.end_next(story(10))
    assert "2 of 3" in view.button.text()
    bench.end_next(story(10), 8192)
    bench.end_next(story(9))
    view.measuring_changed(False)
    assert texts(view, 1)[:5] == ["Static", "8.0 KiB", "16.0 KiB", "50 tok/s", "20 ms"]
    assert texts(view, 1)[5] == "the same 10 tokens"
    assert texts(view, 2)[5] == f"differs at 10: the end, not “{story(10)[9].piece.replace(' ', '␣')}”"
    plots = {plot.accessibleName(): plot.figure.bars[0].figures for plot in view.charts.plots}
    assert plots["Peak bytes"] == ("8.0 KiB", "16.0 KiB", "8.0 KiB")
    assert plots["The same text for"] == ("all 10", "all 10", "9 tokens")
    assert view.button.isEnabled()


def test_where_the_text_first_differs(view: CompareView) -> None:
    bench = Bench(view)
    bench.choose("dynamic", "quantized-2")
    view.compare()
    bench.end_next(story(10))
    bench.end_next([*story(4), *story(7, pieces=(" never",) * 7)[4:]])
    view.measuring_changed(False)
    expected = f"differs at 5: “␣never”, not “{story(10)[4].piece.replace(' ', '␣')}”"
    assert texts(view, 1)[5] == expected


def test_a_failure_and_a_stop_leave_the_others(view: CompareView) -> None:
    bench = Bench(view)
    bench.choose("dynamic", "static", "sink")
    view.compare()
    bench.end_next(story(5))
    bench.fail_next("Static cannot serve: it is too large.")
    view.measuring_changed(False)
    assert texts(view, 0)[5] == "the reference"
    assert texts(view, 1)[1] == "Static cannot serve: it is too large."
    assert texts(view, 2)[1] == "stopped"


def test_strategies_show_their_texts_side_by_side(view: CompareView) -> None:
    bench = Bench(view)
    view.kind.button("strategies").click()
    bench.choose("sampling", "greedy")
    view.compare()
    assert [request.strategy for request in bench.waiting] == ["sampling", "greedy"]
    bench.end_next(story(10))
    bench.end_next([*story(4), *story(7, pieces=(" never",) * 7)[4:]])
    view.measuring_changed(False)
    assert len(view.texts.texts) == 2
    assert "background:" in view.texts.texts[1].text()
    assert "background:" not in view.texts.texts[0].text()
    bits, counts = (plot.figure for plot in view.charts.plots if plot.isVisible())
    assert [line.name for line in bits.lines] == ["Sampling", "Greedy"]
    assert bits.lines[0].points[:5] == bits.lines[1].points[:5], "the texts are one up to there"
    own = -sum(token.raw_log_probability for token in story(10)) / math.log(2)
    assert bits.lines[0].points[-1] == (10.0, pytest.approx(own))
    assert [sum(bars.values) for bars in counts.bars] == [10, 7]


@pytest.mark.parametrize("kind", ["caches", "strategies"])
def test_large_type_in_a_narrow_view_is_not_cut_off(view: CompareView, kind: str) -> None:
    bench = Bench(view)
    view.kind.button(kind).click()
    view.compare()
    while bench.waiting:
        bench.end_next(story(12))
    view.measuring_changed(False)
    view.set_theme(theme_for("light", 1.5))
    view.resize(520, 500)
    assert view._page.minimumSizeHint().width() <= 500
    columns = [n for n in range(view.results.columnCount()) if not view.results.isColumnHidden(n)]
    assert columns == [0, 2, 3, 5]
    assert sum(view.results.columnWidth(n) for n in columns) <= view.results.viewport().width() + 1


def test_a_very_narrow_page_is_whole_and_ends_where_its_parts_do(view: CompareView, qtbot: QtBot) -> None:
    bench = Bench(view)
    bench.choose("dynamic", "static", "sink")
    view.compare()
    while bench.waiting:
        bench.end_next(story(12))
    view.measuring_changed(False)
    view.set_theme(theme_for("light", 1.5))
    view.resize(330, 420)
    qtbot.waitUntil(lambda: view._page.width() == view._scroll.viewport().width())
    end = view.charts.geometry().bottom() + view._column.contentsMargins().bottom()
    qtbot.waitUntil(lambda: view._page.height() - end <= 2)


def test_someone_elses_measurement_changes_nothing(view: CompareView) -> None:
    Bench(view)
    view.measuring_changed(True)
    view.measured(finished(RunRequest("", load=LoadRequest("storyteller")), story(3)))
    assert not view.button.isEnabled()
    view.measuring_changed(False)
    assert view.comparisons["caches"].entries == []
    assert view.button.isEnabled()


def test_figures_for_a_file(view: CompareView) -> None:
    bench = Bench(view)
    bench.choose("dynamic", "static")
    view.compare()
    bench.end_next(story(10))
    bench.end_next(story(10)[:8], 512)
    view.measuring_changed(False)
    head, *lines = view.figures()
    rows = [dict(zip(head, line, strict=False)) for line in lines]
    assert (rows[1]["name"], rows[1]["cache_bytes"], rows[1]["first_different_token"]) == ("Static", 512, 9)
    assert rows[1]["text"] == "".join(token.text for token in story(10)[:8])
    assert REASON in [row["state"] for row in rows]


def test_all_caches_in_a_window(qtbot: QtBot, config_dir: Path) -> None:
    window: MainWindow = open_window(qtbot, config_dir, ScriptedEngine())
    run_window(qtbot, window)
    shown = window.session.run
    window.parts.centre.show_view("compare")
    view = next(view for view in window.parts.centre.views if view.objectName() == "compareView")
    with qtbot.waitSignal(window.session.measuringChanged, timeout=WAIT_MS, check_params_cb=lambda on: not on):
        view.button.click()
    entries = view.comparisons["caches"].entries
    assert len(entries) > 4
    assert {entry.state for entry in entries} == {"done"}
    assert window.session.run is shown
    window.close()


def test_a_cache_that_fails_is_a_row_and_the_others_go_on(qtbot: QtBot, config_dir: Path) -> None:
    window = open_window(qtbot, config_dir, ScriptedEngine(fail_caches=("dynamic", "static")))
    window.parts.controller.choose(cache="offloaded")
    run_window(qtbot, window)
    window.parts.centre.show_view("compare")
    view = next(view for view in window.parts.centre.views if view.objectName() == "compareView")
    with qtbot.waitSignal(window.session.measuringChanged, timeout=WAIT_MS, check_params_cb=lambda on: not on):
        view.button.click()
    states = {entry.candidate.key: entry.state for entry in view.comparisons["caches"].entries}
    assert {key for key, state in states.items() if state == "failed"} == {"dynamic", "static"}
    assert len([state for state in states.values() if state == "done"]) > 3
    rows = {row[0]: row[1:] for row in (texts(view, number) for number in range(view.results.rowCount()))}
    assert rows["Static"][0] == "static gives up at token 3."
    assert rows["Offloaded"][4] == "the reference" or "the same" in rows["Offloaded"][4]
    assert not window.parts.centre.error_banner.isVisible()
    window.close()
