"""The history of one folder: kept runs are listed, found, named, pinned, deleted, and go when the room is spent.

Several windows may use one folder: every change is one transaction, and each sees what the others have done.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from app.storage.history.database import as_storage_error
from app.storage.history.database_file import HistoryDatabase
from app.storage.history.history_record import HistoryRecord, SavedRunData, is_run_id
from app.storage.history.rankings import RankingStore
from app.storage.history.schema import MIGRATIONS, Migration
from core.former_name import RUN_SUFFIX, RUN_SUFFIXES, existing_run

FILE_NAME = "history.sqlite"
TRACES_FOLDER = "traces"
TRACE_SUFFIX = RUN_SUFFIX
UNDO_SECONDS = 24 * 3600
"""A run that was deleted so long ago is nobody's to bring back any more."""
FOREVER = float("inf")


class HistoryStore:
    """Everything raises StorageError where the disk refuses; opening, HistoryClosed too."""

    def __init__(self, folder: Path, migrations: Sequence[Migration] = MIGRATIONS) -> None:
        self.path = folder / FILE_NAME
        self.traces = folder / TRACES_FOLDER
        self._file = HistoryDatabase(self.path, migrations)
        self.rankings = RankingStore(self._file)
        self.forget(self._file.run(lambda rows: rows.deleted(time.time() - UNDO_SECONDS)))

    @property
    def notices(self) -> list[str]:
        """What had to be set aside, a sentence each."""
        return self._file.notices

    def save(self, saved_run: SavedRunData, recording: Path | None = None) -> None:
        """Keep a run, and take its recording into the folder; one that is kept already stays as it is."""
        size = _file_size(recording) if recording is not None else 0
        self._file.run(lambda rows: rows.insert(saved_run, size))
        if recording is not None:
            self.move_recording_in(recording, saved_run.record.id)

    def move_recording_in(self, recording: Path, run: str) -> None:
        """Put a recording where those of kept runs are."""
        try:
            self.traces.mkdir(mode=0o700, exist_ok=True)
            os.replace(recording, self.trace_path(run))
        except OSError as error:
            raise as_storage_error(recording, error) from error

    def trace_path(self, run: str) -> Path:
        """Where the recording of a kept run is. Raises ValueError for what is no run's id."""
        if not is_run_id(run):
            raise ValueError(f"{run!r} is no run's id")
        return existing_run(self.traces / f"{run}{TRACE_SUFFIX}")

    def ids(self, query: str = "", max_count: int = -1) -> list[str]:
        """The first `max_count` runs (all below 0) that hold every word of `query`, pinned ones first, then the latest."""
        return self._file.run(lambda rows: rows.ids(query, max_count))

    def records(self, runs: Sequence[str]) -> list[HistoryRecord]:
        """Those of these runs that are there, in their order."""
        return self._file.run(lambda rows: rows.records(runs))

    def get(self, run: str) -> HistoryRecord | None:
        """One run; None when it is not there (any more)."""
        return next(iter(self.records([run])), None)

    def request(self, run: str) -> dict[str, Any]:
        """What the panels had set for it; empty when that is not known."""
        return self._file.run(lambda rows: rows.request(run))

    def latest(self, before: float = FOREVER) -> str | None:
        """The run that was kept last, or last before that moment."""
        return self._file.run(lambda rows: rows.latest(before))

    def totals(self) -> tuple[int, int]:
        """How many runs are kept, and their bytes."""
        return self._file.run(lambda rows: rows.totals())

    def has_changed(self) -> bool:
        """Whether another program has changed something since this was last asked."""
        return self._file.run(lambda rows: rows.has_changed())

    def rename(self, run: str, title: str) -> None:
        """Give it a title; an empty one takes the title away."""
        self._file.run(lambda rows: rows.rename(run, title))

    def pin(self, run: str, is_pinned: bool) -> None:
        """A pinned run stands first, and stays when the room is spent."""
        self._file.run(lambda rows: rows.pin(run, is_pinned))

    def delete(self, run: str) -> None:
        """Out of every list; it can be brought back until it is forgotten."""
        self._file.run(lambda rows: rows.mark_deleted(run, time.time()))

    def restore(self, run: str) -> None:
        """Undo `delete`."""
        self._file.run(lambda rows: rows.mark_deleted(run, None))

    def forget(self, runs: Iterable[str]) -> None:
        """Remove these for good."""
        run_ids = list(runs)
        self._file.run(lambda rows: rows.remove(run_ids))
        for run in run_ids:
            with suppress(OSError, ValueError):
                self.trace_path(run).unlink()

    def forget_all(self) -> None:
        """Remove every run for good, pinned ones too, and whatever else in the folder holds some of them."""
        self._file.run(lambda rows: rows.clear())
        copies = self.path.parent.glob(f"{FILE_NAME}.*-*")  # set aside, before a migration or damaged
        for path in (*copies, *(path for suffix in RUN_SUFFIXES for path in self.traces.glob(f"*{suffix}"))):
            with suppress(OSError):
                path.unlink()

    def trim(self, budget: int) -> int:
        """Let the oldest go that are not pinned, until all take at most `budget` bytes; how many went. The run that
        was kept last stays."""
        going = self._file.run(lambda rows: rows.runs_over_budget(budget))
        self.forget(going)
        return len(going)

    def close(self) -> None:
        """Give the file back."""
        self._file.close()


def _file_size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError as error:
        raise as_storage_error(path, error) from error
