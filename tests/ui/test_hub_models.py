"""Models of the hub's cache come into the pickers a moment after the window, without holding it up."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from decodescope import app
from decodescope.core.models import catalog


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    snapshots = tmp_path / "hub" / "models--someone--small" / "snapshots"
    shutil.copytree(catalog.BUNDLED / "storyteller-draft", snapshots / ("a" * 40))
    (tmp_path / "hub" / "models--someone--hurt").mkdir()
    return tmp_path / "hub"


def test_hub_models_are_listed_after_window_is_shown(hub: Path, qtbot: QtBot, config_dir: Path) -> None:
    window = app.build_window(config_dir)
    qtbot.addWidget(window)
    picker, model = window.parts.toolbar.model, window.parts.chosen.model
    assert picker.findData("someone/small") < 0
    with qtbot.waitSignal(model.listed, timeout=30_000):
        pass
    names = [picker.itemData(row) for row in range(picker.count())]
    assert names.index("storyteller") < names.index("someone/hurt") < names.index("someone/small")
    assert model.name == "storyteller"
    window.close()
