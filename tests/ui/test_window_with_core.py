"""The window with the real core and the bundled models."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QImage
from pytestqt.qtbot import QtBot

from decodescope import core
from decodescope.app.state.worker_messages import Outcome
from decodescope.app.window.main_window import MainWindow
from tests.ui.windows import WAIT_MS, open_core_window


@pytest.fixture
def window(qtbot: QtBot, config_dir: Path) -> MainWindow:
    return open_core_window(qtbot, config_dir)


def run(qtbot: QtBot, window: MainWindow) -> Outcome:
    with qtbot.waitSignal(window.session.finished, timeout=WAIT_MS) as signal:
        qtbot.mouseClick(window.parts.toolbar.run_button, Qt.MouseButton.LeftButton)
    return signal.args[0]


def set_up(window: MainWindow, strategy: str, prompt: str, **params: object) -> None:
    window.parts.settings_controller.choose(strategy=strategy)
    window.parts.settings_controller.set_values(params)
    window.parts.setup.prompt.set_prompt(prompt)


def test_window_run_matches_core_run(qtbot: QtBot, window: MainWindow) -> None:
    set_up(window, "greedy", "Once upon a time", max_new_tokens=12)
    assert run(qtbot, window).kind == "completed"
    model = core.load("storyteller")
    from transformers import GenerationConfig

    request = core.Request("Once upon a time", GenerationConfig(max_new_tokens=12), strategy="greedy")
    assert window.session.run.text == core.run(model, request).texts[0]
    assert window.session.run.cursor == len(window.session.run.tokens) == 12


def test_a_locked_seed_repeats_the_text(qtbot: QtBot, window: MainWindow) -> None:
    set_up(window, "sampling", "Once upon a time", max_new_tokens=12, temperature=1.2)
    window.parts.toolbar.seed.lock_button.setChecked(True)
    texts = []
    for seed in (1, 1, 2):
        window.parts.toolbar.seed.spin.setValue(seed)
        run(qtbot, window)
        texts.append(window.session.run.text)
    assert texts[0] == texts[1] != texts[2]


def test_every_strategy_runs_or_is_disabled(qtbot: QtBot, window: MainWindow) -> None:
    """One window for all of them: what one leaves behind must not trip the next."""
    for strategy in core.strategies.registry:
        own = {"draft_head": "storyteller-eagle"} if strategy == "prediction_heads" else {}
        set_up(window, strategy, "Once upon a time, there was a little", max_new_tokens=8, **own)
        item = window.parts.toolbar.strategy.model().item(window.parts.toolbar.strategy.currentIndex())
        if not item.isEnabled() or (
            core.strategies.registry[strategy].takes_drafters and not window.parts.chosen.drafts.names
        ):
            continue
        outcome = run(qtbot, window)
        assert outcome.kind == "completed", (strategy, outcome.error)
        assert window.session.run.text


def test_too_long_prompt_shows_error(qtbot: QtBot, window: MainWindow) -> None:
    set_up(window, "greedy", "word " * 3000, max_new_tokens=4)
    outcome = run(qtbot, window)
    assert outcome.error.kind == "PromptTooLongError"
    assert window.parts.centre.error_banner.isVisible()
    set_up(window, "greedy", "Once", max_new_tokens=4)
    assert run(qtbot, window).kind == "completed"
    assert not window.parts.centre.error_banner.isVisible()


def test_model_can_be_replaced_by_another(qtbot: QtBot, window: MainWindow) -> None:
    set_up(window, "greedy", "translate English to French: The old owls love flowers.", max_new_tokens=8)
    with qtbot.waitSignal(window.session.modelReady, timeout=WAIT_MS) as ready:
        window.parts.settings_controller.choose(model="summarizer")
        outcome = run(qtbot, window)
    assert outcome.kind == "completed"
    assert ready.args[0].name == "summarizer"
    dola = window.parts.toolbar.strategy.findData("dola")
    assert not window.parts.toolbar.strategy.model().item(dola).isEnabled()


def test_stop_ends_run_between_tokens(qtbot: QtBot, window: MainWindow) -> None:
    set_up(window, "greedy", "Once upon a time", max_new_tokens=400, min_new_tokens=400)
    window.parts.runs.run()
    qtbot.waitUntil(lambda: len(window.session.run.tokens) > 2, timeout=WAIT_MS)
    with qtbot.waitSignal(window.session.finished, timeout=WAIT_MS) as signal:
        window.parts.runs.stop()
    assert signal.args[0].kind == "stopped"
    assert 2 < len(window.session.run.tokens) < 400


@pytest.mark.slow
def test_random_starts_and_stops_keep_memory_bounded(qtbot: QtBot, window: MainWindow) -> None:
    psutil = pytest.importorskip("psutil")
    set_up(window, "sampling", "Once upon a time", max_new_tokens=300)
    dice, outcomes, memory = random.Random(3), [], []
    window.session.finished.connect(outcomes.append)
    for number in range(40):
        window.parts.runs.run()
        wanted = dice.randrange(6)
        run_now = window.session.run
        qtbot.waitUntil(lambda r=run_now, n=wanted: len(r.tokens) >= n or r.outcome is not None, timeout=WAIT_MS)
        window.parts.runs.stop()
        qtbot.waitUntil(lambda number=number: len(outcomes) == number + 1, timeout=WAIT_MS)
        memory.append(psutil.Process().memory_info().rss)
    assert {outcome.kind for outcome in outcomes} <= {"stopped", "completed"}
    assert max(memory[30:]) < 1.1 * max(memory[5:15])


@pytest.mark.slow
def test_program_saves_screenshot(tmp_path: Path) -> None:
    picture = tmp_path / "out.png"
    words = ["--prompt", "Once upon a time", "--strategy", "greedy", "--param", "max_new_tokens=5", "--run",
             "--size", "960x640", "--screenshot", str(picture)]  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-m", "app", *words], env={**os.environ}, capture_output=True, text=True, timeout=240
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert QImage(str(picture)).size().toTuple() == (960, 640)
