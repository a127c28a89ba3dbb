"""The Preference lab window: opening, collecting rankings, training progress and results."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from decodescope.app.features.labs import session as lab_session
from decodescope.app.features.labs.controller.preference import PreferenceController
from decodescope.app.features.labs.state import CompletionsToRank, LabRequest, RewardedTokens
from decodescope.app.features.labs.view.preference.view import PreferenceView
from decodescope.app.views.shared.glossary_tooltip import LazyTooltip
from decodescope.app.window.main_window import MainWindow
from decodescope.core.labs.preference import (
    BestOf,
    PpoChecked,
    PpoStep,
    RewardChecked,
    RewardStep,
    SftStep,
    TextComparison,
    TrainingSaved,
    TrainingStarted,
    TrainingStopped,
)
from decodescope.core.labs.preference.reward_model import (
    train_reward,  # imports torch, which takes longer than a test waits
)
from tests.ui.fake_engine import ScriptedEngine
from tests.ui.layout import faults, settle
from tests.ui.windows import WAIT_MS, open_window

TEXTS = ("They played together.", "Fern went home.", "Max slept.", "So it was.")
REWARD = [
    TrainingStarted("reward", "storyteller", 0, 4, 112, 28), RewardStep(1, 4, 0.7, 9), RewardStep(2, 4, 0.5, 9),
    RewardChecked(2, 4, 0.4, 0.9, 202), RewardStep(3, 4, 0.3, 9), RewardStep(4, 4, 0.2, 9),
    RewardChecked(4, 4, 0.2, 0.935, 202), TrainingSaved("reward", "there", 74.0),
]  # fmt: skip
PPO = [
    *(PpoStep(n, 3, 2.0 + n, 0.6 * n - 0.7, 0.5 * n, 0.2, 0.0, 0.1, 0.0, 50.0, "They played.") for n in (1, 2, 3)),
    PpoChecked(3, 2.71, 7.21, 2.39, 2.42, 48),
    TextComparison("Once", "Fern went home.", "Fern and Max played home.", 1.0, 5.0),
    TrainingSaved("ppo", "there", 300.0),
]  # fmt: skip


@pytest.fixture
def room(qtbot: QtBot, config_dir: Path) -> Iterator[tuple[MainWindow, PreferenceView]]:
    """The window, and the lab opened by its menu's line."""
    window = open_window(qtbot, config_dir, ScriptedEngine())
    window.parts.menu_bar.commands["open_preference_lab"].trigger()
    view = window.findChild(PreferenceView)
    assert view.objectName() == "preferenceView"
    yield window, view
    window.parts.services.labs.stop_all()


def test_step_buttons_mark_finished_steps(room: tuple[MainWindow, PreferenceView]) -> None:
    window, view = room
    work = window.parts.services.labs.preference()
    assert view.strip.buttons["reward"].accessibleName().endswith("not done yet")
    assert not view.ppo.start.isEnabled(), "there is no reward model yet"
    folder = work.folder_of("reward")
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    view.show_state(work.finished_tasks, None)
    assert view.strip.buttons["reward"].text().startswith("●")
    assert view.ppo.start.isEnabled()


def test_manual_ranking_is_saved_and_exported(room: tuple[MainWindow, PreferenceView], tmp_path: Path) -> None:
    window, view = room
    view.show_page("draw")
    page = view.collect
    page.show_events([CompletionsToRank("Once. ", TEXTS)])
    page.order.setCurrentRow(2)
    page.order.move_current(-2)
    page.order.setCurrentRow(3)
    page.order.toggle_tie()
    assert page.order.groups == [[TEXTS[2]], [TEXTS[0]], [TEXTS[1], TEXTS[3]]]
    page.save_button.click()
    assert page.saved_count.text() == "Saved rankings: 1 · pairs: 5"
    window.parts.labs.open_preference()
    (controller,) = window.findChildren(PreferenceController)
    controller._export(str(tmp_path / "pairs.jsonl"))
    store = window.history.store
    assert store is not None
    (stored,) = store.rankings.all(dict)
    assert stored == {
        "prompt": "Once. ", "completions": [TEXTS[2], TEXTS[0], TEXTS[1], TEXTS[3]], "ranks": [1, 2, 3, 3],
    }  # fmt: skip
    rows = [json.loads(line) for line in (tmp_path / "pairs.jsonl").read_text().splitlines()]
    assert rows[0] == {"prompt": "Once. ", "chosen": TEXTS[2], "rejected": TEXTS[0]}
    assert len(rows) == 5


def test_lab_controls_have_glossary_tooltips(qtbot: QtBot, room: tuple[MainWindow, PreferenceView]) -> None:
    _, view = room
    buttons = view.strip.buttons
    for widget, word in (
        (buttons["draw"], "pair"), (buttons["reward"], "reward"), (buttons["ppo"], "PPO"),
        (view.ppo.beta, "KL"), (view.reward.best, "best of n"),
    ):  # fmt: skip
        tip = next(part for part in widget.children() if isinstance(part, LazyTooltip))
        assert word.lower() in tip.text().lower()


def test_rankings_of_earlier_version_are_imported_and_kept(qtbot: QtBot, config_dir: Path) -> None:
    window = open_window(qtbot, config_dir, ScriptedEngine())
    file = window.parts.services.labs.preference().folder / "rankings.jsonl"
    file.parent.mkdir(parents=True)
    file.write_text('{"prompt": "", "completions": ["a", "b"], "ranks": [1, 2]}\n')
    window.parts.labs.open_preference()
    view, store = window.findChild(PreferenceView), window.history.store
    assert store is not None
    assert view.collect.saved_count.text() == "Saved rankings: 1 · pairs: 1"
    file.unlink()
    store.forget_all()
    window.parts.labs.open_preference()
    assert len(store.rankings.all(dict)) == 1
    view.collect.show_events([CompletionsToRank("Once. ", TEXTS)])
    view.collect.save_button.click()
    assert view.collect.saved_count.text() == "Saved rankings: 2 · pairs: 7"
    assert len(file.read_text().splitlines()) == 2  # what a training reads
    window.parts.services.labs.stop_all()


