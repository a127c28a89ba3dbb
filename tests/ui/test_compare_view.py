"""The compare view: sets of runs, their table, texts, plots and files, through a bench and through the window."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from decodescope.app.session.side_runs import MeasurementProgress
from decodescope.app.state.comparison.candidates import temperature_candidates
from decodescope.app.state.comparison.results import ComparisonEntry
from decodescope.app.state.run import Run
from decodescope.app.state.worker_messages import ErrorReport, LoadRequest, ModelInfo, Outcome, RunRequest
from decodescope.app.theme.theme import theme_for
from decodescope.app.views.compare.comparison_kinds import CACHES
from decodescope.app.views.compare.plots import METRIC_COLUMNS
from decodescope.app.views.compare.results import NAME, SUMMARY
from decodescope.app.views.compare.view import CompareView
from decodescope.app.window.main_window import MainWindow
from decodescope.core import catalog, strategies
from decodescope.core.errors import CorruptWeightsError
from decodescope.core.events import Finished, Metrics, Prefilled, TokenChosen
from tests.long import slow
from tests.ui import layout
from tests.ui.fake_engine import ScriptedEngine
from tests.ui.scripted import PROMPT, started, story
from tests.ui.windows import WAIT_MS, open_window, show_widget
from tests.ui.windows import run as run_window

REASON = "storyteller was trained without a window."


def finished(request: RunRequest, tokens: list[TokenChosen], size: int = 4096) -> Run:
    run = Run(request)
    metrics = Metrics(len(PROMPT), len(tokens), 1.0, 0.02, 900.0, 50.0, cache_bytes=size, cache_peak_bytes=2 * size)
    texts = ("".join(token.text for token in tokens),)
    run.apply([started(), Prefilled(len(PROMPT), 0.02), *tokens, Finished("completed", ((),), texts, metrics)])
    run.outcome = Outcome("completed")
    return run


class CompareViewSession:
    """Handles the view's signals as the session does, one request at a time."""

    def __init__(self, view: CompareView) -> None:
        self.view, self.waiting = view, []
        view.signals.sideRunsRequested.connect(self.measure)
        view.models_changed(catalog.bundled())
        view.model_ready(ModelInfo("storyteller", unsupported_caches={"sliding_window": REASON}))
        view.show_run(finished(RunRequest("Once", strategy="sampling", load=LoadRequest("storyteller")), story(10)))

    def measure(self, requests: list[RunRequest]) -> None:
        self.waiting = list(requests)
        self.view.side_runs_changed(True)

    def end_next(self, tokens: list[TokenChosen], size: int = 4096) -> None:
        self.view.side_run_finished(finished(self.waiting.pop(0), tokens, size))

    def fail_next(self, cause: str) -> None:
        run = Run(self.waiting.pop(0))
        run.outcome = Outcome("failed", "no", ErrorReport("no", cause))
        self.view.side_run_finished(run)

    def choose(self, *keys: str) -> None:
        for chip in self.view.setup.chips.findChildren(QPushButton):
            key = chip.objectName().removeprefix("compare.")
            if chip.isEnabled() and chip.isChecked() != (key in keys):
                chip.click()


@pytest.fixture
def view(qtbot: QtBot) -> Iterator[CompareView]:
    view = CompareView()
    view.kind.set_value(CACHES)
    return show_widget(qtbot, view, 760, 640)


def row(view: CompareView, number: int) -> dict[str, str]:
    """Everything a row says, by the titles of its columns."""
    model = view.outcome.results.rows_model
    titles = ["name", "said", *(column.title for column in METRIC_COLUMNS)]
    return {title: model.index(number, column).data() for column, title in enumerate(titles)}


def entries_of(view: CompareView) -> list[ComparisonEntry]:
    return view.comparison.entries


def fill(bench: CompareViewSession, *texts: list[TokenChosen]) -> None:
    for tokens in texts:
        bench.end_next(tokens)
    bench.view.side_runs_changed(False)


