"""The tree view: growth, cursor, table, search, reports; over made-up beam searches."""

from __future__ import annotations

from dataclasses import replace

import pytest
from PySide6.QtCore import QPoint, QRectF, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLineEdit, QToolButton, QWidget
from pytestqt.qtbot import QtBot

from decodescope.app.state.run import Run
from decodescope.app.state.sequences import LIMITS
from decodescope.app.theme.theme import theme_for
from decodescope.app.views import VIEWS
from decodescope.app.views.inspector.node_card import NodeCard
from decodescope.app.views.node_reports import NodeReport
from decodescope.app.views.tree.beam_content import SCORE, TEXT, shared_prefix_length
from decodescope.app.views.tree.beam_nodes import beam_node_report, score_formula
from decodescope.app.views.tree.view import TreeView
from decodescope.app.widgets.tree_canvas import STATES, TreeCanvas, TreeNode
from decodescope.app.widgets.tree_canvas.accessible import _STATE_LABELS, describe_node
from decodescope.app.widgets.tree_canvas.geometry import READABLE_ZOOM
from decodescope.app.widgets.tree_canvas.tree_style import PAINT_ORDER
from tests.ui.beams import FakeSearch, beam_run, beam_steps, ranking
from tests.ui.scripted import make_run, story
from tests.ui.windows import show_widget

K = Qt.Key


def make_view(qtbot: QtBot, run: Run | None = None, width: int = 1100) -> TreeView:
    view = show_widget(qtbot, TreeView(), width, 700, "dark")
    view.show_run(run)
    return view


def press(view: TreeView, *keys: Qt.Key) -> int | None:
    for key in keys:
        QTest.keyClick(view.canvas, key)
    return view.canvas.selection.selected


def tool(view: TreeView, name: str) -> QToolButton:
    found = view.header_widget().findChild(QToolButton, name)
    assert found is not None
    return found


def test_tree_view_is_registered() -> None:
    assert ("tree", "Tree") in [(spec.name, spec.title) for spec in VIEWS]


def test_run_without_beams_shows_hint(qtbot: QtBot) -> None:
    view = make_view(qtbot)
    assert not view.canvas.isVisible()
    empty = view.grab().toImage()
    view.show_run(make_run(story(5)))
    assert not view.canvas.isVisible()
    assert view.grab().toImage() != empty


def test_tree_grows_with_every_step(qtbot: QtBot) -> None:
    run = beam_run([])
    view = make_view(qtbot, run)
    for number, step in enumerate(beam_steps(12), 1):
        run.apply([step])
        view.events_arrived(run, [step])
        assert view.canvas.isVisible()
        assert view.canvas.canvas_state.scene.last_depth == number
        assert view.canvas.canvas_state.style.best_path[-1] == step.best
    assert len(view.canvas.canvas_state.scene.model) == 1 + sum(len(step.candidates) for step in run.beams.steps)
    assert view.canvas.canvas_state.scene.model.nodes[0].label == "…little"


def test_second_view_of_same_run_has_same_layout(qtbot: QtBot) -> None:
    run = beam_run(beam_steps(9), ranked=True)
    first, second = make_view(qtbot, run), make_view(qtbot, run)
    assert second.canvas.canvas_state.scene.layout.rows == first.canvas.canvas_state.scene.layout.rows


def test_beam_search_of_several_sequences_is_not_shown_as_samples(qtbot: QtBot) -> None:
    """Its start is reported before its first step, and looks like that of several samples."""
    steps = beam_steps(3)
    run = make_run(sequences=4)
    view = make_view(qtbot, run)
    run.apply(steps)
    view.events_arrived(run, steps)
    assert len(view.canvas.canvas_state.scene.model) == 1 + sum(len(step.candidates) for step in steps)


def test_new_run_replaces_tree(qtbot: QtBot) -> None:
    view = make_view(qtbot, beam_run(beam_steps(9)))
    view.canvas.selection.pick(3)
    view.show_run(beam_run(beam_steps(2, beams=2, seed=5)))
    assert view.canvas.selection.selected is None
    assert view.canvas.canvas_state.scene.last_depth == 2
    assert view.report is None
    view.show_run(None)
    assert len(view.canvas.canvas_state.scene.model) == 0


