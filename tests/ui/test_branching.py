"""Branching at a token: in the inspector, by the token's menu, and with typed text."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QContextMenuEvent
from PySide6.QtWidgets import QApplication, QLineEdit, QMenu, QPushButton
from pytestqt.qtbot import QtBot

from decodescope import core
from decodescope.app import build_window
from decodescope.app.state.branching import TokenReplacement, branch_unsupported_reason, make_branch
from decodescope.app.state.run import Run
from decodescope.app.state.worker_messages import LoadRequest, RunRequest
from decodescope.app.views import VIEWS
from decodescope.app.views.branches.view import BranchesView
from decodescope.app.views.tokens.colouring import BRANCH_HINT
from decodescope.app.views.tokens.view import TokenView
from decodescope.app.views.tree.view import TreeView
from decodescope.app.window.main_window import MainWindow
from tests.ui.fake_engine import STORY
from tests.ui.layout import faults, settle
from tests.ui.scripted import make_run, token
from tests.ui.windows import WAIT_MS, find, finish, open_window, run


@pytest.fixture
def window(qtbot: QtBot, shared: MainWindow) -> MainWindow:
    """A window with a finished run and its fifth token selected."""
    shared.parts.appearance.set_font_scale(1.0)
    shared.resize(1280, 800)
    shared.parts.centre.show_view("tokens")
    shared.parts.settings_controller.choose(strategy="greedy")
    shared.parts.setup.prompt.set_prompt("Once upon a time")
    shared.parts.chat.new_chat()
    shared.parts.messages.dismiss()
    run(qtbot, shared)
    shared.session.select_token(4)
    return shared


def press(qtbot: QtBot, window: MainWindow) -> Run:
    """Click the branch button in the inspector and wait for the end of the branch."""
    with qtbot.waitSignal(window.session.finished, timeout=WAIT_MS):
        qtbot.mouseClick(find(window, QPushButton, "branchButton"), Qt.MouseButton.LeftButton)
    assert window.session.run is not None
    return window.session.run


def test_branch_button_defaults_to_likeliest_other_token(qtbot: QtBot, window: MainWindow) -> None:
    parent = window.session.run
    assert parent is not None
    other = next(item for item in parent.tokens[4].alternatives if item.id != parent.tokens[4].id)
    assert core.words.quote(other.text) in find(window, QPushButton, "branchButton").text()
    branch = press(qtbot, window)
    assert branch.request.beginning == (400, 401, 402, 403, other.id)
    assert (branch.request.parent, branch.request.shared_tokens) == (parent.id, 4)
    assert branch.request.prompt == parent.request.prompt
    assert branch.text.startswith("".join(STORY[:4]))


def test_click_on_alternative_selects_it_for_branch(qtbot: QtBot, window: MainWindow) -> None:
    parent = window.session.run
    assert parent is not None
    bars = window.parts.inspector.page.bars
    wanted = parent.tokens[4].alternatives[3]
    rows = bars._layout
    place = QPoint(20, rows.head_height + 3 * rows.row_height + rows.row_height // 2)
    qtbot.mouseClick(bars, Qt.MouseButton.LeftButton, pos=place)
    assert core.words.quote(wanted.text) in find(window, QPushButton, "branchButton").text()
    assert press(qtbot, window).request.beginning[-1] == wanted.id


def test_typed_branch_text_gets_leading_space_of_replaced_token(qtbot: QtBot, window: MainWindow) -> None:
    field = find(window, QLineEdit, "branchField")
    qtbot.keyClicks(field, "slept")
    assert "“slept”" in find(window, QPushButton, "branchButton").text()
    with qtbot.waitSignal(window.session.finished, timeout=WAIT_MS):
        qtbot.keyClick(field, Qt.Key.Key_Return)
    assert window.session.run is not None
    assert window.session.run.request.beginning == (400, 401, 402, 403, " slept")
    assert window.session.run.text.startswith("".join(STORY[:4]) + " slept")


def test_up_and_down_keys_select_alternatives(qtbot: QtBot, window: MainWindow) -> None:
    field, button = find(window, QLineEdit, "branchField"), find(window, QPushButton, "branchButton")
    seen = {button.text()}
    for _ in range(3):
        qtbot.keyClick(field, Qt.Key.Key_Down)
        seen.add(button.text())
    assert len(seen) == 4
    qtbot.keyClick(field, Qt.Key.Key_Up)
    assert button.text() in seen


def test_a_tokens_menu_offers_its_alternatives(qtbot: QtBot, window: MainWindow) -> None:
    parent, view = window.session.run, find(window, TokenView, "tokenView")
    assert parent is not None
    place = view.area.viewport().mapToGlobal(view.token_rect(2).center())
    event = QContextMenuEvent(QContextMenuEvent.Reason.Mouse, view.mapFromGlobal(place), place)
    QApplication.sendEvent(view, event)
    menu = next(menu for menu in view.findChildren(QMenu) if menu.isVisible())
    titles = {action.text().split("\t")[0]: action for action in menu.actions()}
    other = next(item for item in parent.tokens[2].alternatives if item.id != parent.tokens[2].id)
    with qtbot.waitSignal(window.session.finished, timeout=WAIT_MS):
        titles[f"Continue with {core.words.quote(other.text)}"].trigger()
    menu.close()
    assert window.session.run is not None
    assert window.session.run.request.beginning == (400, 401, other.id)


def test_token_menu_focuses_branch_text_field(window: MainWindow) -> None:
    view = find(window, TokenView, "tokenView")
    menu = view.key_handler.create_menu(view, 7)
    next(action for action in menu.actions() if "other words" in action.text()).trigger()
    menu.close()
    assert window.session.run is not None
    assert window.session.run.selected == 7
    assert find(window, QLineEdit, "branchField").hasFocus()


def test_token_view_marks_start_of_branch(qtbot: QtBot, window: MainWindow) -> None:
    view = find(window, TokenView, "tokenView")
    assert BRANCH_HINT not in view.colouring_controller.legend_hint()
    press(qtbot, window)
    assert BRANCH_HINT in view.colouring_controller.legend_hint()
    column = view.area.page.shown_column()
    assert column is not None
    assert column.text.prompt_pieces - column.text.input_pieces == 5
    before, look = view.grab().toImage(), view.area.paint_options
    look.branch_position = None
    view.area.viewport().update()
    assert view.grab().toImage() != before, "the line is drawn"


def test_branch_of_branch_counts_shared_tokens_of_whole_answer(qtbot: QtBot, window: MainWindow) -> None:
    first = press(qtbot, window)
    window.session.select_token(1)
    second = press(qtbot, window)
    assert second.request.parent == first.id
    assert second.request.shared_tokens == 6
    assert second.request.beginning[:6] == (*first.request.beginning, 400)


def test_branch_tokens_are_numbered_from_parent_run(qtbot: QtBot, window: MainWindow) -> None:
    """The fifth token is replaced, so the first one that the branch writes is the sixth."""
    branch = press(qtbot, window)
    window.session.select_token(0)
    QApplication.processEvents()
    assert branch.number_of(0) == 6
    assert "TOKEN 6" in window.parts.inspector.page.heading.text()
    length = len(branch.tokens)
    assert window.parts.timeline.count_label.text() == f"{5 + length} / {5 + length}"
    assert window.parts.timeline._bar_tooltip(0).startswith("6  ")
    assert [row[0] for row in window.parts.timeline.export_table()[1:]] == list(range(6, 6 + length))
    assert [row[0] for row in find(window, TokenView, "tokenView").export_table()[1:]] == list(range(6, 6 + length))
    assert f"Token 6 of {5 + length}" in find(window, TokenView, "tokenView").accessibleDescription()


def test_branch_uses_current_settings_and_model_of_parent(qtbot: QtBot, window: MainWindow) -> None:
    window.parts.settings_controller.choose(strategy="sampling")
    branch = press(qtbot, window)
    assert branch.request.strategy == "sampling"
    parent = make_run([token(0, " fox"), token(1, " named")])
    settings = RunRequest("other", load=LoadRequest("another"))
    made = make_branch(parent, TokenReplacement(1, 9), settings)
    assert (made.prompt, made.model) == (parent.request.prompt, parent.request.model or "another")


def test_branch_unsupported_reason_without_tokens(qtbot: QtBot) -> None:
    assert branch_unsupported_reason(None)
    assert branch_unsupported_reason(make_run([]))
    assert branch_unsupported_reason(make_run([token(0, " fox")])) == ""


def test_greedy_branch_with_same_token_reproduces_text(qtbot: QtBot, config_dir: Path) -> None:
    window = build_window(config_dir)
    qtbot.addWidget(window)
    with qtbot.waitSignal(window.session.modelReady, timeout=6 * WAIT_MS):
        window.show()
    window.parts.settings_controller.choose(strategy="greedy")
    window.parts.settings_controller.set_values({"max_new_tokens": 16})
    window.parts.setup.prompt.set_prompt("Once upon a time, there was")
    run(qtbot, window)
    parent = window.session.run
    assert parent is not None
    window.parts.settings_controller.set_values({"max_new_tokens": 9})
    with qtbot.waitSignal(window.session.finished, timeout=WAIT_MS):
        window.parts.inspector.signals.branchRequested.emit(TokenReplacement(6, parent.tokens[6].id))
    branch = window.session.run
    assert branch is not None
    assert branch.text == parent.text
    assert [one.id for one in branch.tokens] == [one.id for one in parent.tokens[7:]]
    assert branch.prefilled is not None
    assert branch.prefilled.reused == branch.prefilled.tokens - 1, "nothing but the last token is read again"


def tab_of(window: MainWindow, name: str) -> bool:
    """Return whether there is a tab of that view."""
    tabs = window.parts.centre.columns[0].tabs
    return tabs.isTabVisible([spec.name for spec in VIEWS].index(name))


def test_branches_tab_appears_with_first_branch(qtbot: QtBot, window: MainWindow) -> None:
    assert not tab_of(window, "branches")
    assert not window.parts.centre.show_view("branches")
    parent = window.session.run
    branch = press(qtbot, window)
    assert tab_of(window, "branches")
    assert window.parts.centre.show_view("branches")
    view = find(window, BranchesView, "branchesView")
    assert [member.id for member in window.parts.run_tree.members] == [parent.id, branch.id]
    assert view.canvas.selection.selected == 1
    assert view.report is not None


def test_click_on_run_in_branches_view_shows_it(qtbot: QtBot, window: MainWindow) -> None:
    parent = window.session.run
    branch = press(qtbot, window)
    window.parts.centre.show_view("branches")
    settle(window)
    view = find(window, BranchesView, "branchesView")
    qtbot.mouseClick(
        view.canvas, Qt.MouseButton.LeftButton, pos=view.canvas.canvas_state.positions.node_rect(0).center()
    )
    assert window.session.run is parent
    assert view.canvas.selection.selected == 0
    qtbot.mouseClick(
        view.canvas, Qt.MouseButton.LeftButton, pos=view.canvas.canvas_state.positions.node_rect(1).center()
    )
    assert window.session.run is branch
    assert len(view.export_table()) == 3


def test_unrelated_run_hides_branches_tab(qtbot: QtBot, window: MainWindow) -> None:
    branch = press(qtbot, window)
    run(qtbot, window)
    assert not tab_of(window, "branches")
    assert window.session.show(branch)
    assert tab_of(window, "branches")


def test_branches_view_layout_fits_at_any_size_and_in_split(qtbot: QtBot, config_dir: Path) -> None:
    window = open_window(qtbot, config_dir)
    run(qtbot, window)
    press(qtbot, window)
    window.parts.centre.show_view("branches")
    for size, scale in (((1280, 800), 1.0), ((900, 600), 1.5)):
        window.parts.appearance.set_font_scale(scale)
        window.resize(*size)
        settle(window)
        assert faults(window.parts.centre) == []
    window.parts.centre.set_split(True)
    assert window.parts.centre.columns[1].show_view("branches")


def test_edited_prompt_marks_text_that_is_not_reused(qtbot: QtBot, window: MainWindow) -> None:
    prompt = window.parts.setup.prompt
    prompt.set_prompt("Once upon a time")
    run(qtbot, window)
    assert not prompt.reuse_label.isVisible()
    prompt.set_prompt("Once upon a hill")
    qtbot.waitUntil(prompt.reuse_label.isVisible, timeout=WAIT_MS)
    assert prompt.reuse_label.text() == "3 tokens reused from the cache"
    (mark,) = prompt.editor.extraSelections()
    assert mark.cursor.selectedText() == " hill"
    prompt.set_prompt("Once upon a time")
    qtbot.waitUntil(lambda: not prompt.reuse_label.isVisible(), timeout=WAIT_MS)
    assert prompt.editor.extraSelections() == []


def test_branch_continues_from_pruned_beam_node(qtbot: QtBot, config_dir: Path) -> None:
    window = build_window(config_dir)
    qtbot.addWidget(window)
    with qtbot.waitSignal(window.session.modelReady, timeout=6 * WAIT_MS):
        window.show()
    window.parts.settings_controller.choose(strategy="beam_search")
    window.parts.settings_controller.set_values({"max_new_tokens": 6, "num_beams": 3})
    window.parts.setup.prompt.set_prompt("Once upon a time, there was")
    run(qtbot, window)
    window.parts.centre.show_view("tree")
    parent, view = window.session.run, find(window, TreeView, "treeView")
    assert parent is not None
    assert parent.beams is not None
    pruned = next(c for step in parent.beams.steps[2:] for c in step.candidates if c.fate == "pruned")
    menu = view.menu.create_menu(pruned.node)
    assert menu is not None
    assert view.menu.create_menu(0) is None
    with qtbot.waitSignal(window.session.finished, timeout=WAIT_MS):
        menu.actions()[0].trigger()
    menu.close()
    branch = window.session.run
    assert branch is not None
    assert branch.request.beginning == tuple(c.id for c in parent.beams.path(pruned.node))
    assert branch.request.shared_tokens < len(branch.request.beginning)
    assert branch.text.startswith(parent.beams.text(pruned.node))


def test_branch_of_chat_answer_replaces_answer(qtbot: QtBot, window: MainWindow) -> None:
    window.parts.setup.prompt.set_prompt("Hello", is_chat=True)
    run(qtbot, window)
    window.session.select_token(3)
    branch = press(qtbot, window)
    turns = window.parts.chat.conversation.turns
    assert [turn.role for turn in turns] == ["user", "assistant"]
    assert turns[-1].content == branch.text
    finish(qtbot, window, window.parts.scoring.score_run)
    assert turns[-1].content == branch.text, "a score says nothing in the chat"


def test_branch_opened_from_history_shows_parent_run(qtbot: QtBot, config_dir: Path) -> None:
    first = open_window(qtbot, config_dir)
    run(qtbot, first)
    parent = first.session.run
    assert parent is not None
    with qtbot.waitSignal(first.history.runSaved, timeout=WAIT_MS):
        branch = press(qtbot, first)
    first.close()
    second = open_window(qtbot, config_dir)
    assert second.history.show(branch.id)
    assert [member.id for member in second.parts.run_tree.members] == [parent.id, branch.id]
    second.parts.run_tree.show(parent.id)
    assert second.session.run is not None
    assert second.session.run.id == parent.id
    assert second.session.run.text == parent.text
    assert tab_of(second, "branches")