def test_button_is_disabled_without_finished_run(view: CompareView) -> None:
    assert not view.button.isVisible()
    run = finished(RunRequest("", load=LoadRequest("storyteller")), story(3))
    run.outcome = None
    view.show_run(run)
    assert not view.button.isEnabled()
    run.outcome = Outcome("completed")
    view.events_arrived(run, ())
    assert view.button.isEnabled()


def test_unsupported_candidate_is_disabled_with_reason(view: CompareView) -> None:
    CompareViewSession(view)
    chip = view.setup.chips.findChild(QPushButton, "compare.sliding_window")
    assert not chip.isEnabled()
    assert chip.toolTip() == REASON
    assert f"Sliding window: {REASON}" in view.setup._reasons.text()


def test_compare_button_fills_table_and_plots(view: CompareView, qtbot: QtBot) -> None:
    bench = CompareViewSession(view)
    bench.choose("dynamic", "static", "sink")
    with qtbot.waitSignal(view.signals.sideRunsRequested) as wanted:
        qtbot.mouseClick(view.button, Qt.MouseButton.LeftButton)
    assert [request.cache for request in wanted.args[0]] == ["dynamic", "static", "sink"]
    assert view.button.text() == "Stop"
    assert row(view, 0)["said"] == "running…"
    bench.end_next(story(10))
    view.side_runs_progressed(MeasurementProgress(1, 3, 4.2))
    assert view.progress.words.text().replace("\xa0", " ") == "1 of 3 · about 4 s left"
    bench.end_next(story(10), 8192)
    bench.end_next(story(9))
    view.side_runs_changed(False)
    assert not view.progress.isVisible()
    reported = row(view, 1)
    assert [reported[name] for name in ("name", "Cache", "Peak", "Speed", "First token")] == [
        "Static", "8.0 KiB", "16.0 KiB", "50 tok/s", "20 ms",
    ]  # fmt: skip
    assert reported["said"] == "same 10 tokens"
    assert row(view, 2)["said"] == f"differs at 10: the end, not “{story(10)[9].piece.replace(' ', '␣')}”"
    plots = {plot.accessibleName(): plot.figure.bars[0].figures for plot in view.outcome.charts.plots}
    assert plots["Peak bytes"] == ("8.0 KiB", "16.0 KiB", "8.0 KiB")
    assert plots["Identical text length"] == ("all 10", "all 10", "9 tokens")
    assert view.button.isEnabled()


def test_summary_names_first_differing_token(view: CompareView) -> None:
    bench = CompareViewSession(view)
    bench.choose("dynamic", "quantized-2")
    view.compare_or_stop()
    bench.end_next(story(10))
    bench.end_next([*story(4), *story(7, pieces=(" never",) * 7)[4:]])
    view.side_runs_changed(False)
    expected = f"differs at 5: “␣never”, not “{story(10)[4].piece.replace(' ', '␣')}”"
    assert row(view, 1)["said"] == expected


def test_failed_and_stopped_runs_keep_other_results(view: CompareView) -> None:
    bench = CompareViewSession(view)
    bench.choose("dynamic", "static", "sink")
    view.compare_or_stop()
    bench.end_next(story(5))
    bench.fail_next("Static is not supported here: it is too large.")
    view.side_runs_changed(False)
    assert [row(view, number)["said"] for number in range(3)] == [
        "the reference", "Static is not supported here: it is too large.", "stopped",
    ]  # fmt: skip
    assert row(view, 1)["Speed"] == "–"
    assert view.outcome.results.columnSpan(1, SUMMARY) > 5, "the reason has the room of the figures"
    view.outcome.results.sortByColumn(NAME, Qt.SortOrder.DescendingOrder)
    assert [view.outcome.results.columnSpan(n, SUMMARY) > 1 for n in range(3)] == [True, False, False]


