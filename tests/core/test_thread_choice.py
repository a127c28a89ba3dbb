"""The number of threads of single steps: by rule, by measurement, and remembered."""

from __future__ import annotations

import json
from pathlib import Path
from unittest.mock import Mock

import pytest
import torch

from decodescope import core
from decodescope.core.errors import ParameterError
from decodescope.core.generation import thread_choice
from decodescope.core.generation.thread_choice import choose_threads, default_threads
from tests.core import gguf_models


@pytest.fixture
def speeds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder, four processors, and no model too small to be measured."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(thread_choice, "usable_processors", lambda: 4)
    monkeypatch.setattr(thread_choice, "SMALL_MODEL_PARAMETERS", 0)
    return tmp_path / "decodescope" / "speeds.json"


@pytest.fixture
def model() -> core.LoadedModel:
    return gguf_models.make("llama")


def measured_as(monkeypatch: pytest.MonkeyPatch, by_count: dict[int, float]) -> Mock:
    measure = Mock(side_effect=lambda _model, count: by_count[count])
    monkeypatch.setattr(thread_choice, "_tokens_per_second", measure)
    return measure


def test_default_thread_count_follows_the_model_size() -> None:
    assert default_threads(5_000_000) == 1
    assert 1 <= default_threads(7_000_000_000) <= 8


@pytest.mark.parametrize(
    ("by_count", "expected"),
    [
        ({4: 100, 2: 80, 1: 50}, 4),
        ({4: 100, 2: 99, 1: 60}, 2),
        ({4: 100, 2: 120, 1: 119}, 1),
        ({4: 5, 2: 90, 1: 90}, 4),  # a slow model is not measured further
    ],
)
def test_fewest_threads_with_nearly_the_best_speed_are_chosen(
    by_count: dict[int, float], expected: int, model: core.LoadedModel, speeds: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured_as(monkeypatch, by_count)
    assert choose_threads(model) == expected
    assert list(json.loads(speeds.read_text()).values()) == [expected]


def test_model_size_is_measured_once(model: core.LoadedModel, speeds: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measure = measured_as(monkeypatch, {4: 100, 2: 100, 1: 20})
    assert [choose_threads(model), choose_threads(model)] == [2, 2]
    assert measure.call_count == 3
    for damaged in ("{", json.dumps(dict.fromkeys(json.loads(speeds.read_text()), 99))):
        speeds.write_text(damaged)
        assert choose_threads(model) == 2
    assert measure.call_count == 9


def test_measurement_restores_the_torch_thread_count(
    model: core.LoadedModel, speeds: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thread_choice, "usable_processors", lambda: 2)
    before = torch.get_num_threads()
    assert choose_threads(model) in (1, 2)
    assert torch.get_num_threads() == before
    assert speeds.exists()


def test_model_that_cannot_run_uses_the_default_threads(
    model: core.LoadedModel, speeds: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thread_choice, "run", Mock(side_effect=ParameterError("It needs an image.", "Attach one.")))
    assert choose_threads(model) == 4
    assert not speeds.exists()
