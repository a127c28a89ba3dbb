"""The run history of one folder: list, search, rename, pin and delete saved runs; trim them to a size budget.

Several windows may use one folder: every change is one transaction, and each window sees the others' changes.
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from decodescope.app.features.history.store.database import (
    MIGRATIONS,
    DatabaseFailure,
    Migration,
    as_storage_error,
    is_damage,
    is_index_damage,
    open_database,
    set_database_aside,
)
from decodescope.app.features.history.store.history_record import HistoryRecord, SavedRunData, is_run_id
from decodescope.app.features.history.store.history_tables import HistoryTables
from decodescope.app.storage.json_files import StorageError, acquire_folder
from decodescope.core.common.program_name import RUN_SUFFIX
from decodescope.core.system.file_writing import HeldLock
from decodescope.core.system.system_errors import system_error_reason
from decodescope.resources.language import tr

T = TypeVar("T")


class HistoryDatabase:
    """An open history database. Raises StorageError for disk errors; the constructor also raises HistoryUnavailable."""

    def __init__(self, path: Path, migrations: Sequence[Migration]) -> None:
        self._path, self._migrations = path, migrations
        self.notices: list[str] = []
        try:
            self._open()
        except (sqlite3.Error, ValueError) as error:  # opening already reads the search index
            try:
                self._recover(error)
            except BaseException:
                self.close()
                raise

    def run(self, action: Callable[[HistoryTables], T]) -> T:
        """Run `action`; if the file turns out to be damaged, run it again on a rebuilt index or a new file."""
        try:
            return self._run_with_index_repair(action)
        except (sqlite3.Error, ValueError) as error:
            self._recover(error)
        try:
            return action(self._tables)
        except (sqlite3.Error, ValueError) as error:
            raise as_storage_error(self._path, error) from error

    def close(self) -> None:
        """Close the connection."""
        with suppress(sqlite3.Error):
            self._connection.close()

    def _open(self) -> None:
        self._connection, notice = open_database(self._path, self._migrations)
        self._tables = HistoryTables(self._connection)
        self.notices += [notice] * bool(notice)

    def _run_with_index_repair(self, action: Callable[[HistoryTables], T]) -> T:
        try:
            return action(self._tables)
        except sqlite3.DatabaseError as error:
            if not is_index_damage(error):
                raise
        self._tables.rebuild_index()
        return action(self._tables)

    def _recover(self, failure: DatabaseFailure) -> None:
        """Replace a damaged file with a new one. Raises StorageError for disk errors, and if the new file fails too."""
        if not is_damage(failure):
            raise as_storage_error(self._path, failure) from failure
        self.close()
        try:
            backup_note = set_database_aside(self._path)
            self.notices.append(
                tr("The history was damaged ({damage}). A new one was started. {kept}").format(
                    damage=failure, kept=backup_note
                )
            )
            self._open()
        except (sqlite3.Error, ValueError, OSError) as error:
            raise as_storage_error(self._path, error) from error


class RankingStore:
    """The stored rankings, each a JSON object, in the order in which they were added. Raises StorageError."""

    def __init__(self, file: HistoryDatabase) -> None:
        self._file = file

    def all(self, parse: Callable[[dict[str, Any]], T]) -> list[T]:
        """Parse every ranking with `parse`, which raises ValueError for invalid data (treated as damage)."""
        return self._file.run(lambda rows: [parse(values) for values in rows.rankings()])

    def add(self, rankings: Sequence[dict[str, Any]]) -> None:
        """Append rankings."""
        lines = [json.dumps(ranking, ensure_ascii=False) for ranking in rankings]
        self._file.run(lambda rows: rows.add_rankings(lines))


FILE_NAME = "history.sqlite"
TRACES_FOLDER = "traces"
TRACE_SUFFIX = RUN_SUFFIX
UNDO_SECONDS = 24 * 3600
"""Deleted runs can be restored for this long."""
FOREVER = float("inf")


class HistoryStore:
    """The history of one folder. Every method raises StorageError for disk errors; the constructor also raises
    HistoryUnavailable.
    """

    def __init__(self, folder: Path, migrations: Sequence[Migration] = MIGRATIONS) -> None:
        self.path = folder / FILE_NAME
        self.traces = folder / TRACES_FOLDER
        self._file = HistoryDatabase(self.path, migrations)
        self.rankings = RankingStore(self._file)
        self.forget(self._file.run(lambda rows: rows.deleted(time.time() - UNDO_SECONDS)))

    @property
    def notices(self) -> list[str]:
        """One sentence for each file that had to be set aside."""
        return self._file.notices

    def save(self, saved_run: SavedRunData, recording: Path | None = None) -> None:
        """Save a run and move its recording into the folder; a run that is already saved stays unchanged."""
        size = _file_size(recording) if recording is not None else 0
        self._file.run(lambda rows: rows.insert(saved_run, size))
        if recording is not None:
            self.move_recording_in(recording, saved_run.record.id)

    def move_recording_in(self, recording: Path, run: str) -> None:
        """Move a recording into the folder of saved runs."""
        try:
            self.traces.mkdir(mode=0o700, exist_ok=True)
            os.replace(recording, self.trace_path(run))
        except OSError as error:
            raise as_storage_error(recording, error) from error

    def trace_path(self, run: str) -> Path:
        """Return the path of a saved run's recording. Raises ValueError for an invalid run id."""
        if not is_run_id(run):
            raise ValueError(f"{run!r} is no run's id")
        return self.traces / f"{run}{TRACE_SUFFIX}"

    def ids(self, query: str = "", max_count: int = -1) -> list[str]:
        """Return up to `max_count` runs (all if negative) that contain every word of `query`: pinned ones
        first, then the latest.
        """
        return self._file.run(lambda rows: rows.ids(query, max_count))

    def records(self, runs: Sequence[str]) -> list[HistoryRecord]:
        """Return the records of those of `runs` that exist, in the given order."""
        return self._file.run(lambda rows: rows.records(runs))

    def get(self, run: str) -> HistoryRecord | None:
        """Return one record; None if the run does not exist."""
        return next(iter(self.records([run])), None)

    def request(self, run: str) -> dict[str, Any]:
        """Return the panel settings of a run; empty if unknown."""
        return self._file.run(lambda rows: rows.request(run))

    def latest(self, before: float = FOREVER) -> str | None:
        """Return the last run saved, or the last one before `before`."""
        return self._file.run(lambda rows: rows.latest(before))

    def totals(self) -> tuple[int, int]:
        """Return the number of saved runs and their size in bytes."""
        return self._file.run(lambda rows: rows.totals())

    def has_changed(self) -> bool:
        """Return whether another program has changed the database since the last call."""
        return self._file.run(lambda rows: rows.has_changed())

    def rename(self, run: str, title: str) -> None:
        """Set the title; an empty one removes it."""
        self._file.run(lambda rows: rows.rename(run, title))

    def pin(self, run: str, is_pinned: bool) -> None:
        """Pin or unpin a run: pinned runs are listed first and never trimmed."""
        self._file.run(lambda rows: rows.pin(run, is_pinned))

    def delete(self, run: str) -> None:
        """Hide a run from every list; it can be restored until it is forgotten."""
        self._file.run(lambda rows: rows.mark_deleted(run, time.time()))

    def restore(self, run: str) -> None:
        """Restore a run hidden by `delete`."""
        self._file.run(lambda rows: rows.mark_deleted(run, None))

    def forget(self, runs: Iterable[str]) -> None:
        """Delete these runs permanently."""
        run_ids = list(runs)
        self._file.run(lambda rows: rows.remove(run_ids))
        for run in run_ids:
            with suppress(OSError, ValueError):
                self.trace_path(run).unlink()

    def forget_all(self) -> None:
        """Delete every run permanently, pinned ones too, and the backup copies in the folder."""
        self._file.run(lambda rows: rows.clear())
        copies = self.path.parent.glob(f"{FILE_NAME}.*-*")  # copies from migrations or damage
        for path in (*copies, *self.traces.glob(f"*{TRACE_SUFFIX}")):
            with suppress(OSError):
                path.unlink()

    def trim(self, budget: int) -> int:
        """Delete the oldest unpinned runs until the rest fits into `budget` bytes; never the last one saved. Return the
        number deleted.
        """
        going = self._file.run(lambda rows: rows.runs_over_budget(budget))
        self.forget(going)
        return len(going)

    def close(self) -> None:
        """Close the database."""
        self._file.close()