def test_cursor_shows_tree_at_that_step(qtbot: QtBot) -> None:
    run = beam_run(beam_steps(12), ranked=True)
    view = make_view(qtbot, run)
    run.move_cursor(5)
    view.cursor_moved(run)
    assert view.canvas.canvas_state.scene.last_depth == 5
    assert view.canvas.canvas_state.style.best_path[-1] == run.beams.steps[4].best
    assert {row.length for row in view.table.rows_model.rows} == {5}
    run.move_cursor(12)
    view.cursor_moved(run)
    assert view.canvas.canvas_state.scene.last_depth == 12


def test_node_states_match_candidate_fates(qtbot: QtBot) -> None:
    run = beam_run(beam_steps(30, ends=0.2))
    nodes = make_view(qtbot, run).canvas.canvas_state.scene.model.nodes
    for step in run.beams.steps:
        for candidate in step.candidates:
            assert nodes[candidate.node].state == ("stopped" if candidate.fate == "early_stopped" else candidate.fate)
            assert nodes[candidate.node].parent == candidate.parent
    ended = [c.node for s in run.beams.steps for c in s.candidates if c.fate == "finished"]
    assert ended
    assert {nodes[node].label for node in ended} == {"end"}


def test_groups_have_lanes_and_constraints_have_progress(qtbot: QtBot) -> None:
    view = make_view(qtbot, beam_run(beam_steps(6, beams=8, groups=4)))
    assert len(view.canvas.canvas_state.scene.layout.lanes()) == 4
    assert not view.table.isColumnHidden(3)
    run = beam_run([])
    view.show_run(run)
    for step in beam_steps(10, constraint=3):
        run.apply([step])
        view.events_arrived(run, [step])
    marks = {node.progress for node in view.canvas.canvas_state.scene.model.nodes.values() if node.id}
    assert {total for _, total in marks} == {3}
    assert {met for met, _ in marks} == {0, 1, 2, 3}


# The table


def test_the_table_sorts_by_every_column(qtbot: QtBot) -> None:
    view = make_view(qtbot, beam_run(beam_steps(20, ends=0.1)))
    model = view.table.rows_model
    scores = [row.score for row in model.rows]
    assert scores == sorted(scores, reverse=True)
    view.table.sortByColumn(TEXT, Qt.SortOrder.AscendingOrder)
    texts = [row.text.strip().casefold() for row in model.rows]
    assert texts == sorted(texts)
    view.table.sortByColumn(SCORE, Qt.SortOrder.AscendingOrder)
    assert [row.score for row in model.rows] == sorted(scores)


def test_table_and_tree_select_each_other(qtbot: QtBot) -> None:
    view = make_view(qtbot, beam_run(beam_steps(10), ranked=True))
    second = view.table.rows_model.rows[1].node
    QTest.mouseClick(view.table.viewport(), Qt.MouseButton.LeftButton, pos=row_middle(view, 1))
    assert view.canvas.selection.selected == second
    last = view.table.rows_model.rows[2].node
    view.canvas.selection.pick(last)
    assert view.table.current_node() == last
    view.canvas.selection.pick(1)
    assert view.table.current_node() is None


def row_middle(view: TreeView, row: int) -> QPoint:
    return view.table.visualRect(view.table.rows_model.index(row, 1)).center()


def test_a_selected_hypothesis_stays_selected_while_the_table_changes(qtbot: QtBot) -> None:
    search = FakeSearch(ends=0.3, seed=4)
    run = beam_run(list(search.steps(12)))
    view = make_view(qtbot, run)
    ended = next(row.node for row in view.table.rows_model.rows if row.state == "finished")
    view.canvas.selection.pick(ended)
    step = next(search.steps(1))
    run.apply([step])
    view.events_arrived(run, [step])
    still = ended in [row.node for row in view.table.rows_model.rows]
    assert view.table.current_node() == (ended if still else None)
    assert view.canvas.selection.selected == ended


def test_shared_prefix_length_of_hypotheses() -> None:
    assert (
        shared_prefix_length(["Once upon a time there was a fox who ran", "Once upon a time there was a fox who sat"])
        == 12
    )
    assert shared_prefix_length(["a fox", "a bear"]) == 0
    assert shared_prefix_length(["only one text of many words, all by itself"]) == 0


def test_table_is_beside_wide_tree_or_below_narrow_one(qtbot: QtBot) -> None:
    view = make_view(qtbot, beam_run(beam_steps(10)))
    assert view.table.x() > view.canvas.x()
    view.resize(640, 700)
    assert view.table.y() > view.canvas.y()
    tool(view, "tableButton").click()
    assert not view.table.isVisible()


# Selecting


