"""`--still`: the same arguments give the same picture twice, byte for byte."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from decodescope.app.session.engine_proxy import strip_times
from decodescope.core import events
from decodescope.core.events import CostCurve, Finished, Metrics, Prefilled

ROOT = Path(__file__).parents[2]
VIEWS = {
    "tokens": ["--strategy", "sampling", "--seed", "3"],
    "tree": ["--strategy", "beam_search"],
    "speculation": ["--strategy", "assisted", "--draft", "storyteller-draft"],
    "memory": ["--strategy", "greedy"],
    "compare": ["--strategy", "greedy", "--theme", "dark"],
}
FILES = {"run.html": "--export", "figures.csv": "--export", "demo.apng": "--record-demo", "folder.png": "--record-demo"}
DRAW = """
import sys
from pathlib import Path
from decodescope.app.__main__ import main

folder, views, files = Path(sys.argv[1]), eval(sys.argv[2]), eval(sys.argv[3])
SHORT = ["--param", "max_new_tokens=24"]
for view, words in views.items():
    picture = ["--screenshot", str(folder / f"{view}.png"), "--view", view, "--still", "--size", "1000x700"]
    assert main([*words, "--model", "storyteller", "--prompt", "Once upon a time", "--run", *picture, *SHORT]) == 0
for name, option in files.items():
    words = ["--strategy", "sampling", "--view", "memory", "--still", option, str(folder / name)]
    assert main([*words, "--model", "storyteller", "--prompt", "Once upon a time", "--run", *SHORT]) == 0
"""


@pytest.mark.slow
def test_two_processes_draw_identical_pictures(tmp_path: Path) -> None:
    bare = {name: value for name, value in os.environ.items() if name != "QT_QPA_PLATFORM"}
    folders = [tmp_path / "one", tmp_path / "two"]
    commands = [[sys.executable, "-c", DRAW, str(folder), repr(VIEWS), repr(FILES)] for folder in folders]
    running = [subprocess.Popen(command, env=bare, cwd=ROOT) for command in commands]
    assert [process.wait() for process in running] == [0, 0]
    for view in VIEWS:
        one, two = ((folder / f"{view}.png").read_bytes() for folder in folders)
        assert one == two, view
        assert not any(chunk in one for chunk in (b"tIME", b"tEXt", b"iTXt"))
    one, two = (sorted(path for path in folder.rglob("*") if path.is_file()) for folder in folders)
    assert [path.relative_to(folders[0]) for path in one] == [path.relative_to(folders[1]) for path in two]
    assert [first for first, second in zip(one, two, strict=True) if first.read_bytes() != second.read_bytes()] == []
    assert {path.relative_to(folders[0]).parts[0] for path in one} >= {"run.html", "figures.csv", "demo.apng", "folder"}


def test_strip_times_removes_all_times() -> None:
    assert strip_times(CostCurve(((1, 1.0),))) is None
    assert strip_times(Prefilled(3, 0.5)) == Prefilled(3, 0.0)
    ended = Finished("completed", (), (), Metrics(3, 4, 0.5, 0.1, 20.0, 30.0, predicted_speedup=2.0, cache_bytes=7))
    assert strip_times(ended) == Finished("completed", (), (), Metrics(3, 4, cache_bytes=7))


def test_every_event_with_times_is_covered() -> None:
    timed = {
        name
        for name, kind in vars(events).items()
        if isinstance(kind, type) and any("seconds" in field for field in getattr(kind, "__dataclass_fields__", ()))
    }
    timed.discard("MediumRead")  # the length of a sound, with any decoder
    assert timed == {"Prefilled", "TokenChosen", "BeamStep", "DraftRound", "Metrics"}