def test_strategy_comparison_shows_texts_and_plots(view: CompareView) -> None:
    bench = CompareViewSession(view)
    view.kind.button("strategies").click()
    bench.choose("sampling", "greedy")
    view.compare_or_stop()
    assert [request.strategy for request in bench.waiting] == ["sampling", "greedy"]
    bench.end_next(story(10))
    bench.end_next([*story(4), *story(7, pieces=(" never",) * 7)[4:]])
    view.side_runs_changed(False)
    first, second = (card.text.text() for card in view.outcome.texts.cards)
    assert "underline" in second
    assert "underline" not in first
    bits, counts = (plot.figure for plot in view.outcome.charts.plots if plot.isVisible())
    assert [line.name for line in bits.lines] == ["Sampling", "Greedy"]
    assert bits.lines[0].points[:5] == bits.lines[1].points[:5], "the texts are one up to there"
    own = -sum(token.raw_log_probability for token in story(10)) / math.log(2)
    assert bits.lines[0].points[-1] == (10.0, pytest.approx(own))
    assert [sum(bars.values) for bars in counts.bars] == [10, 7]


def test_click_on_card_changes_reference(view: CompareView, qtbot: QtBot) -> None:
    bench = CompareViewSession(view)
    view.kind.button("seeds").click()
    view.setup.seeds.setValue(2)
    view.compare_or_stop()
    assert [request.seed for request in bench.waiting] == [0, 1]
    fill(bench, story(6), story(8))
    assert row(view, 0)["name"] == "◆ Seed 0"
    qtbot.mouseClick(view.outcome.texts.cards[1].compare, Qt.MouseButton.LeftButton)
    assert row(view, 1)["name"] == "◆ Seed 1"
    assert row(view, 0)["said"].startswith("differs at 7: the end")
    assert "‸" in view.outcome.texts.cards[0].text.text(), "words of the reference are missing"
    assert not view.outcome.texts.cards[1].compare.isVisible()


def test_columns_sort_numerically_with_missing_values_last(view: CompareView) -> None:
    bench = CompareViewSession(view)
    view.kind.button("seeds").click()
    view.setup.seeds.setValue(4)
    view.compare_or_stop()
    bench.end_next(story(9))
    bench.end_next(story(100))
    bench.fail_next("no")
    bench.end_next(story(20))
    view.side_runs_changed(False)
    tokens = 2 + [column.title for column in METRIC_COLUMNS].index("Tokens")
    for order, expected in ((Qt.SortOrder.AscendingOrder, ["9", "20", "100", "–"]),
                            (Qt.SortOrder.DescendingOrder, ["100", "20", "9", "–"])):  # fmt: skip
        view.outcome.results.sortByColumn(tokens, order)
        assert [row(view, number)["Tokens"] for number in range(4)] == expected
    alignment = view.outcome.results.rows_model.index(0, tokens).data(Qt.ItemDataRole.TextAlignmentRole)
    assert alignment & Qt.AlignmentFlag.AlignRight
    announced = view.outcome.results.rows_model.index(0, tokens).data(Qt.ItemDataRole.AccessibleTextRole)
    assert announced == "Tokens ↓: 100"
    view.outcome.results.sortByColumn(NAME, Qt.SortOrder.AscendingOrder)
    assert [row(view, number)["name"].removeprefix("◆ ") for number in range(4)] == [f"Seed {n}" for n in range(4)]


def test_seed_comparison_with_greedy_is_disabled(view: CompareView) -> None:
    CompareViewSession(view)
    view.show_run(finished(RunRequest("Once", strategy="greedy", load=LoadRequest("storyteller")), story(5)))
    view.kind.button("seeds").click()
    assert not view.button.isEnabled()
    assert "does not sample" in view.setup._reasons.text()


