"""Prediction heads are offered for models that have some, or for which a head is on this disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from decodescope import core
from decodescope.core.models import head_detection
from tests.core import head_checkpoints, tiny

STRATEGY = core.strategies.registry["prediction_heads"]


def test_a_model_without_any_head_is_refused_with_the_reason(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(head_detection, "BUNDLED", tmp_path)
    reason = STRATEGY.unsupported_reason(tiny.make("llama"))
    assert reason is not None
    assert "draft_head" in reason


def test_matching_bundled_head_makes_the_strategy_available() -> None:
    assert STRATEGY.unsupported_reason(core.load("storyteller")) is None


def test_head_of_another_width_is_ignored(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(head_detection, "BUNDLED", tmp_path)
    head_checkpoints.eagle(tmp_path / "head", width=64)
    assert STRATEGY.unsupported_reason(tiny.make("gpt2")) is not None


def test_damaged_head_folder_is_ignored(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "config.json").write_text("{")
    (broken / "model.safetensors").write_bytes(b"x" * 20)
    monkeypatch.setattr(head_detection, "BUNDLED", tmp_path)
    assert STRATEGY.unsupported_reason(tiny.make("llama")) is not None