def test_selected_node_report_explains_pruning(qtbot: QtBot) -> None:
    run = beam_run(beam_steps(6))
    view = make_view(qtbot, run)
    pruned = next(c for c in run.beams.steps[3].candidates if c.fate == "pruned")
    with qtbot.waitSignal(view.signals.reportSelected) as signal:
        view.canvas.selection.pick(pruned.node)
    report = signal.args[0]
    assert isinstance(report, NodeReport)
    assert report.verdict == "Pruned at step 4."
    assert "only the best 4 stay" in report.sentence
    assert report.so_far == run.beams.text(pruned.node)
    assert [row.strong for row in report.rows].count(True) == 1
    with qtbot.waitSignal(view.signals.reportSelected) as signal:
        view.canvas.selection.pick(None)
    assert signal.args == [None]


def test_score_formula_has_numbers_of_node() -> None:
    run = beam_run(beam_steps(3))
    node = run.beams.steps[2].candidates[0]
    parent = run.beams.candidate(node.parent)
    lines = beam_node_report(run.beams, node.node).formula.replace("−", "-").split("\n")
    assert lines[0] == f"{parent.score:.3f} + ({node.log_probability:.3f}) = {node.score:.3f}"
    assert lines[1] == f"{node.score:.3f} ÷ 3 = {node.normalized:.3f}"
    short = replace(run.beams.steps[2], length_penalty=-0.5)
    assert "÷ 3^−0.5 =" in score_formula(run.beams, node, short)


def test_selecting_node_of_shown_text_selects_token(qtbot: QtBot) -> None:
    run = beam_run(beam_steps(8))
    view = make_view(qtbot, run)
    with qtbot.waitSignal(view.signals.tokenActivated) as signal:
        view.canvas.selection.pick(view.canvas.canvas_state.style.best_path[3])
    assert signal.args == [2]
    run.select(5)
    view.selection_changed(run)
    assert view.canvas.selection.selected == view.canvas.canvas_state.style.best_path[6]


def test_path_line_shows_and_copies_text_of_node(qtbot: QtBot) -> None:
    run = beam_run(beam_steps(8))
    view = make_view(qtbot, run)
    node = run.beams.steps[5].candidates[1].node
    view.canvas.selection.pick(node)
    assert (view._path.before + view._path.last).endswith(run.beams.text(node))
    assert view._path.before.startswith("Once upon a time")
    view.node_picker.copy_text()
    assert QGuiApplication.clipboard().text() == run.beams.text(node)


def test_tree_is_navigated_by_keyboard(qtbot: QtBot) -> None:
    run = beam_run(beam_steps(8))
    view = make_view(qtbot, run)
    tip = press(view, K.Key_End)
    assert tip == run.beams.leader(8)
    parent = press(view, K.Key_Left)
    assert parent == run.beams.candidate(tip).parent
    assert press(view, K.Key_Right) == tip
    other = press(view, K.Key_Down)
    assert other != tip
    assert view.report is not None
    assert press(view, K.Key_Home) == 0
    assert view.report.heading == "Start of the tree"
    assert view.report.rows


# Tools