def test_sweep_shows_estimate_and_plots_results(view: CompareView, qtbot: QtBot) -> None:
    bench = CompareViewSession(view)
    view.kind.button("sweep").click()
    form = view.setup.sweep
    assert form.parameter.currentText() == "Temperature"
    form.list.setText("0.5 1 1.5")
    form.seeds.setValue(2)
    assert view.button.text() == "Compare 6"
    assert "6 runs, about 6 s" in view.head.description.text().replace("\xa0", " "), "the shown run took a second"
    view.compare_or_stop()
    reported = [(request.settings["temperature"], request.seed) for request in bench.waiting]
    assert reported == [(0.5, 0), (0.5, 1), (1.0, 0), (1.0, 1), (1.5, 0), (1.5, 1)]
    fill(bench, story(4), story(8), story(6), story(6), story(10), story(20))
    plots = {plot.accessibleName(): plot.figure for plot in view.outcome.charts.plots}
    lengths = plots["Tokens"]
    assert lengths.lines[0].points == ((0, 6), (1, 6), (2, 15))
    assert [(dots.name, dots.points) for dots in lengths.dots] == [
        ("seed 0", ((0, 4), (1, 6), (2, 10))), ("seed 1", ((0, 8), (1, 6), (2, 20))),
    ]  # fmt: skip
    assert lengths.x.labels == ("0.5", "1", "1.5")
    panel = next(plot for plot in view.outcome.charts.plots if plot.accessibleName() == "Tokens")
    assert panel.describe_position(2) == "Temperature 1.5\nmean 15\nseed 0 10\nseed 1 20"
    assert "mean goes from 6 at 0.5" in panel.accessibleDescription() or "rises" in panel.accessibleDescription()
    head, first = view.export_table()[:2]
    assert dict(zip(head, first, strict=True))["temperature"] == 0.5


@pytest.mark.parametrize(
    ("low", "high", "reason"),
    [("0", "2", "must be greater than"), ("1", "1", "two different ends"), ("warm", "2", "must be a number")],
)
def test_invalid_sweep_range_shows_reason(view: CompareView, low: str, high: str, reason: str) -> None:
    CompareViewSession(view)
    view.kind.button("sweep").click()
    form = view.setup.sweep
    form.low.setText(low)
    form.high.setText(high)
    form.high.editingFinished.emit()
    assert reason in form.problem.text()
    assert not view.button.isEnabled()
    form.list.setText("0.5, 1")
    assert not form.problem.isVisible()
    assert view.button.isEnabled()


def test_existing_runs_are_compared_without_new_runs(view: CompareView) -> None:
    CompareViewSession(view)
    other = finished(RunRequest("Once", strategy="greedy", load=LoadRequest("storyteller")), story(7))
    view.show_run(other)
    view.kind.button("runs").click()
    view.compare_or_stop()
    assert [row(view, n)["name"] for n in range(2)] == ["◆ 1. Sampling, seed 0", "2. Greedy, seed 0"]
    assert row(view, 1)["said"].startswith("differs at 8: the end")
    stored = finished(RunRequest("Once", seed=5, load=LoadRequest("storyteller")), story(3))
    view.compare_with(stored)
    assert [entry.candidate.run for entry in view.comparison.entries] == [other, stored]
    view.compare_with(stored)
    assert len(view.setup.chips.chosen) == 2, "it is offered once"


@pytest.mark.parametrize("kind", ["caches", "strategies", "seeds", "models", "sweep", "runs"])
@pytest.mark.parametrize(("width", "scale"), [slow((520, 1.0)), (330, 1.5)])
def test_layout_is_not_clipped_at_any_width(view: CompareView, kind: str, width: int, scale: float) -> None:
    bench = CompareViewSession(view)
    view.kind.button(kind).click()
    if kind == "sweep":
        view.setup.sweep.list.setText("0.5 1.5")
    view.compare_or_stop()
    fill(bench, *(story(12 + n) for n in range(len(bench.waiting))))
    view.set_theme(theme_for("light", scale))
    view.resize(width, 640)
    layout.settle(view)
    assert layout.faults(view) == []
    shown = [
        n for n in range(view.outcome.results.rows_model.columnCount()) if not view.outcome.results.isColumnHidden(n)
    ]
    assert {NAME, SUMMARY} <= set(shown)
    assert sum(view.outcome.results.columnWidth(n) for n in shown) <= view.outcome.results.width() + 1


