"""The history's file while it is open: what turns out to be damaged only then is answered by a new index or file."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from app.storage.history.database import (
    DatabaseFailure,
    as_storage_error,
    is_damage,
    is_index_damage,
    open_database,
    set_database_aside,
)
from app.storage.history.history_tables import HistoryTables
from app.storage.history.schema import Migration
from resources.language import tr

T = TypeVar("T")


class HistoryDatabase:
    """Raises StorageError where the disk refuses; opening, HistoryClosed too."""

    def __init__(self, path: Path, migrations: Sequence[Migration]) -> None:
        self._path, self._migrations = path, migrations
        self.notices: list[str] = []
        try:
            self._open()
        except (sqlite3.Error, ValueError) as error:  # what is searched by is looked through as it is opened
            try:
                self._recover(error)
            except BaseException:
                self.close()
                raise

    def run(self, action: Callable[[HistoryTables], T]) -> T:
        """`action`; once more over a new index or a new file, where this one turns out to be damaged."""
        try:
            return self._run_with_index_repair(action)
        except (sqlite3.Error, ValueError) as error:
            self._recover(error)
        try:
            return action(self._tables)
        except (sqlite3.Error, ValueError) as error:
            raise as_storage_error(self._path, error) from error

    def close(self) -> None:
        """Give it back."""
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
        """A new file in the place of one that is damaged. Raises StorageError where the disk is to blame, and where
        the new one is no better."""
        if not is_damage(failure):
            raise as_storage_error(self._path, failure) from failure
        self.close()
        try:
            told = set_database_aside(self._path)
            self.notices.append(
                tr("The history was damaged ({damage}), so a new one begins. {kept}").format(damage=failure, kept=told)
            )
            self._open()
        except (sqlite3.Error, ValueError, OSError) as error:
            raise as_storage_error(self._path, error) from error
