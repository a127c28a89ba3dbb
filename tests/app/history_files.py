"""Runs for the history's tests, and processes that save runs, in parallel or until they are killed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from decodescope.app.features.history.store.history_record import HistoryRecord, SavedRunData
from decodescope.app.features.history.store.history_store import HistoryStore


def run_id(number: int) -> str:
    """An id that looks like any other."""
    return f"{number:032x}"


def run_data(
    number: int, prompt: str = "Once upon a time", text: str = " there was a fox", **more: object
) -> SavedRunData:
    """The `number`-th run, a minute after the one before it."""
    record = HistoryRecord(
        run_id(number), 1_700_000_000.0 + 60 * number, prompt, text, "storyteller", "sampling", **more
    )  # type: ignore[arg-type]
    return SavedRunData(record, f"{prompt}\n{text}", {"prompt": prompt, "seed": number})


def recording(folder: Path, size: int = 1000) -> Path:
    """Create a file in place of a run's recording."""
    path = folder / f"recording-{os.urandom(4).hex()}"
    path.write_bytes(b"x" * size)
    return path


_KEEPER = """
import sys
from pathlib import Path
from decodescope.app.features.history.store.history_store import HistoryStore
from tests.app.history_files import run_data, recording
folder, first, count = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
store = HistoryStore(folder)
print("open", flush=True)
for number in range(first, first + count):
    store.save(run_data(number), recording(folder))
    print(number, flush=True)
store.close()
"""


def start_saving_process(folder: Path, first: int, count: int) -> subprocess.Popen[str]:
    """Start another process on the same folder; it prints `open`, then the number of each saved run."""
    command = [sys.executable, "-c", _KEEPER, str(folder), str(first), str(count)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2])


def all_ids(folder: Path) -> list[str]:
    """Return the ids that a new process finds in the folder."""
    store = HistoryStore(folder)
    try:
        assert store.notices == []
        return store.ids()
    finally:
        store.close()