def test_foreign_side_run_is_ignored(view: CompareView) -> None:
    CompareViewSession(view)
    view.side_runs_changed(True)
    view.side_run_finished(finished(RunRequest("", load=LoadRequest("storyteller")), story(3)))
    assert not view.button.isEnabled()
    view.side_runs_changed(False)
    assert view.comparing.comparisons["caches"].entries == []
    assert view.button.isEnabled()


def test_export_table_has_numbers_and_texts(view: CompareView) -> None:
    bench = CompareViewSession(view)
    bench.choose("dynamic", "static")
    view.compare_or_stop()
    bench.end_next(story(10))
    bench.end_next(story(10)[:8], 512)
    view.side_runs_changed(False)
    head, *lines = view.export_table()
    rows = [dict(zip(head, line, strict=False)) for line in lines]
    assert (rows[1]["name"], rows[1]["cache_bytes"], rows[1]["first_different_token"]) == ("Static", 512, 9)
    assert rows[1]["text"] == "".join(token.text for token in story(10)[:8])
    assert REASON in [reported["state"] for reported in rows]


def test_window_compares_all_caches(qtbot: QtBot, config_dir: Path) -> None:
    window: MainWindow = open_window(qtbot, config_dir, ScriptedEngine())
    run_window(qtbot, window)
    shown = window.session.run
    window.parts.centre.show_view("compare")
    view = next(view for view in window.parts.centre.views if view.objectName() == "compareView")
    view.kind.button(CACHES).click()
    with qtbot.waitSignal(window.session.measuringChanged, timeout=WAIT_MS, check_params_cb=lambda on: not on):
        view.button.click()
    entries = view.comparing.comparisons["caches"].entries
    assert len(entries) > 4
    assert {entry.state for entry in entries} == {"done"}
    assert window.session.run is shown
    window.close()


def test_failing_cache_is_row_and_others_continue(qtbot: QtBot, config_dir: Path) -> None:
    window = open_window(qtbot, config_dir, ScriptedEngine(fail_caches=("dynamic", "static")))
    window.parts.settings_controller.choose(cache="offloaded")
    run_window(qtbot, window)
    window.parts.centre.show_view("compare")
    view = next(view for view in window.parts.centre.views if view.objectName() == "compareView")
    view.kind.button(CACHES).click()
    with qtbot.waitSignal(window.session.measuringChanged, timeout=WAIT_MS, check_params_cb=lambda on: not on):
        view.button.click()
    states = {entry.candidate.key: entry.state for entry in view.comparing.comparisons["caches"].entries}
    assert {key for key, state in states.items() if state == "failed"} == {"dynamic", "static"}
    assert len([state for state in states.values() if state == "done"]) > 3
    rows = [row(view, number) for number in range(len(entries_of(view)))]
    reported = {line["name"].removeprefix("◆ "): line["said"] for line in rows}
    assert reported["Static"] == "static gives up at token 3."
    assert reported["Offloaded"] == "the reference" or "same " in reported["Offloaded"]
    assert not window.parts.centre.error_banner.isVisible()
    window.close()


def compare_view(window: MainWindow) -> CompareView:
    window.parts.centre.show_view("compare")
    view = next(view for view in window.parts.centre.views if view.objectName() == "compareView")
    assert isinstance(view, CompareView)
    return view


def compared(qtbot: QtBot, window: MainWindow, view: CompareView, kind: str) -> None:
    view.kind.button(kind).click()
    with qtbot.waitSignal(window.session.measuringChanged, timeout=WAIT_MS, check_params_cb=lambda on: not on):
        view.button.click()


