"""Picture scripts: each picture depends on its own table alone, is reproducible and written atomically."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import qasync
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from decodescope import core
from decodescope.app.album.picture_drawing import draw_album
from decodescope.app.album.picture_script import read_script
from decodescope.app.session.engine import Engine
from decodescope.app.state.worker_messages import LoadRequest, RunRequest
from tests.ui.fake_engine import ScriptedEngine

Draw = Callable[..., int]
TABLES = {
    "one": 'view = "tokens"\ntoken = 3\ntheme = "dark"\nfont_scale = 1.2',
    "two": 'split = ["tokens", "memory"]\nhide = ["setup", "timeline"]\ncursor = 9\ncolours = "rank"',
    "three": 'strategy = "sampling"\nparameters = { temperature = 0.5 }\nprompt = "A fox"\nview = "compare"',
}


@pytest.fixture
def draw(qapp: QApplication, qtbot: QtBot, tmp_path: Path) -> Draw:
    """Makes the pictures of those tables, in a folder; gives back the exit code."""

    def drawn(folder: str, *tables: str, engine: Engine | None = None) -> int:
        path = tmp_path / folder / "script.toml"
        path.parent.mkdir()
        common = 'size = "900x600"\nstill = true\nmodel = "storyteller"\n'
        path.write_text(common + "".join(f"[[picture]]\n{table}\n" for table in tables), encoding="utf-8")
        with qasync.QEventLoop(qapp, set_running_loop=False) as loop:
            code = loop.run_until_complete(draw_album(read_script(path), engine or ScriptedEngine()))
        asyncio.set_event_loop(None)
        return int(code)

    return drawn


@pytest.mark.slow
def test_picture_is_independent_of_order_and_other_pictures(draw: Draw, tmp_path: Path) -> None:
    tables = [f'out = "{name}.png"\n{table}' for name, table in TABLES.items()]
    assert draw("all", *tables) == 0
    assert draw("turned", *reversed(tables)) == 0
    assert draw("alone", tables[1]) == 0
    pictures = {name: (tmp_path / "all" / f"{name}.png").read_bytes() for name in TABLES}
    assert len(set(pictures.values())) == 3
    for name, data in pictures.items():
        assert (tmp_path / "turned" / f"{name}.png").read_bytes() == data, name
    assert (tmp_path / "alone" / "two.png").read_bytes() == pictures["two"]


@pytest.mark.slow
def test_picture_follows_its_table(draw: Draw, tmp_path: Path) -> None:
    engine = ScriptedEngine()
    assert draw("x", f'out = "a.png"\nscale = 2\nseed = 9\n{TABLES["three"]}', 'out = "deep/b.svg"', engine=engine) == 0
    image = QImage(str(tmp_path / "x" / "a.png"))
    assert image.size().toTuple() == (1800, 1200)
    request = engine.runs[0]
    assert (request.prompt, request.seed, request.settings["temperature"]) == ("A fox", 9, 0.5)
    assert b"<svg" in (tmp_path / "x" / "deep" / "b.svg").read_bytes()


BAD = {
    "token = 900": ["key “token”", "the run has"],
    "cursor = 900": ["key “cursor”"],
    "text = 2": ["key “text”", "the run has 1"],
    'strategy = "sampling"\nparameters = { temperatur = 0.5 }': ["no setting", "Did you mean “temperature”?"],
    'strategy = "sampling"\nparameters = { temperature = "hot" }': ["temperature cannot be hot"],
    'cache = "sink"\ncache_parameters = { window_length = 1 }': ["window_length must be at least 3"],
    'instead = [{ token = 900, words = "a" }]': ["key “instead”", "no token 900"],
    'model = "none-such"': ["none-such"],
    'view = "compare"\ncomparison = "moons"': ["key “comparison”", "caches"],
    'view = "compare"\ncomparison = "caches"\ncompared = ["dynamo"]': ["key “compared”", "dynamic"],
    'view = "compare"\ncomparison = "seeds"\ncompared = ["three"]': ["key “compared”", "There are no choices"],
    'view = "compare"\ncomparison = "grammar"': ["key “comparison”", "The shown run has no grammar."],
    'view = "tree"\nnode = 99999': ["key “node”", "99999 is not among the 0 nodes"],
    'view = "speculation"\nnode = 99999': ["key “node”", "99999 is not among the 0 nodes"],
}


@pytest.mark.slow
def test_invalid_picture_is_reported_and_others_are_drawn(
    draw: Draw, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tables = [f'out = "bad{number}.png"\n{table}' for number, table in enumerate(BAD, 1)]
    assert draw("x", *tables, 'out = "good.png"') == 1
    said = capsys.readouterr().err
    for number, (table, reported) in enumerate(BAD.items(), 1):
        (line,) = (line for line in said.splitlines() if f"Picture {number} (bad{number}.png): " in line)
        assert [words for words in reported if words not in line] == [], table
    assert sorted(path.name for path in (tmp_path / "x").iterdir()) == ["good.png", "script.toml"]


def test_a_recorded_run_is_drawn_without_a_model(
    draw: Draw, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    requested = RunRequest("Once", strategy="sampling", load=LoadRequest("storyteller"))
    written = ScriptedEngine().stream(requested, threading.Event())
    list(core.record(tmp_path / "run.decodescope", written, requested))
    engine = ScriptedEngine()
    tables = ['out = "a.png"\ntrace = "../run.decodescope"\ntoken = 3', 'out = "b.png"\ntrace = "none.decodescope"']
    assert draw("x", *tables, engine=engine) == 1
    assert (engine.runs, engine.loads) == ([], [])
    assert QImage(str(tmp_path / "x" / "a.png")).size().toTuple() == (900, 600)
    assert "Picture 2 (b.png): " in capsys.readouterr().err


def test_failed_save_leaves_no_partial_picture(
    draw: Draw, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    replace = os.replace

    def full(part: Path, path: Path) -> None:
        if str(path).endswith("a.png"):
            raise OSError(28, "No space left on device")
        replace(part, path)

    monkeypatch.setattr(os, "replace", full)
    assert draw("x", 'out = "a.png"') == 1
    assert "could not be saved: " in capsys.readouterr().err
    assert [path.name for path in (tmp_path / "x").iterdir()] == ["script.toml"]


def test_full_disk_for_window_files_is_reported(
    draw: Draw, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_part: Path, _path: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    assert draw("x", 'out = "a.png"') == 1
    assert "no space left on the disk. Free up space" in capsys.readouterr().err
    assert [path.name for path in (tmp_path / "x").iterdir()] == ["script.toml"]
