"""The card “What if” in the window: settings and stage order are replayed on the selected step, run and reverted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from decodescope.app import build_window
from decodescope.app.session.queries.base import Answer
from decodescope.app.session.queries.step_replay import StepReplayQuery
from decodescope.app.state.setting_changes import move_stage, order_setting
from decodescope.app.views.inspector.what_if_card import WhatIfCard, WhatIfContent
from decodescope.app.widgets.bars import BarList
from decodescope.app.widgets.funnel import FunnelWidget
from decodescope.app.window.main_window import MainWindow
from tests.ui.windows import find, finish, run

WAIT_MS = 180_000
STEP = 6


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("what_if")


@pytest.fixture
def window(qtbot: QtBot, folder: Path) -> MainWindow:
    """A run by sampling with three stages, its seventh token selected."""
    window = build_window(folder)
    qtbot.addWidget(window)
    window.resize(1280, 900)
    with qtbot.waitSignal(window.session.modelReady, timeout=WAIT_MS):
        window.show()
    parts = window.parts
    parts.settings_controller.choose(model="storyteller", strategy="sampling")
    parts.settings_controller.set_values({"temperature": 1.3, "top_p": 0.9, "top_k": 40, "max_new_tokens": 12})
    parts.setup.prompt.set_prompt("Once upon a time, there was a little")
    parts.toolbar.seed.lock_button.setChecked(True)
    parts.toolbar.seed.spin.setValue(4)
    assert run(qtbot, window).kind == "completed"
    window.session.select_token(STEP)
    return window


def replay_with(qtbot: QtBot, window: MainWindow, **values: object) -> WhatIfCard:
    with qtbot.waitSignal(window.session.answered, timeout=WAIT_MS, check_params_cb=_is_step_replay):
        window.parts.settings_controller.update_values(values)
    card = find(window, WhatIfCard, "whatIf")
    assert card.isVisible()
    return card


def _is_step_replay(answer: Answer) -> bool:
    return isinstance(answer.query, StepReplayQuery)


def funnel(window: MainWindow) -> FunnelWidget:
    return find(window, FunnelWidget, "funnel")


def shown(window: MainWindow) -> WhatIfContent:
    supposed = window.parts.inspector._what_if
    assert supposed is not None
    return supposed


def test_changed_setting_is_replayed_on_selected_step(qtbot: QtBot, window: MainWindow) -> None:
    recorded = window.session.run.tokens[STEP]
    before = [stage.survivors for stage in funnel(window).stages]
    card = replay_with(qtbot, window, top_k=3)
    found = shown(window).replay
    assert found is not None
    assert found.is_kept
    assert found.before.funnel == recorded.funnel
    stages = funnel(window).stages
    assert [stage.survivors for stage in stages[:-1]] == [stage.survivors for stage in found.after.funnel]
    assert [stage.original_survivors for stage in stages] == before
    assert "40 → 3" in card._changes.text()
    assert card.findChildren(QPushButton)[0].isEnabled()
    with qtbot.waitSignal(window.parts.settings_controller.changed):
        card.back.click()
    qtbot.waitUntil(lambda: not card.isVisible(), timeout=WAIT_MS)
    assert window.parts.setup.parameters.values()["top_k"] == 40
    assert [stage.survivors for stage in funnel(window).stages] == before
    assert all(stage.original_survivors is None for stage in funnel(window).stages)


@pytest.mark.parametrize(
    ("strategy", "setting", "other", "said"),
    [("contrastive", "penalty_alpha", 0.0, "0.6 → 0"), ("dola", "dola_layers", "high", "low → high")],
)
def test_strategy_specific_setting_is_replayed(
    qtbot: QtBot, window: MainWindow, strategy: str, setting: str, other: object, said: str
) -> None:
    window.parts.settings_controller.choose(model="storyteller", strategy=strategy)
    window.parts.settings_controller.set_values({"max_new_tokens": 12})
    assert run(qtbot, window).kind == "completed"
    window.session.select_token(STEP)
    card = replay_with(qtbot, window, **{setting: other})
    found = shown(window).replay
    assert found is not None
    assert said in card._changes.text()
    assert found.before == replace(window.session.run.tokens[STEP], seconds=0.0)
    assert found.after.method == found.before.method
    assert found.after.alternatives != found.before.alternatives
    assert found.is_decided
    if found.after.layer_choice is not None:
        layers = next(bars for bars in window.findChildren(BarList) if bars.accessibleName() == "Layers")
        assert len(layers.rows) == len(found.after.layer_choice.divergences)
        assert layers.rows[0].label.endswith(f" {found.after.layer_choice.divergences[0][0]}")


def test_run_button_branches_with_replayed_choice(qtbot: QtBot, window: MainWindow) -> None:
    card = replay_with(qtbot, window, temperature=0.1, top_k=1)
    found = shown(window).replay
    assert found is not None
    assert found.after.rank == 1
    ids = [token.id for token in window.session.run.tokens]
    finish(qtbot, window, card.run.click)
    branch = window.session.run
    assert branch.request.beginning == (*ids[:STEP], found.after.id)
    assert branch.request.settings["temperature"] == 0.1
    assert not card.isVisible()


def test_invalid_stage_order_shows_reason(qtbot: QtBot, window: MainWindow) -> None:
    card = replay_with(qtbot, window, stages=["renormalize_logits", "top_k"])
    assert "must act last" in card._sentence.text()
    assert not card.run.isEnabled()


def test_stage_is_reordered_by_dragging(qtbot: QtBot, window: MainWindow) -> None:
    bars = funnel(window)
    names = bars.movable_stages
    assert names == ["temperature", "top_k", "top_p"]
    places = {stage.name: bars.stage_rect(number).center() for number, stage in enumerate(bars.stages)}
    with qtbot.waitSignal(window.session.answered, timeout=WAIT_MS, check_params_cb=_is_step_replay):
        QTest.mousePress(bars, Qt.MouseButton.LeftButton, pos=places["temperature"])
        for share in (0.3, 0.7, 1.0):
            way = places["top_p"] - places["temperature"]
            QTest.mouseMove(bars, places["temperature"] + QPoint(round(way.x() * share), round(way.y() * share)))
        QTest.mouseRelease(bars, Qt.MouseButton.LeftButton, pos=places["top_p"])
    assert window.parts.setup.parameters.values()["stages"] == ["top_k", "top_p", "temperature"]
    assert bars.movable_stages == ["top_k", "top_p", "temperature"]
    assert "order Top-k → Top-p → Temperature" in find(window, WhatIfCard, "whatIf")._changes.text()
    default = find(window, QPushButton, "defaultOrder")
    assert default.isVisible()
    default.click()
    assert "stages" not in window.parts.setup.parameters.values()
    qtbot.waitUntil(lambda: not default.isVisible(), timeout=WAIT_MS)


def test_stage_is_reordered_by_keys(qtbot: QtBot, window: MainWindow) -> None:
    bars = funnel(window)
    bars.setFocus()
    with qtbot.waitSignal(window.session.answered, timeout=WAIT_MS, check_params_cb=_is_step_replay):
        QTest.keyClick(bars, Qt.Key.Key_Down)
        QTest.keyClick(bars, Qt.Key.Key_Down)
        QTest.keyClick(bars, Qt.Key.Key_Up, Qt.KeyboardModifier.AltModifier)
    assert bars.movable_stages == ["temperature", "top_p", "top_k"]
    QTest.keyClick(bars, Qt.Key.Key_Down, Qt.KeyboardModifier.AltModifier)
    assert "stages" not in window.parts.setup.parameters.values()
    qtbot.waitUntil(lambda: window.parts.inspector._what_if is None, timeout=WAIT_MS)


def test_default_stage_order_is_not_stored() -> None:
    assert order_setting(["temperature", "top_p"]) is None
    assert order_setting(["top_p", "temperature"]) == ["top_p", "temperature"]
    assert move_stage(["a", "b", "c"], "a", 2) == ["b", "c", "a"]
