"""Active recordings: each belongs to one window; those of killed processes are found once, others are left alone."""

from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path

import pytest

from decodescope.app.features.history.store.history_store import ActiveRecordings
from decodescope.app.storage.json_files import StorageError
from tests.app.history_files import run_id

_WRITER = """
import sys
from pathlib import Path
from decodescope.app.features.history.store.history_store import ActiveRecordings
ActiveRecordings(Path(sys.argv[1])).create_file(sys.argv[2]).write_bytes(b"half a run")
print("written", flush=True)
sys.stdin.read()
"""


def program_that_writes(folder: Path, run: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", _WRITER, str(folder), run]
    program = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]
    )
    assert program.stdout is not None
    assert program.stdout.readline() == "written\n"
    return program


def test_abandoned_recording_is_claimed_by_one_window(tmp_path: Path) -> None:
    program = program_that_writes(tmp_path, run_id(1))
    first, second = ActiveRecordings(tmp_path), ActiveRecordings(tmp_path)
    assert first.claim_abandoned() == {}, "its program is alive"
    program.kill()
    program.communicate()
    found = first.claim_abandoned()
    assert [(run, path.read_bytes()) for run, path in found.items()] == [(run_id(1), b"half a run")]
    assert second.claim_abandoned() == {}, "the first window has it"
    first.close()
    assert list(second.claim_abandoned()) == [run_id(1)], "nobody has done anything with it yet"
    found[run_id(1)].unlink()
    second.close()
    assert list((tmp_path / "under-way").iterdir()) == []


def test_recordings_of_other_open_window_are_not_claimed(tmp_path: Path) -> None:
    one, other = ActiveRecordings(tmp_path), ActiveRecordings(tmp_path)
    places = [one.create_file(run_id(1)), other.create_file(run_id(2)), one.create_file(run_id(3))]
    assert places[0].parent == places[2].parent != places[1].parent
    assert one.claim_abandoned() == other.claim_abandoned() == {}
    for path in places:
        path.unlink()
    one.close()
    other.close()
    assert list((tmp_path / "under-way").iterdir()) == []


def test_recording_files_are_private_to_user(tmp_path: Path) -> None:
    recordings = ActiveRecordings(tmp_path / "history")
    path = recordings.create_file(run_id(1))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert {stat.S_IMODE(folder.stat().st_mode) for folder in (path.parent, path.parent.parent)} == {0o700}
    recordings.close()


def test_unrelated_files_are_not_claimed(tmp_path: Path) -> None:
    stray = tmp_path / "under-way" / "window"
    stray.mkdir(parents=True)
    for name in ("notes.txt", "../x.decodescope", "ABC.decodescope"):
        (stray / name).write_bytes(b"")
    (stray / f"{run_id(1)}.decodescope").mkdir()
    recordings = ActiveRecordings(tmp_path)
    assert recordings.claim_abandoned() == {}
    recordings.close()
    assert (stray / "notes.txt").exists()


def test_unwritable_folder_raises_storage_error(tmp_path: Path) -> None:
    (tmp_path / "history").write_text("in the way")
    with pytest.raises(StorageError, match="so this run is not saved"):
        ActiveRecordings(tmp_path / "history").create_file(run_id(1))
