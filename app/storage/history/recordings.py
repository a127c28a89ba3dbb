"""Recordings of runs under way: a folder for each window, which holds its lock; who finds one without a holder has
found what a killed program was writing."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from app.storage.folder_locks import HeldLock, acquire_folder
from app.storage.history.history_record import is_run_id
from app.storage.json_files import StorageError
from core.former_name import RUN_SUFFIX, RUN_SUFFIXES
from resources.language import tr

FOLDER_NAME = "under-way"
RECORDING_SUFFIX = RUN_SUFFIX


class ActiveRecordings:
    """The folder of one window, made with its first recording and removed at its end."""

    def __init__(self, history: Path) -> None:
        self._root = history / FOLDER_NAME
        self._own_folder: Path | None = None
        self._locks: list[HeldLock] = []

    def create_file(self, run: str) -> Path:
        """Where a run is to be recorded: an empty file of this user's alone. Raises StorageError."""
        path = self._ensure_folder() / f"{run}{RECORDING_SUFFIX}"
        try:
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        except OSError as error:
            raise _write_error(path, error) from error
        return path

    def claim_abandoned(self) -> dict[str, Path]:
        """{run: recording} of what programs that are no longer there have left. It is this window's from now on: no
        other one finds it before this one has ended."""
        found: dict[str, Path] = {}
        with suppress(OSError):
            for folder in sorted(self._root.iterdir()):
                if (
                    folder != self._own_folder
                    and not folder.name.startswith(".")
                    and (held := acquire_folder(folder)) is not None
                ):
                    self._locks.append(held)
                    paths = sorted(path for path in folder.iterdir() if path.suffix in RUN_SUFFIXES)
                    found |= {path.stem: path for path in paths if is_run_id(path.stem) and path.is_file()}
        return found

    def close(self) -> None:
        """Remove what is empty; what still lies there is found by the next window."""
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
                hidden.rename(own)  # nobody has seen it without its holder
            except OSError as error:
                raise _write_error(own, error) from error
            self._locks += [held._replace(path=own / held.path.name)] if held is not None else []
            self._own_folder = own
        return self._own_folder


def _remove_if_empty(held: HeldLock) -> None:
    folder = held.path.parent
    with suppress(OSError):
        if all(path == held.path for path in folder.iterdir()):
            held.path.unlink()
            folder.rmdir()


def _write_error(path: Path, error: OSError) -> StorageError:
    return StorageError(
        tr("{path} cannot be written ({why}), so this run is not kept.").format(path=path, why=error.strerror),
        tr("Make room, or the folder writable."),
    )