def test_pairs_are_ranked_by_keys(qtbot: QtBot, room: tuple[MainWindow, PreferenceView]) -> None:
    _, view = room
    view.show_page("draw")
    page = view.collect
    page.pairwise.setChecked(True)
    page.show_events([CompletionsToRank("Once. ", TEXTS[:3])])
    with qtbot.waitActive(view.window()):
        view.window().activateWindow()
    page.duel.buttons["A"].setFocus()
    for key in (Qt.Key.Key_A, Qt.Key.Key_Equal, Qt.Key.Key_B):
        qtbot.keyClick(page.duel.buttons["A"], key)
    assert page.saved_count.text() == "Saved rankings: 3 · pairs: 2", "one of three was a tie"


def test_training_events_are_plotted_and_described(room: tuple[MainWindow, PreferenceView]) -> None:
    _, view = room
    view.show_events("reward", REWARD)
    loss, right, _ = view.reward.plots
    assert loss.figure.lines[0].points == ((1.0, 0.7), (2.0, 0.5), (3.0, 0.3), (4.0, 0.2))
    assert right.figure.lines[0].points == ((2.0, 0.9), (4.0, 0.935))
    assert view.reward.status.text() == ("It ranks 94 % of 202 held-out pairs correctly. Computation time: 74 s.")
    view.show_events("ppo", PPO)
    assert view.ppo.plots[0].figure.lowest < 0, "a reward below the start is seen"
    assert "increased by 1.88 standard deviations, with a KL of 2.4 nats" in view.ppo.status.text()
    view.show_events("best_of", [BestOf(1, 0.5, 0.0, 0.0, 64), BestOf(4, 1.5, 0.64, 0.6, 64)])
    assert "best of 4: +1.50" in view.reward.mean_rewards.text()
    view.show_events("tokens", [RewardedTokens((("They", 0.0), (" played", 2.0)))])
    assert view.reward.scored.accessibleName() == "They played reward +2.00"
    view.show_events("sft", [SftStep(1, 9, 0.5, 10), TrainingStopped("sft", 1, 9)])
    assert view.sft.status.text() == "Stopped after step 1 of 9. Press Start to continue."


def test_start_button_becomes_stop_and_error_is_shown(
    qtbot: QtBot, room: tuple[MainWindow, PreferenceView], monkeypatch: pytest.MonkeyPatch
) -> None:
    window, view = room

    def slow(wish: LabRequest, errand: object, *_rest: object) -> Iterator[object]:
        yield REWARD[0]
        errand.stop_event.wait(WAIT_MS / 1000)  # type: ignore[attr-defined]
        yield TrainingStopped("reward", 1, 4)

    work = window.parts.services.labs.preference()
    assert callable(train_reward)
    monkeypatch.setitem(lab_session._TASKS, "reward", slow)
    with qtbot.waitSignal(work.arrived, timeout=WAIT_MS):
        view.reward.start.click()
    assert view.reward.start.text() == "Stop"
    assert not view.sft.start.isEnabled()
    with qtbot.waitSignal(work.ended, timeout=WAIT_MS):
        view.reward.start.click()
    assert "Stopped after step 1 of 4" in view.reward.status.text()
    assert view.reward.start.text() == "Start"
    monkeypatch.undo()
    (work.folder / "rankings.jsonl").parent.mkdir(parents=True, exist_ok=True)
    (work.folder / "rankings.jsonl").write_text("{\n")
    view.reward.data.setCurrentIndex(1)
    with qtbot.waitSignal(work.ended, timeout=WAIT_MS):
        view.reward.start.click()
    assert "Line 1 of rankings.jsonl" in view.reward.status.text()


@pytest.mark.parametrize("page", ["draw", "ppo"])
def test_lab_is_not_clipped(room: tuple[MainWindow, PreferenceView], page: str) -> None:
    _, view = room
    view.show_events("reward", REWARD)
    view.show_events("ppo", PPO)
    view.show_events("draw", [CompletionsToRank("Once. ", TEXTS)])
    view.show_page(page)
    settle(view.window())
    assert faults(view.window()) == []


def test_pairwise_mode_keeps_window_size(room: tuple[MainWindow, PreferenceView]) -> None:
    """Long endings are scrolled."""
    _, view = room
    view.show_page("draw")
    settle(view.window())
    height = view.window().height()
    view.collect.show_events([CompletionsToRank("Once. ", tuple(text * 60 for text in TEXTS))])
    view.collect.pairwise.setChecked(True)
    settle(view.window())
    assert view.window().height() == height
    assert view.collect.duel.remaining_label.text() == "Pairs left: 6"
    assert faults(view.window()) == []


def test_missing_reward_model_shows_hint(room: tuple[MainWindow, PreferenceView]) -> None:
    _, view = room
    assert view.ppo.status.text() == view.reward.mean_rewards.text() == "Train a reward model first."
    view.show_state({"reward"}, None)
    assert (view.ppo.status.text(), view.reward.mean_rewards.text()) == ("", "")


def test_best_of_n_result_shows_heading(room: tuple[MainWindow, PreferenceView]) -> None:
    _, view = room
    view.show_page("reward")
    assert not view.reward.headings[2].isVisible()
    view.reward.show_answer([BestOf(n, 0.5 * n, 0.2, 0.2, 64) for n in (1, 2)])
    assert view.reward.headings[2].isVisible()
