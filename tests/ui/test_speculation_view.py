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
from decodescope.app.views.speculation.cards import length_by_round
from decodescope.app.views.speculation.round_page import SpeculationLegend
from decodescope.app.views.speculation.round_report import EXTRA_NODE
from decodescope.app.views.speculation.round_strip import round_cells
from decodescope.app.views.speculation.view import SpeculationView
from decodescope.app.widgets.tree_canvas.geometry import READABLE_ZOOM
from decodescope.core.events import CostCurve, Finished, Metrics, RunStarted
from tests.app.test_draft_rounds import MERGED, ROUNDS, entry
from tests.ui.fake_engine import chosen
from tests.ui.windows import show_widget

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
    return show_widget(qtbot, SpeculationView(), 900, 640)


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
    assert view.canvas.navigation.zoom >= READABLE_ZOOM

    def heights() -> list[int]:
        return [card.pos().y() for card in view.cards._cards]

    qtbot.waitUntil(lambda: heights()[0] == heights()[1] < heights()[2] == heights()[3])
    view.resize(1200, 700)
    qtbot.waitUntil(lambda: len(set(heights())) == 1)


def test_everything_is_in_sight_at_the_size_of_a_small_screen(qtbot: QtBot, view: SpeculationView) -> None:
    """The centre of a window of 1280 × 800 has 654 × 594 pixels."""
    view.resize(654, 594)
    view.show_run(long_run(*(["accepted"] * count for count in (16, 4, 9))))
    bar = view.page.verticalScrollBar()
    qtbot.waitUntil(lambda: len({card.pos().y() for card in view.cards._cards}) == 1)
    qtbot.waitUntil(lambda: bar.maximum() == 0)
    for label in view.cards.findChildren(QLabel):
        if label.isVisible():
            assert label.width() >= label.sizeHint().width(), label.text()


@pytest.mark.parametrize("width", [560, 1200])
def test_verification_cost_heading_is_hidden_without_curve(view: SpeculationView, width: int) -> None:
    """The cost of checking is known at the end of a run, and never without times."""
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


def long_run(*drafts: list[str]) -> Run:
    """A run with one round per list of fates, each with a bonus token or a correction."""
    run, step = Run(REQUEST), 0
    run.apply([RunStarted("assisted", "storyteller", "cpu", "float32", "dynamic", 0, (), ())])
    for number, fates in enumerate(drafts):
        written = fates.count("accepted") + 1
        extra = "correction" if "refused" in fates else "bonus"
        tokens = [chosen(step + n, f" t{step + n}") for n in range(written)]
        run.apply([entry(number, step, fates, extra), *tokens])
        step += written
    run.apply([CostCurve(((1, 1.0), (4, 1.2)))])
    return run


def overlaps(view: SpeculationView) -> list[tuple[int, int]]:
    scene = view.canvas.canvas_state.scene
    nodes = [node for node in scene.model.nodes if scene.is_shown(node)]
    pairs = ((one, other) for one in nodes for other in nodes if one < other)
    return [(one, other) for one, other in pairs if scene.box(one).intersects(scene.box(other))]


@pytest.mark.parametrize("size", [(654, 594), (900, 640), (412, 350), (1400, 900)])
@pytest.mark.parametrize(
    "fates", [["accepted"] * 3, ["accepted"] * 16, ["accepted"] * 11 + ["refused"] + ["unreached"] * 9,
              ["refused", *["unreached"] * 15]]
)  # fmt: skip
def test_whole_round_is_in_sight_and_legible(view: SpeculationView, size: tuple[int, int], fates: list[str]) -> None:
    view.resize(*size)
    view.show_run(long_run(fates, ["accepted"]))
    view.show_round(0)
    state = view.canvas.canvas_state
    assert len(state.scene.model.nodes) == len(fates) + 2
    for node in state.scene.model.nodes:
        assert view.canvas.rect().contains(state.positions.node_rect(node)), node
    assert overlaps(view) == []
    if size != (412, 350):
        assert view.canvas.navigation.zoom >= READABLE_ZOOM


def test_round_drawn_while_hidden_is_in_sight_when_shown(qtbot: QtBot) -> None:
    view = SpeculationView()
    qtbot.addWidget(view)
    view.resize(90, 60)
    view.show_run(long_run(["accepted"] * 9, ["accepted"]))
    view.resize(900, 640)
    view.show()
    view.show_round(0)
    positions = view.canvas.canvas_state.positions
    assert view.canvas.rect().contains(positions.node_rect(EXTRA_NODE))
    assert view.canvas.rect().contains(positions.node_rect(0))
    assert view.canvas.navigation.zoom >= READABLE_ZOOM


def test_tree_keeps_its_height_from_round_to_round(view: SpeculationView) -> None:
    view.show_run(long_run(["accepted"] * 16, ["refused"], ["accepted"] * 5))
    heights = set()
    for number in range(3):
        view.show_round(number)
        heights.add((view.canvas.height(), view.cards.y()))
    assert len(heights) == 1


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


@pytest.mark.parametrize("accepted", [1, 8, 10, 16, 60])
def test_strip_counts_every_accepted_token(accepted: int) -> None:
    assert round_cells(entry(0, 0, ["accepted"] * accepted, "bonus")) == [("kept", accepted), ("finished", 1)]
    assert round_cells(entry(0, 0, ["accepted"] * accepted + ["refused", "unreached"], "correction")) == [
        ("kept", accepted), ("refused", 1), ("pruned", 1),
    ]  # fmt: skip
    assert round_cells(entry(0, 0, ["refused"] * accepted, "none")) == [("pruned", accepted)]


def test_strip_draws_more_accepted_tokens_higher(view: SpeculationView) -> None:
    view.show_run(long_run(*(["accepted"] * count for count in (8, 10, 16))))
    rounds = view.strip._rounds
    tops = [min(box.top() for _, box in view.strip._boxes(view.strip._rect(n), rounds[n])) for n in range(3)]
    assert tops[0] > tops[1] > tops[2]


def test_strip_marks_rounds_out_of_sight(view: SpeculationView) -> None:
    view.resize(420, 640)
    view.show_run(long_run(*[["accepted"]] * 40))
    view.show_round(20)
    before, after = view.strip.hidden_counts
    assert before > 0
    assert before + view.strip._visible_count + after == 40
    marked = view.strip.grab().toImage()
    view.strip._paint_more = lambda painter: None
    assert view.strip.grab().toImage() != marked


def test_draft_length_plot_shows_drafted_tokens_and_limit() -> None:
    """Tokens that were allowed and never drafted are no lost drafts."""
    rounds = [replace(entry(0, 0, ["accepted", "refused", "unreached"], "correction"), length=16)]
    figure = length_by_round(rounds, 0)
    assert [bars.values for bars in figure.bars] == [(1.0,), (2.0,)]
    (line,) = figure.lines
    assert {y for _, y in line.points} == {16}


def test_legend_explains_every_colour_of_strip_and_draft_lengths(view: SpeculationView) -> None:
    """A colour of a stack means what the state of that colour means."""
    view.show_run(long_run(["accepted", "refused", "unreached"], ["accepted"]))
    colours = {colour for each in view.strip._rounds for colour, _ in round_cells(each)}
    colours |= {bars.colour for bars in view.cards.lengths.figure.bars}
    explained = {"kept": "accepted", "refused": "correction", "finished": "bonus", "pruned": "not accepted"}
    assert colours <= explained.keys()
    assert {explained[colour] for colour in colours} <= {word for _, word in view.page.legend._entries}
    plot = view.cards.lengths.figure
    assert all(line.name for line in plot.lines)