def test_typing_finds_tokens_and_enter_selects_next_match(qtbot: QtBot) -> None:
    run = beam_run(beam_steps(20))
    view = make_view(qtbot, run)
    view.canvas.setFocus()
    QTest.keyClicks(view.canvas, "f")
    field = view.findChild(QLineEdit, "findField")
    assert field is not None
    assert field.text() == "f"
    QTest.keyClicks(field, "ox")
    wanted = [c.node for step in run.beams.steps for c in step.candidates if "fox" in c.piece]
    assert sorted(view.finder.matches) == wanted
    seen = [view.canvas.selection.selected]
    for _ in wanted[1:]:
        QTest.keyClick(field, K.Key_Return)
        seen.append(view.canvas.selection.selected)
    assert sorted(seen) == wanted
    QTest.keyClick(field, K.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    assert view.canvas.selection.selected == seen[-2]
    QTest.keyClick(field, K.Key_Escape)
    assert not field.isVisible()
    assert not view.canvas.canvas_state.style.search_matches


def test_toolbar_buttons_change_canvas(qtbot: QtBot) -> None:
    view = make_view(qtbot, beam_run(beam_steps(30)))
    assert tool(view, "followButton").isChecked()
    tool(view, "fitButton").click()
    assert not tool(view, "followButton").isChecked()
    positions = view.canvas.canvas_state.positions
    for node in (0, view.canvas.canvas_state.style.best_path[-1]):
        assert view.canvas.rect().contains(positions.node_rect(node))
    tool(view, "fitButton").click()
    assert view.canvas.navigation.zoom >= READABLE_ZOOM
    assert view.canvas.rect().contains(positions.node_rect(view.canvas.canvas_state.style.best_path[-1]))
    tool(view, "fitButton").click()
    assert view.canvas.rect().contains(positions.node_rect(0))
    tool(view, "downButton").click()
    assert view.canvas.canvas_state.is_top_down
    tool(view, "findButton").click()
    assert view.findChild(QWidget, "findBar").isVisible()
    pruned = tool(view, "prunedButton")
    next(action for action in pruned.menu().actions() if action.data() == "hidden").trigger()
    assert pruned.text() == "Pruned: hidden ⌄"
    assert all(
        view.canvas.canvas_state.scene.model.nodes[n].state != "pruned"
        for n in view.canvas.canvas_state.scene.layout.rows
    )


def test_tree_of_stopped_search_can_be_navigated(qtbot: QtBot) -> None:
    run = beam_run(beam_steps(7))
    view = make_view(qtbot, run)
    run.apply([ranking(run)])
    view.events_arrived(run, [ranking(run)])
    assert view.table.rows_model.rows[0].node == view.canvas.canvas_state.style.best_path[-1]
    assert press(view, K.Key_End, K.Key_Return, K.Key_Left) is not None


# The card


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_card_shows_a_report(qtbot: QtBot, theme: str) -> None:
    run = beam_run(beam_steps(6, beams=8, groups=2))
    card = NodeCard()
    qtbot.addWidget(card)
    card.set_theme(theme_for(theme))
    node = run.beams.steps[4].candidates[-1]
    card.show_report(beam_node_report(run.beams, node.node))
    assert card.report is not None
    assert "of 8 continuations" in card._sentence.text()
    assert "<b>Pruned at step 5.</b>" in card._sentence.text()
    card.show_report(None)
    assert card.isHidden()


def test_tools_without_room_move_to_menu(qtbot: QtBot) -> None:
    tools = make_view(qtbot, beam_run(beam_steps(4))).header_widget()
    tools.resize(tools.sizeHint())
    tools.show()
    assert tools.more.isHidden()
    tools.resize(tools.sizeHint().width() - 20, tools.height())
    assert not tools.more.isHidden()
    assert tools.down.isHidden()
    tools.resize(tools.minimumSizeHint())
    tools.more.menu().aboutToShow.emit()
    fit = next(action for action in tools.more.menu().actions() if action.text() == tools.fit.toolTip())
    with qtbot.waitSignal(tools.fitWanted):
        fit.trigger()


def test_hidden_tree_sends_no_report(qtbot: QtBot) -> None:
    run = beam_run(beam_steps(8))
    view = make_view(qtbot, run)
    view.hide()
    reported = []
    view.signals.reportSelected.connect(reported.append)
    run.select(3)
    view.selection_changed(run)
    assert reported == []
    assert view.report is not None


@pytest.mark.parametrize("reason", sorted(limit for limit in LIMITS if limit))
def test_texts_cut_by_limit_have_their_own_shape_and_legend(qtbot: QtBot, reason: str) -> None:
    steps = beam_steps(6)
    last = steps[-1]
    ended = tuple(replace(c, fate="finished", ended=reason) if c.fate == "kept" else c for c in last.candidates)
    view = make_view(qtbot, beam_run([*steps[:-1], replace(last, candidates=ended)]))
    nodes = view.canvas.canvas_state.scene.model.nodes
    states = {nodes[c.node].state for c in ended if c.fate == "finished"}
    assert states == {"cut"}
    legend = dict(view.tree.content.legend)
    assert states <= legend.keys()
    cut, finished, kept = (
        view.canvas.canvas_state.painter.nodes.selection_path(TreeNode(1, None, "", state=state), QRectF(0, 0, 90, 30))
        for state in ("cut", "finished", "kept")
    )
    assert len({path.elementCount() for path in (cut, finished)} | {kept.elementCount()}) > 1
    assert cut not in (finished, kept)


@pytest.mark.parametrize("state", STATES)
def test_every_state_of_a_drawn_node_is_named(qtbot: QtBot, state: str) -> None:
    canvas = TreeCanvas()
    qtbot.addWidget(canvas)
    canvas.canvas_state.set_tree([TreeNode(0, None, "start", state="root"), TreeNode(1, 0, "word", state=state)])
    assert state in _STATE_LABELS
    assert state in PAINT_ORDER
    assert describe_node(canvas.canvas_state, 1)
