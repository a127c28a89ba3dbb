"""Speculation in the window on the bundled models: every drafter, stopping and running on, drafts of no use."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from decodescope import resources
from decodescope.app.views.speculation.view import SpeculationView
from decodescope.app.window.main_window import MainWindow
from decodescope.core.events import Prefilled
from tests.ui.windows import WAIT_MS, open_core_window, run

PROMPT = "Once upon a time, there was a little fox named Mia."
ONE, TWO = ("storyteller-draft",), ("storyteller-draft", "storyteller-draft-b")
WAYS = [
    ("assisted", ONE, {"num_assistant_tokens": 5}),
    ("assisted", TWO, {}),
    ("prompt_lookup", (), {}),
    ("early_exit", (), {"assistant_early_exit": 4}),
    ("token_tree", ONE, {"widths": "1 1 3 1 1"}),
    ("token_tree", TWO, {"widths": "2 2 1"}),
]


@pytest.fixture
def window(qtbot: QtBot, config_dir: Path) -> MainWindow:
    window = open_core_window(qtbot, config_dir)
    window.parts.centre.show_view("speculation")
    window.parts.setup.prompt.set_prompt(PROMPT)
    return window


def set_up(window: MainWindow, strategy: str, drafts: tuple[str, ...] = (), **params: object) -> None:
    assert window.parts.settings_controller.choose(strategy=strategy, drafts=drafts) == []
    window.parts.settings_controller.set_values({"max_new_tokens": 16, "schedule": "constant", **params})


def view_of(window: MainWindow) -> SpeculationView:
    found = window.findChild(SpeculationView)
    assert found is not None
    return found


def plain_text(qtbot: QtBot, window: MainWindow) -> str:
    window.parts.settings_controller.choose(strategy="greedy")
    window.parts.settings_controller.set_values({"max_new_tokens": 16})
    assert run(qtbot, window).kind == "completed"
    return window.session.run.text


def copy_of_the_draft(folder: Path) -> Path:
    shutil.copytree(resources.path("models/storyteller-draft"), folder)
    return folder


@pytest.mark.slow
def test_every_drafter_reproduces_greedy_text(qtbot: QtBot, window: MainWindow) -> None:
    expected = plain_text(qtbot, window)
    view = view_of(window)
    for strategy, drafts, params in WAYS:
        set_up(window, strategy, drafts, **params)
        outcome = run(qtbot, window)
        assert outcome.kind == "completed", (strategy, outcome.error)
        assert window.session.run.text == expected, (strategy, drafts)
        assert window.session.run.request.draft_names == drafts
        assert len(view.selection.rounds) > 0 or strategy == "prompt_lookup"
        assert len(view.page.legend.drafters) == (len(drafts) if len(drafts) > 1 else 0)
        origins = {token.origin for token in window.session.run.tokens}
        assert origins <= {"target", "draft", "correction", "bonus"}
        assert "draft" in origins or strategy == "prompt_lookup"


def test_compare_button_measures_both_speeds(qtbot: QtBot, window: MainWindow) -> None:
    set_up(window, "assisted", ONE)
    run(qtbot, window)
    shown, ended, cards = window.session.run, [], view_of(window).cards
    window.session.measured.connect(ended.append)
    cards._button.click()
    qtbot.waitUntil(lambda: len(ended) == 2, timeout=WAIT_MS)
    assert [end.outcome.kind for end in ended] == ["completed", "completed"]
    assert cards._measured_drafted is ended[1].finished
    figures = [cards._cells[1][column].text() for column in (1, 2)]
    assert all(float(figure.replace(",", "")) > 0 for figure in figures)
    assert cards._cells[4][2].text().startswith("×")
    assert window.session.run is shown


def test_stopped_speculation_can_run_again_with_reused_cache(qtbot: QtBot, window: MainWindow) -> None:
    """The stopped run leaves only its text in the cache, so that the next one continues from it and writes the same."""
    set_up(window, "token_tree", ONE, widths="1 2 2 1", max_new_tokens=300, min_new_tokens=300)
    window.parts.runs.run()
    stopped = window.session.run
    qtbot.waitUntil(lambda: len(stopped.tokens) > 8, timeout=WAIT_MS)
    with qtbot.waitSignal(window.session.finished, timeout=WAIT_MS) as signal:
        window.parts.runs.stop()
    assert signal.args[0].kind == "stopped"
    assert 8 < len(stopped.tokens) < 300
    before = stopped.text
    window.parts.setup.prompt.set_prompt(PROMPT + before)
    set_up(window, "token_tree", ONE, widths="1 2 2 1")
    assert run(qtbot, window).kind == "completed"
    on = window.session.run
    reused = [event.reused for event in on.events if isinstance(event, Prefilled)]
    assert reused[0] > 8
    text = on.text
    assert plain_text(qtbot, window) == text


def test_missing_draft_shows_error_and_can_be_replaced(qtbot: QtBot, window: MainWindow, tmp_path: Path) -> None:
    folder = copy_of_the_draft(tmp_path / "gone")
    set_up(window, "assisted", (str(folder),))
    shutil.rmtree(folder)
    outcome = run(qtbot, window)
    assert outcome.kind == "failed"
    assert "gone" in f"{outcome.error.title} {outcome.error.cause}"
    assert window.parts.centre.error_banner.isVisible()
    set_up(window, "assisted", ONE)
    assert run(qtbot, window).kind == "completed"
    assert not window.parts.centre.error_banner.isVisible()


def test_draft_with_other_tokenizer_reproduces_greedy_text(qtbot: QtBot, window: MainWindow, tmp_path: Path) -> None:
    folder = copy_of_the_draft(tmp_path / "other")
    path = folder / "tokenizer.json"
    words = json.loads(path.read_text(encoding="utf-8"))
    words["added_tokens"].append({**words["added_tokens"][-1], "id": 60_000, "content": "<other>"})
    path.write_text(json.dumps(words), encoding="utf-8")
    set_up(window, "assisted", ONE)
    assert run(qtbot, window).kind == "completed"
    expected = window.session.run.text
    assert window.parts.settings_controller.choose(drafts=[str(folder)]) == []
    assert window.parts.chosen.drafts.names == (str(folder),)
    assert run(qtbot, window).kind == "completed"
    assert window.session.run.text == expected
    assert (window.session.run.rounds.acceptance_rate() or 0) > 0.5


def test_assisted_strategy_without_draft_shows_problem(qtbot: QtBot, window: MainWindow) -> None:
    window.parts.settings_controller.choose(model="storyteller-draft-b", strategy="assisted")
    if window.parts.chosen.drafts.names:
        pytest.skip("a smaller model than the smallest is here")
    window.parts.runs.run()
    assert any("No draft model selected" in problem for problem in window.parts.requests.problems)
    assert window.session.run is None or window.session.run.request.strategy != "assisted"
