"""The speculation view: rounds by mouse and keys, their trees, the cards, and the comparison without a draft."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

from decodescope.app.state.draft_rounds import DraftRounds
from decodescope.app.state.run import Run
from decodescope.app.state.worker_messages import LoadRequest, Outcome, RunRequest
from decodescope.app.theme.theme import theme_for
from decodescope.app.views.speculation.round_page import MIN_READABLE_ZOOM, SpeculationLegend
from decodescope.app.views.speculation.round_report import EXTRA_NODE
from decodescope.app.views.speculation.round_strip import MAX_CELLS, _cell_colours
from decodescope.app.views.speculation.view import SpeculationView
from decodescope.core.events import CostCurve, Finished, Metrics, RunStarted
from tests.app.test_draft_rounds import MERGED, ROUNDS, entry
from tests.ui.fake_engine import chosen

REQUEST = RunRequest(
    "Once",
    strategy="assisted",
    config={"max_new_tokens": 7},
    draft_names=("storyteller-draft",),
    load=LoadRequest("storyteller"),
)


def a_run() -> Run:
    run = Run(REQUEST)
    started = RunStarted("assisted", "storyteller", "cpu", "float32", "dynamic", 0, (), ())
    tokens = [chosen(step, f" t{step}") for step in range(7)]
    run.apply([started, ROUNDS[0], *tokens[:3], ROUNDS[1], *tokens[3:6], ROUNDS[2], tokens[6]])
    return run


@pytest.fixture
def view(qtbot: QtBot) -> SpeculationView:
    view = SpeculationView()
    qtbot.addWidget(view)
    view.resize(900, 640)
    view.show()
    return view


def label(view: SpeculationView) -> str:
    return view.header_widget().label.text()  # type: ignore[attr-defined]


def test_view_follows_newest_round(view: SpeculationView) -> None:
    view.show_run(None)
    assert not view.strip.isVisible()
    view.show_run(a_run())
    assert label(view) == "Round 3 of 3"
    assert view.canvas.isVisible()


def test_rounds_are_selected_by_mouse_and_keys(qtbot: QtBot, view: SpeculationView) -> None:
    view.show_run(a_run())
    qtbot.mouseClick(view.strip, Qt.MouseButton.LeftButton, pos=QPoint(20, 40))
    assert label(view) == "Round 1 of 3"
    qtbot.keyClick(view.strip, Qt.Key.Key_Right)
    assert label(view) == "Round 2 of 3"
    qtbot.keyClick(view.strip, Qt.Key.Key_End)
    assert label(view) == "Round 3 of 3"
    qtbot.keyClick(view.strip, Qt.Key.Key_Home)
    assert label(view) == "Round 1 of 3"


def test_click_on_plot_bar_selects_its_round(qtbot: QtBot, view: SpeculationView) -> None:
    view.show_run(a_run())
    canvas = view.cards.lengths.canvas()
    qtbot.waitUntil(lambda: canvas.area().height() > 20)
    qtbot.mouseClick(canvas.viewport(), Qt.MouseButton.LeftButton, pos=canvas.pixel(0, 1))
    assert label(view) == "Round 1 of 3"
    assert view.cards.lengths.figure.bars[0].marked == 0


def test_view_follows_cursor_and_selected_token(view: SpeculationView) -> None:
    run = a_run()
    view.show_run(run)
    run.move_cursor(4)
    view.cursor_moved(run)
    assert label(view) == "Round 2 of 2"
    run.select(1)
    view.selection_changed(run)
    assert label(view) == "Round 1 of 2"


def test_selected_node_sends_report_to_inspector(qtbot: QtBot, view: SpeculationView) -> None:
    view.show_run(a_run())
    view.strip.roundPicked.emit(0)
    with qtbot.waitSignal(view.signals.reportSelected) as signal:
        view.canvas.selection.pick(3)
    assert signal.args[0].verdict == "Rejected."
    with qtbot.waitSignal(view.signals.reportSelected) as signal:
        view.canvas.selection.pick(EXTRA_NODE)
    assert signal.args[0].heading == "Correction"


def cell(view: SpeculationView, row: int, column: int) -> str:
    return view.cards._cells[row + 1][column].text()


def test_speed_comparison_fills_card(qtbot: QtBot, view: SpeculationView) -> None:
    run = a_run()
    run.apply([Finished("completed", ((),), ("",), Metrics(decode_tokens_per_second=200.0, acceptance_rate=0.7))])
    view.show_run(run)
    assert (cell(view, 0, 1), cell(view, 0, 2)) == ("–", "200")
    with qtbot.waitSignal(view.signals.sideRunsRequested) as signal:
        qtbot.mouseClick(view.cards._button, Qt.MouseButton.LeftButton)
    plain: Any = Run(
        RunRequest(
            "Once",
            strategy="greedy",
            config={"max_new_tokens": 7},
            memory_fallback=False,
            load=LoadRequest("storyteller"),
        )
    )
    assert signal.args[0] == [
        RunRequest("Once", strategy="greedy", config={"max_new_tokens": 7}, load=LoadRequest("storyteller")),
        REQUEST,
    ]
    plain.apply([Finished("completed", ((),), ("",), Metrics(decode_tokens_per_second=100.0))])
    plain.outcome = Outcome("completed")
    view.side_run_finished(plain)
    assert [cell(view, 0, 1), cell(view, 3, 2)] == ["100", "×2.00"]
    drafted: Any = Run(replace(REQUEST, memory_fallback=False))
    drafted.apply([Finished("completed", ((),), ("",), Metrics(decode_tokens_per_second=150.0, acceptance_rate=0.7))])
    view.side_run_finished(drafted)
    assert [cell(view, 0, 2), cell(view, 3, 2)] == ["150", "×1.50"]
    view.show_run(a_run())
    assert cell(view, 0, 1) == "–"


def test_several_drafters_are_named_and_marked(view: SpeculationView) -> None:
    run = Run(RunRequest("Once", strategy="token_tree", draft_names=("small", "tiny"), load=LoadRequest("storyteller")))
    started = RunStarted("token_tree", "storyteller", "cpu", "float32", "dynamic", 0, (), ())
    run.apply([started, MERGED, chosen(0, " w1"), chosen(1, " end")])
    view.show_run(run)
    legend = view.findChild(SpeculationLegend)
    high = legend.heightForWidth(900)
    assert legend.drafters == ["small · 50 % accepted", "tiny · 50 % accepted"]
    marked = view.canvas.grab().toImage()
    view.show_run(a_run())
    assert legend.drafters == []
    assert legend.heightForWidth(900) < high
    assert legend.heightForWidth(250) > high
    one = Run(RunRequest("Once", strategy="token_tree", draft_names=("small",), load=LoadRequest("storyteller")))
    one.apply(run.events)
    view.show_run(one)
    assert view.canvas.grab().toImage() != marked


def test_small_view_scrolls_and_keeps_tree_readable(qtbot: QtBot, view: SpeculationView) -> None:
    view.resize(560, 380)
    run = a_run()
    run.apply([CostCurve(((1, 1.0), (4, 1.2)))])
    view.show_run(run)
    assert view.canvas.height() >= 190
    assert view.canvas.navigation.zoom >= MIN_READABLE_ZOOM

    def heights() -> list[int]:
        return [card.pos().y() for card in view.cards._cards]

    qtbot.waitUntil(lambda: heights()[0] == heights()[1] < heights()[2] == heights()[3])
    view.resize(1200, 700)
    qtbot.waitUntil(lambda: len(set(heights())) == 1)


@pytest.mark.parametrize("width", [560, 1200])
def test_verification_cost_heading_is_hidden_without_curve(view: SpeculationView, width: int) -> None:
    """What checking costs is known at the end of a run, and never where times are left out."""
    view.resize(width, 700)
    run = a_run()
    view.show_run(run)
    heading = next(label for label in view.cards.findChildren(QLabel) if label.text() == "VERIFICATION COST")
    assert not heading.isVisible()
    assert not view.cards.costs.isVisible()
    run.apply([curve := CostCurve(((1, 1.0), (4, 1.2)))])
    view.events_arrived(run, [curve])
    assert heading.isVisible()
    assert view.cards.costs.isVisible()
    assert view.cards.costs.figure.count == 2
    view.show_run(a_run())
    assert not heading.isVisible()


@pytest.mark.parametrize(
    ("fates", "extra"), [(["accepted"] * 12, "bonus"), (["accepted"] * 11 + ["refused"], "correction")]
)
def test_end_of_long_round_is_visible(view: SpeculationView, fates: list[str], extra: str) -> None:
    run = Run(REQUEST)
    started = RunStarted("assisted", "storyteller", "cpu", "float32", "dynamic", 0, (), ())
    run.apply([started, entry(0, 0, fates, extra), *(chosen(step, f" t{step}") for step in range(12))])
    view.show_run(run)
    assert view.canvas.navigation.zoom >= MIN_READABLE_ZOOM
    assert view.canvas.rect().contains(view.canvas.canvas_state.positions.node_rect(EXTRA_NODE))


def test_two_views_share_rounds(view: SpeculationView, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    other, sorted_in = SpeculationView(), []
    qtbot.addWidget(other)
    append = DraftRounds.append
    monkeypatch.setattr(
        DraftRounds, "append", lambda self, events: sorted_in.extend(events := list(events)) or append(self, events)
    )
    whole, run = a_run().events, Run(REQUEST)
    for shown in (view, other):
        shown.show_run(run)
    for event in whole:
        run.apply([event])
        for shown in (view, other):
            shown.events_arrived(run, [event])
    assert other.strip._rounds is view.strip._rounds
    assert sorted_in == run.events


def test_view_is_drawn_in_both_themes_and_large_font(view: SpeculationView) -> None:
    view.show_run(a_run())
    for theme in (theme_for("dark"), theme_for("light", 1.5)):
        view.set_theme(theme)
        assert not view.grab().isNull()


def test_long_round_keeps_cell_of_target_token() -> None:
    whole = entry(0, 0, ["accepted"] * 12, "bonus")
    assert _cell_colours(whole) == ["kept"] * MAX_CELLS + ["finished"]
    assert _cell_colours(entry(0, 0, ["accepted", *["unreached"] * 11], "correction"))[1:3] == ["refused", ""]
    assert len(_cell_colours(entry(0, 0, ["refused"] * 12, "none"))) == MAX_CELLS + 1
