"""Captured runs in the window: their settings, prompt and random numbers are taken over, or it is said why not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from pytestqt.qtbot import QtBot

from decodescope import core
from decodescope.app import build_window
from decodescope.app.state.recorded_run import load_run
from decodescope.app.state.request_json import request_from_json, request_to_json
from decodescope.core.common.hf_generation import KNOWN_FIELDS, METADATA_FIELDS, WITHOUT_EFFECT
from tests.ui.windows import open_window

WAIT_MS = 60_000


def _captured(path: Path, calls: int = 1, **settings: Any) -> core.CapturedRun:
    """Capture calls of the bundled model after one seed, and save the last."""
    model = core.load("storyteller")
    assert isinstance(model, core.LoadedModel)
    torch.manual_seed(7)
    inputs = model.tokenizer("Once upon a time", return_tensors="pt")
    with core.capture(model) as captured:
        for _ in range(calls):
            model.model.generate(**inputs, max_new_tokens=6, **settings)
    captured.run.save(path)
    return captured.run


def test_settings_of_a_captured_run_are_taken_over(qtbot: QtBot, config_dir: Path, tmp_path: Path) -> None:
    """No flag of a call is an unknown setting; the prompt is its text without special tokens, sent as its ids."""
    path = tmp_path / "run.decodescope"
    live = _captured(path, 2, do_sample=True, temperature=0.7, num_return_sequences=1)
    window = open_window(qtbot, config_dir)
    parts, told = window.parts, list[str]()
    parts.settings_controller.notice.connect(told.append)
    request = load_run(core.trace.read(path)).request
    assert request_from_json(request_to_json(request)) == request
    parts.settings_controller.apply_request(request)
    assert not [text for text in told if "setting" in text]
    assert parts.setup.prompt.editor.toPlainText() == "Once upon a time"
    seed = parts.toolbar.seed
    assert seed.is_locked
    assert parts.setup.parameters.values()["temperature"] == 0.7
    built = parts.runs._requests.request()
    assert list(built.prompt) == live.request.prompt
    assert built.generator_state == live.request.generator_state
    parts.setup.prompt.editor.setPlainText("Once upon a time there")
    seed.spin.setValue(5)
    built = parts.runs._requests.request()
    assert (built.prompt, built.seed, built.generator_state) == ("Once upon a time there", 5, "")


def test_only_unknown_names_are_unknown_settings() -> None:
    strategy = core.strategies.registry["sampling"]
    idle = (
        dict.fromkeys(WITHOUT_EFFECT, 3)
        | dict.fromkeys(KNOWN_FIELDS - {"do_sample"})
        | dict.fromkeys(METADATA_FIELDS, "4")
    )
    settings: dict[str, Any] = {**idle, "do_sample": True, "num_beams": 1, "max_length": 99, "made_up": 3}
    assert core.unshown_settings(strategy, settings, list(settings)) == (["made_up"], ["max_length"])


def test_call_with_own_processor_is_named_and_its_seed_not_locked(
    qtbot: QtBot, config_dir: Path, tmp_path: Path
) -> None:
    def mine(ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        return scores

    path = tmp_path / "run.decodescope"
    _captured(path, do_sample=True, prompt_lookup_num_tokens=2, logits_processor=[mine])
    window = open_window(qtbot, config_dir)
    told = list[str]()
    window.parts.settings_controller.notice.connect(told.append)
    window.parts.toolbar.seed.lock_button.setChecked(True)
    window.parts.settings_controller.apply_request(load_run(core.trace.read(path)).request)
    assert "mine" in " ".join(told)
    assert not window.parts.toolbar.seed.is_locked


@pytest.mark.slow
def test_captured_run_is_repeated_in_the_window(qtbot: QtBot, config_dir: Path, tmp_path: Path) -> None:
    path = tmp_path / "run.decodescope"
    live = _captured(path, 3, do_sample=True)
    window = build_window(config_dir)
    qtbot.addWidget(window)
    with qtbot.waitSignal(window.session.modelReady, timeout=WAIT_MS):
        window.show()
    window.parts.settings_controller.apply_request(load_run(core.trace.read(path)).request)
    for repeat in (window.parts.runs.run, window.parts.runs.run_again):
        with qtbot.waitSignal(window.session.finished, timeout=WAIT_MS) as signal:
            repeat()
        assert signal.args[0].kind == "completed"
        assert window.session.run.finished is not None
        assert [list(ids) for ids in window.session.run.finished.sequences] == live.sequences
