"""Branching under a grammar: forbidden tokens are disabled with the reason."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLineEdit, QMenu, QPushButton
from pytestqt.qtbot import QtBot

from decodescope.app.state.branching import forbidden_ids, forbidden_reason
from decodescope.app.state.run import Run
from decodescope.app.views.tokens.view import TokenView
from decodescope.app.views.tree.view import TreeView
from decodescope.app.window.main_window import MainWindow
from decodescope.core.events import Alternative, Stage, TokenChosen
from tests.ui.beams import beam_run, beam_steps
from tests.ui.scripted import make_run, token
from tests.ui.windows import find

GRAMMAR = {"choice": ["yes", "no"]}
SHARES = {" maybe": 0.4, "yes": 0.3, " so": 0.15, "no": 0.1}
ALLOWED = ("yes", "no")


def alternative(place: int, text: str) -> Alternative:
    raw, final = SHARES[text], SHARES[text] * 2.5 if text in ALLOWED else 0.0
    return Alternative(place, text, raw, final, math.log(raw), math.log(final) if final else -math.inf, place + 1)


def constrained_step(step: int = 0) -> TokenChosen:
    """A step at which the grammar left “yes” and “no”."""
    top = [(place, SHARES[text]) for place, text in enumerate(SHARES)]
    funnel = (
        Stage("raw", "model", 2048, 1.0, 1.0, tuple(top), kind="model"),
        Stage("grammar", "grammar", 2, 0.4, 0.4, tuple(item for item in top if item[0] in (1, 3)), kind="ban"),
    )
    others = tuple(alternative(place, text) for place, text in enumerate(SHARES))
    return token(step, "yes", 0.3, 2, id=1, alternatives=others, funnel=funnel, method="greedy")


def constrained_run() -> Run:
    run = make_run([constrained_step(), constrained_step(1)], finished=True)
    run.request = replace(run.request, strategy="greedy", options={"grammar": GRAMMAR})
    return run


@pytest.fixture
def window(qtbot: QtBot, shared: MainWindow) -> MainWindow:
    """With such a run, its first token selected, and the same grammar set."""
    shared.parts.centre.show_view("tokens")
    shared.parts.settings_controller.choose(strategy="greedy")
    apply_grammar(qtbot, shared, GRAMMAR)
    shared.session.show(constrained_run())
    shared.session.select_token(0)
    return shared


def apply_grammar(qtbot: QtBot, window: MainWindow, grammar: object) -> None:
    """Set the grammar and wait until the inspector has it."""
    window.parts.settings_controller.update_values({"grammar": grammar})
    qtbot.waitUntil(lambda: window.parts.inspector.grammar == grammar)


def button(window: MainWindow) -> QPushButton:
    return find(window, QPushButton, "branchButton")


def menu_of(window: MainWindow) -> QMenu:
    menu = find(window, TokenView, "tokenView").selected_node_menu()
    assert menu is not None
    return menu


def test_forbidden_ids_are_tokens_removed_by_grammar() -> None:
    run, step = constrained_run(), constrained_step()
    assert forbidden_ids(run, step, GRAMMAR) == {0, 2}
    assert forbidden_ids(run, step, None) == frozenset(), "nothing holds the branch"
    assert forbidden_ids(run, step, {"choice": ["maybe"]}) == frozenset(), "nobody knows before it is tried"
    run.request = replace(run.request, options={})
    assert forbidden_ids(run, step, GRAMMAR) == frozenset()
    raw, grammar = step.funnel
    moved = replace(grammar, top=())
    assert forbidden_ids(constrained_run(), replace(step, funnel=(raw, moved)), GRAMMAR) == {0, 2}, (
        "what has a share stays"
    )
    cut = Stage("top_k", "top-k 3", 3, 0.9, 0.9, raw.top[1:], kind="cut")
    assert forbidden_ids(constrained_run(), replace(step, funnel=(raw, cut, grammar)), GRAMMAR) == {2}, (
        "top-k took the first"
    )


def test_branch_button_defaults_to_likeliest_allowed_token(window: MainWindow) -> None:
    assert button(window).isEnabled()
    assert "“no”" in button(window).text()


def test_selected_forbidden_token_disables_button_with_reason(qtbot: QtBot, window: MainWindow) -> None:
    bars = window.parts.inspector.page.bars
    bars.rowPicked.emit(0)
    assert not button(window).isEnabled()
    assert button(window).toolTip() == "“maybe”: not allowed by the grammar"
    assert button(window).accessibleName() == "“maybe”: not allowed by the grammar"
    field = find(window, QLineEdit, "branchField")
    before = window.session.run
    qtbot.keyClick(field, Qt.Key.Key_Return)
    assert window.session.run is before
    qtbot.keyClicks(field, "no")
    assert button(window).isEnabled(), "words of one's own may be tried"
    field.clear()


def test_up_and_down_keys_include_forbidden_tokens(qtbot: QtBot, window: MainWindow) -> None:
    field = find(window, QLineEdit, "branchField")
    seen = set()
    for _ in range(3):
        qtbot.keyClick(field, Qt.Key.Key_Down)
        seen.add((button(window).accessibleName(), button(window).isEnabled()))
    assert {is_possible for _, is_possible in seen} == {True, False}
    assert len(seen) == 3


def test_token_menu_disables_forbidden_tokens_with_reason(window: MainWindow) -> None:
    menu = menu_of(window)
    titles = {action.text().split("\t")[0]: action.isEnabled() for action in menu.actions()}
    menu.close()
    assert titles["Continue with “no”"]
    assert titles["“maybe”: not allowed by the grammar"] is False
    assert not any("maybe" in title and title.startswith("Continue") for title in titles)


def test_without_grammar_all_alternatives_are_enabled(qtbot: QtBot, window: MainWindow) -> None:
    apply_grammar(qtbot, window, None)
    assert "maybe" in button(window).text()
    menu = menu_of(window)
    assert any("maybe" in action.text() and action.isEnabled() for action in menu.actions())
    menu.close()


def test_end_token_is_forbidden_under_grammar() -> None:
    """No text of the grammar continues after an end token, whatever the mask allows."""
    step, run = constrained_step(), constrained_run()
    end = replace(step.alternatives[3], text="<|end|>")
    step = replace(step, alternatives=(*step.alternatives[:3], end))
    assert forbidden_ids(run, step, GRAMMAR) == {0, 2, 3}
    assert forbidden_reason("<|end|>") == "⟨end⟩: the grammar allows nothing after it"
    marks = {"lark": "start: <|end|>"}
    run.request = replace(run.request, options={"grammar": marks})
    assert forbidden_ids(run, step, marks) == {0, 2}, "there it may be a part of the text"


def test_finished_beam_menu_is_disabled_under_grammar(qtbot: QtBot, window: MainWindow) -> None:
    window.parts.centre.show_view("tree")
    window.session.show(ended_beams())
    view = find(window, TreeView, "treeView")
    run = window.session.run
    assert run is not None
    assert run.beams is not None
    node = next(each.node for step in run.beams.steps for each in step.candidates if each.ended == "eos")
    assert first_action(view, node) == (False, "the grammar allows nothing after it")
    apply_grammar(qtbot, window, None)
    assert first_action(view, node)[0], "nothing holds the branch"


def first_action(view: TreeView, node: int) -> tuple[bool, str]:
    menu = view.menu.create_menu(node)
    assert menu is not None
    action = menu.actions()[0]
    found = action.isEnabled(), action.text().partition(": ")[2]
    menu.close()
    return found


def ended_beams() -> Run:
    """A beam search under the grammar with some finished hypotheses."""
    run = beam_run(beam_steps(8, ends=0.5))
    run.request = replace(run.request, options={"grammar": GRAMMAR})
    return run


def test_empty_branches_view_button_uses_allowed_token(window: MainWindow, monkeypatch: pytest.MonkeyPatch) -> None:
    requested = []
    monkeypatch.setattr(window.parts.runs, "start", requested.append)
    window.parts.empty_view_action.fill("branch")
    assert requested[0].beginning[-1] == 3