def test_model_comparison_reloads_shown_model(qtbot: QtBot, config_dir: Path) -> None:
    engine = ScriptedEngine()
    window = open_window(qtbot, config_dir, engine)
    run_window(qtbot, window)
    view = compare_view(window)
    own = window.session.model
    assert own is not None
    with qtbot.waitSignal(window.session.modelReady, timeout=WAIT_MS) as ready:
        compared(qtbot, window, view, "models")
    assert ready.args[0].name == own.name
    assert {entry.state for entry in view.comparison.entries} == {"done"}
    assert len({entry.candidate.request.model for entry in view.comparison.entries}) == 3
    assert engine.loads[-1].model == own.name
    window.close()


class FailingLoadEngine(ScriptedEngine):
    """Cannot load one of the models."""

    def load(self, request: LoadRequest) -> ModelInfo:
        if request.model == "storyteller-window":
            raise CorruptWeightsError("Its weights are damaged.", "Fetch it again.")
        return super().load(request)


def test_model_that_fails_to_load_is_row_with_reason(qtbot: QtBot, config_dir: Path) -> None:
    window = open_window(qtbot, config_dir, FailingLoadEngine())
    run_window(qtbot, window)
    view = compare_view(window)
    with qtbot.waitSignal(window.session.modelReady, timeout=WAIT_MS) as ready:
        compared(qtbot, window, view, "models")
    states = {entry.candidate.key: entry.state for entry in view.comparison.entries}
    assert states == {"storyteller": "done", "storyteller-mamba": "done", "storyteller-window": "failed"}
    assert row(view, 2)["said"] == "Its weights are damaged."
    assert ready.args[0].name == "storyteller"
    assert not window.parts.centre.error_banner.isVisible()
    window.close()


def test_click_shows_result_and_back_button_restores_run(qtbot: QtBot, config_dir: Path) -> None:
    window = open_window(qtbot, config_dir, ScriptedEngine())
    run_window(qtbot, window)
    shown, view = window.session.run, compare_view(window)
    compared(qtbot, window, view, "caches")
    assert not view.outcome.way_back.isVisible()
    index = view.outcome.results.rows_model.index(1, NAME)
    qtbot.mouseClick(
        view.outcome.results.viewport(), Qt.MouseButton.LeftButton, pos=view.outcome.results.visualRect(index).center()
    )  # fmt: skip
    assert window.session.run is view.comparison.entries[1].run
    assert len(view.comparison.entries) > 4, "the comparison stays"
    assert view.outcome.way_back.isVisible()
    qtbot.mouseClick(view.outcome.way_back.button, Qt.MouseButton.LeftButton)
    assert window.session.run is shown
    assert not view.outcome.way_back.isVisible()
    window.close()


def test_stop_keeps_finished_results(qtbot: QtBot, config_dir: Path) -> None:
    window = open_window(qtbot, config_dir, ScriptedEngine(delay=0.005))
    run_window(qtbot, window)
    view = compare_view(window)
    view.kind.button("caches").click()
    with qtbot.waitSignal(window.session.measured, timeout=WAIT_MS):
        view.button.click()
    assert view.progress.isVisible()
    with qtbot.waitSignal(window.session.measuringChanged, timeout=WAIT_MS, check_params_cb=lambda on: not on):
        qtbot.mouseClick(view.button, Qt.MouseButton.LeftButton)
    states = [entry.state for entry in view.comparison.entries]
    assert states[0] == "done"
    assert set(states[1:]) == {"stopped"}
    assert view.button.text().startswith("Compare")
    window.close()


def test_history_run_is_compared_with_shown_run(qtbot: QtBot, config_dir: Path) -> None:
    window = open_window(qtbot, config_dir, ScriptedEngine())
    run_window(qtbot, window)
    first = window.session.run
    run_window(qtbot, window)
    assert first is not None
    window.parts.history_panel.compareRequested.emit(window.history.open_run(first.id))
    view = compare_view(window)
    assert view.isVisible()
    assert {entry.run.id for entry in view.comparison.entries if entry.run} == {first.id, window.session.run.id}
    window.close()


