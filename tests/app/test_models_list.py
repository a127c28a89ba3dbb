"""The model list: which models can draft for which, and what a run needs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from decodescope.app.control.model_list import ModelList
from decodescope.app.state.worker_messages import AS_FITS
from decodescope.core.models import catalog


@pytest.fixture
def models() -> ModelList:
    models = ModelList()
    models.refresh(())
    return models


def test_drafts_for_storyteller_have_reasons_when_unsupported(models: ModelList) -> None:
    reasons = {item.data: item.reason for item in models.drafts_for("storyteller")}
    assert reasons["storyteller-draft"] == ""
    assert "encoder–decoder" in reasons["summarizer"]
    states = [entry.name for entry in catalog.bundled() if entry.model_type == "mamba"]
    assert all("recurrent state" in reasons[name] for name in states)
    assert "storyteller" not in reasons


def test_item_help_names_run_size(models: ModelList) -> None:
    assert models.set_run_size(300, 4)
    assert not models.set_run_size(300, 4)
    (item,) = [item for item in models.items() if item.data == "storyteller"]
    assert "for 300 tokens × 4" in item.help


def test_broken_remembered_folder_has_reason(tmp_path: Path) -> None:
    models, broken, gone = ModelList(), tmp_path / "broken", tmp_path / "gone"
    broken.mkdir()
    os.mkfifo(broken / "tokenizer.json")
    (broken / "model.safetensors.index.json").write_text("{}")
    (broken / "config.json").write_text('{"hidden_size": "wide", "architectures": [5]}')
    models.refresh([str(broken), str(gone)])
    reasons = {item.data: item.reason for item in models.items()}
    assert "hidden_size" in reasons[str(broken)]
    assert "no folder" in reasons[str(gone)]
    assert not reasons["storyteller"]
    assert len(models.drafts_for("storyteller")) == len(models.names) - 1


def test_folder_problem_has_cause_and_remedy(models: ModelList, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("[" * 100_000)
    assert models.add_folder(str(tmp_path)) is None
    cause, remedy = models.folder_problem(str(tmp_path))
    assert "config.json" in cause
    assert remedy
    assert models.folder_problem(str(catalog.BUNDLED / "storyteller")) == ("", "")


def test_subtitle_names_disk_offload_only_with_low_memory_limit() -> None:
    models = ModelList()
    models.refresh(())
    reported = {}
    for memory in (10, 100, AS_FITS):  # MiB of storyteller's 22
        models.memory_limits = {"storyteller": memory}
        reported[memory] = next(item.subtitle for item in models.items() if item.data == "storyteller")
    assert [memory for memory, words in reported.items() if "layers read from disk" in words] == [10]
    assert models.fits("storyteller", memory=AS_FITS)