def _file_size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError as error:
        raise as_storage_error(path, error) from error


FOLDER_NAME = "under-way"
RECORDING_SUFFIX = RUN_SUFFIX


class ActiveRecordings:
    """The recordings folder of one window, created with its first recording and removed on close."""

    def __init__(self, history: Path) -> None:
        self._root = history / FOLDER_NAME
        self._own_folder: Path | None = None
        self._locks: list[HeldLock] = []

    def create_file(self, run: str) -> Path:
        """Create an empty file, readable only by this user, for recording a run. Raises StorageError."""
        path = self._ensure_folder() / f"{run}{RECORDING_SUFFIX}"
        try:
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        except OSError as error:
            raise _write_error(path, error) from error
        return path

    def claim_abandoned(self) -> dict[str, Path]:
        """Return {run: recording} of recordings left by programs that have ended. This window locks them until it
        closes.
        """
        found: dict[str, Path] = {}
        with suppress(OSError):
            for folder in sorted(self._root.iterdir()):
                if (
                    folder != self._own_folder
                    and not folder.name.startswith(".")
                    and (held := acquire_folder(folder)) is not None
                ):
                    self._locks.append(held)
                    paths = sorted(path for path in folder.iterdir() if path.suffix == RECORDING_SUFFIX)
                    found |= {path.stem: path for path in paths if is_run_id(path.stem) and path.is_file()}
        return found

    def close(self) -> None:
        """Remove empty folders; the next window finds what is left in the others."""
        for held in self._locks:
            _remove_if_empty(held)
            held.release()
        self._locks, self._own_folder = [], None

    def _ensure_folder(self) -> Path:
        if self._own_folder is None:
            name = os.urandom(8).hex()
            own, hidden = self._root / name, self._root / f".{name}"
            try:
                self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
                hidden.mkdir(mode=0o700)
                held = acquire_folder(hidden)
                hidden.rename(own)  # visible to others only once it is locked
            except OSError as error:
                raise _write_error(own, error) from error
            self._locks += [held._replace(path=own / held.path.name)] if held is not None else []
            self._own_folder = own
        return self._own_folder


def _remove_if_empty(lock: HeldLock) -> None:
    folder = lock.path.parent
    with suppress(OSError):
        if all(path == lock.path for path in folder.iterdir()):
            lock.path.unlink()
            folder.rmdir()


def _write_error(path: Path, error: OSError) -> StorageError:
    return StorageError(
        tr("{path} cannot be written ({why}), so this run is not saved.").format(
            path=path, why=system_error_reason(error)
        ),
        tr("Free up disk space, or make the folder writable."),
    )