def test_scored_text_supports_only_models_and_runs(view: CompareView) -> None:
    CompareViewSession(view)
    scored = RunRequest("Once", scored=True, load=LoadRequest("storyteller"))
    view.show_run(finished(scored, story(5)))
    for kind, can in (("sweep", False), ("caches", False), ("seeds", False), ("models", True), ("runs", True)):
        view.kind.button(kind).click()
        assert view.button.isEnabled() == can, kind
        assert ("only scores a given text" in view.setup._reasons.text()) != can


def test_run_of_unavailable_strategy_can_be_compared(view: CompareView) -> None:
    CompareViewSession(view)
    gone = RunRequest("Once", strategy="oracle", load=LoadRequest("storyteller"))
    view.show_run(finished(gone, story(5)))
    for kind in ("sweep", "caches", "strategies", "seeds", "models"):
        view.kind.button(kind).click()
        assert "The strategy “oracle” is not available" in view.setup._reasons.text()
    view.kind.button("runs").click()
    view.compare_or_stop()
    assert row(view, 1)["name"] == "2. oracle, seed 0"


@pytest.mark.parametrize(
    ("strategy", "settings", "as_strategy"),
    [("sampling", {"temperature": 0.8, "top_k": 7}, "sampling"), ("greedy", {}, "sampling"),
     ("assisted", {"do_sample": False}, "assisted")],
)  # fmt: skip
def test_two_temperatures_differ_in_temperature_only(
    strategy: str, settings: dict[str, object], as_strategy: str
) -> None:
    base = RunRequest("Once", strategy=strategy, config=settings, seed=3, draft_names=("storyteller-draft",))
    low, high = (candidate.request for candidate in temperature_candidates(base, None))
    assert (low.settings["temperature"], high.settings["temperature"]) == (0.2, 1.2)
    assert high.with_settings({"temperature": 0.2}) == low
    assert (low.strategy, low.seed, low.prompt) == (as_strategy, 3, "Once")
    assert {name: low.settings[name] for name in settings if name not in ("temperature", "do_sample")} == {
        name: value for name, value in settings.items() if name not in ("temperature", "do_sample")
    }
    strategy_of = strategies.registry[low.strategy]
    assert low.settings.get("do_sample", strategy_of.flags.get("do_sample"))


def test_two_temperatures_need_two_clicks_from_a_run(qtbot: QtBot, config_dir: Path) -> None:
    window = open_window(qtbot, config_dir, ScriptedEngine())
    run_window(qtbot, window)
    column = window.parts.centre.columns[0]
    tab = [column.name_at(column.tabs.tabRect(n).center()) for n in range(column.tabs.count())].index("compare")
    qtbot.mouseClick(column.tabs, Qt.MouseButton.LeftButton, pos=column.tabs.tabRect(tab).center())
    view = compare_view(window)
    with qtbot.waitSignal(window.session.measuringChanged, timeout=WAIT_MS, check_params_cb=lambda on: not on):
        qtbot.mouseClick(view.button, Qt.MouseButton.LeftButton)
    assert [entry.candidate.title for entry in entries_of(view)] == ["Temperature 0.2", "Temperature 1.2"]
    first, second = view.outcome.texts.cards
    assert first.y() == second.y(), "they are side by side"


@pytest.mark.parametrize("has_run", [True, False])
def test_command_two_temperatures_runs_the_prompt_first_if_nothing_is_shown(
    qtbot: QtBot, config_dir: Path, has_run: bool
) -> None:
    engine = ScriptedEngine()
    window = open_window(qtbot, config_dir, engine)
    if has_run:
        run_window(qtbot, window)
    with qtbot.waitSignal(window.session.measuringChanged, timeout=WAIT_MS, check_params_cb=lambda on: not on):
        window.parts.menu_bar.commands["compare_temperatures"].trigger()
    assert [request.settings.get("temperature") for request in engine.runs[1:]] == [0.2, 1.2]
    assert window.parts.centre.columns[0].current_name == "compare"
    assert {entry.state for entry in entries_of(compare_view(window))} == {"done"}
