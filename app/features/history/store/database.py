"""Open the history database: create it, migrate it, or set it aside if damaged, without losing its content.

Importing this module imports SQLite, so it is imported only after the window has been drawn.
"""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from decodescope.app.storage.json_files import MAX_COPIES, StorageError, backup_path, exclusive_writer
from decodescope.core.errors import DecodescopeError
from decodescope.resources.language import mark, tr

if TYPE_CHECKING:
    import sqlite3

Migration = Callable[["sqlite3.Connection"], object]

_INITIAL_TABLES = (
    """CREATE TABLE runs (
        number INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        made REAL NOT NULL,
        title TEXT NOT NULL DEFAULT '',
        opening TEXT NOT NULL,
        words TEXT NOT NULL,
        model TEXT NOT NULL,
        strategy TEXT NOT NULL,
        cache TEXT NOT NULL DEFAULT '',
        seed INTEGER NOT NULL DEFAULT 0,
        outcome TEXT NOT NULL DEFAULT 'completed',
        message TEXT NOT NULL DEFAULT '',
        tokens INTEGER NOT NULL DEFAULT 0,
        seconds REAL NOT NULL DEFAULT 0,
        speed REAL,
        cache_bytes INTEGER NOT NULL DEFAULT 0,
        bytes INTEGER NOT NULL DEFAULT 0,
        pinned INTEGER NOT NULL DEFAULT 0,
        parent TEXT,
        place INTEGER,
        deleted REAL
    )""",
    "CREATE INDEX runs_in_order ON runs (pinned DESC, made DESC, number DESC) WHERE deleted IS NULL",
    # Long texts are in a separate table, so that listing runs does not read them.
    """CREATE TABLE texts (
        number INTEGER PRIMARY KEY REFERENCES runs (number) ON DELETE CASCADE,
        title TEXT NOT NULL,
        words TEXT NOT NULL,
        request TEXT NOT NULL
    )""",
)


def _create_tables(connection: sqlite3.Connection) -> None:
    for statement in _INITIAL_TABLES:
        connection.execute(statement)


def _create_rankings_table(connection: sqlite3.Connection) -> None:
    """Create the table of user rankings, each a JSON text with the three fields of a ranking."""
    connection.execute("CREATE TABLE rankings (number INTEGER PRIMARY KEY, ranking TEXT NOT NULL)")


MIGRATIONS: Sequence[Migration] = (_create_tables, _create_rankings_table)
"""Item n migrates a file from version n to version n + 1; version 0 is an empty file."""


def version_of(connection: sqlite3.Connection) -> int:
    """Return the schema version of the file."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def migrate(connection: sqlite3.Connection, migrations: Sequence[Migration]) -> None:
    """Migrate the file in one transaction; roll back if anything fails."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        for version in range(
            version_of(connection), len(migrations)
        ):  # read the version inside: another program may just have migrated
            migrations[version](connection)
        connection.execute(f"PRAGMA user_version = {len(migrations)}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


BUSY_TIMEOUT = 5.0
"""Seconds a statement waits for another program's transaction."""
SQLITE_SUFFIXES = ("", "-wal", "-shm")
"""Suffixes of the database file and of SQLite's files for data not yet written into it."""
_EXTERNAL_ERRORS = {
    sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH, sqlite3.SQLITE_PROTOCOL,
    sqlite3.SQLITE_INTERRUPT, sqlite3.SQLITE_NOLFS,
}  # fmt: skip
"""Errors caused by the disk or another program, not by a damaged file."""
SHORT_READ = sqlite3.SQLITE_IOERR_SHORT_READ
DatabaseFailure = sqlite3.Error | ValueError
"""What a damaged file raises; ValueError means invalid UTF-8 or JSON."""
_PRAGMAS = (
    "PRAGMA journal_mode = WAL",  # lets the readers and the writer of several windows run concurrently
    "PRAGMA synchronous = FULL",
    "PRAGMA foreign_keys = ON",
    "PRAGMA secure_delete = ON",
    "PRAGMA cache_size = -16384",  # KiB
)
_CHECKS = ("SELECT id, deleted FROM runs LIMIT 1", "SELECT words, request FROM texts LIMIT 1")


class HistoryUnavailable(DecodescopeError):
    """The history cannot be opened; its file is left unchanged and no runs are saved meanwhile."""

    title = mark("The history is not available")


class DamagedHistoryError(Exception):
    """The file is not a history database, or it is damaged."""


def open_database(path: Path, migrations: Sequence[Migration]) -> tuple[sqlite3.Connection, str]:
    """Open the database in autocommit mode; also return a sentence if a damaged file had to be set aside.

    Raises HistoryUnavailable for a file of a later version or a failed migration, StorageError for disk errors.
    """
    with exclusive_writer(path.parent), _translate_errors(path):
        try:
            return _open(path, migrations), ""
        except DamagedHistoryError as damage:
            notice = tr("The history could not be read ({damage}). A new one was started. {kept}").format(
                damage=damage, kept=set_database_aside(path)
            )
            return _open(path, migrations), notice


def set_database_aside(path: Path) -> str:
    """Rename the database and SQLite's accompanying files; return a sentence with the new name."""
    number = next((n for n in range(1, MAX_COPIES) if not os.path.lexists(backup_path(path, "bad", n))), MAX_COPIES)
    aside = backup_path(path, "bad", number)
    os.replace(path, aside)
    for ending in SQLITE_SUFFIXES[1:]:
        with suppress(FileNotFoundError):
            os.replace(f"{path}{ending}", f"{aside}{ending}")
    return tr("The old file was saved as {name} in {folder}.").format(name=aside.name, folder=path.parent)


def is_damage(error: DatabaseFailure) -> bool:
    """Return whether the file is damaged: the statements are correct, so any error not caused by the disk or another
    program is damage.
    """
    code = _error_code(error)
    return (code & 0xFF) not in _EXTERNAL_ERRORS or code == SHORT_READ


def is_index_damage(error: DatabaseFailure) -> bool:
    """Return whether only the search index is damaged, which can be rebuilt."""
    return _error_code(error) == sqlite3.SQLITE_CORRUPT_VTAB


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Run the block as one transaction: commit it, or roll back on any exception."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise


def as_storage_error(path: Path, error: DatabaseFailure | OSError) -> StorageError:
    """Convert an error of the disk or SQLite to a StorageError with cause and remedy."""
    code = _error_code(error) & 0xFF if isinstance(error, sqlite3.Error) else 0
    return StorageError(
        tr("{path} cannot be used: {error}.").format(path=path, error=error), tr(_REMEDIES.get(code, _CHOOSE))
    )


def _open(path: Path, migrations: Sequence[Migration]) -> sqlite3.Connection:
    _prepare_file(path)
    connection = sqlite3.connect(path, timeout=BUSY_TIMEOUT, isolation_level=None)
    try:
        _check_and_migrate(connection, path, migrations)
        for statement in (*_CHECKS, *_PRAGMAS):
            connection.execute(statement).fetchone()
    except (sqlite3.Error, ValueError) as error:
        connection.close()
        if is_damage(error):
            raise DamagedHistoryError(str(error)) from error
        raise
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare_file(path: Path) -> None:
    """Create an empty file readable only by this user if there is none. Raises DamagedHistoryError if it is no regular
    file.
    """
    try:
        about = path.stat()
    except FileNotFoundError:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        return
    if not stat.S_ISREG(about.st_mode):
        raise DamagedHistoryError(tr("it is not a regular file"))
    with suppress(OSError):
        path.chmod(0o600)


def _check_and_migrate(connection: sqlite3.Connection, path: Path, migrations: Sequence[Migration]) -> None:
    version = version_of(connection)
    if version > len(migrations):
        raise HistoryUnavailable(
            tr(
                "The history was written by a newer version of Decodescope. It is left unchanged, and this "
                "window saves no runs."
            ),
            tr("Use the newer Decodescope, or another folder with --config-dir."),
        )
    is_empty = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0
    if version == 0 and not is_empty:
        raise DamagedHistoryError(tr("it belongs to another program"))
    if version < len(migrations):
        if version:
            for check in _CHECKS:  # detect damage first, so that the file is set aside unchanged
                connection.execute(check).fetchone()
            _test_migration(connection, migrations)
            _back_up(connection, path)
        migrate(connection, migrations)


def _test_migration(connection: sqlite3.Connection, migrations: Sequence[Migration]) -> None:
    """Migrate an in-memory copy first, so that a failure leaves the file unchanged. Raises HistoryUnavailable."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as copy:
        connection.backup(copy)
        try:
            migrate(copy, migrations)
        except Exception as error:  # any failure here comes from the data
            raise HistoryUnavailable(
                tr(
                    "The history of version {version} could not be updated ({error}). The file is left "
                    "unchanged, and this window saves no runs."
                ).format(version=version_of(connection), error=error),
                tr("Use the Decodescope version that wrote it, or another folder with --config-dir."),
            ) from error


def _back_up(connection: sqlite3.Connection, path: Path) -> None:
    """Back up the database beside the file."""
    number = next(n for n in range(1, MAX_COPIES) if not os.path.lexists(backup_path(path, "old", n)))
    aside = backup_path(path, "old", number)
    os.close(os.open(aside, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    with closing(sqlite3.connect(aside)) as copy:
        connection.backup(copy)


def _error_code(error: BaseException) -> int:
    """Return SQLite's error code; 0 for errors of the Python module."""
    return int(vars(error).get("sqlite_errorcode", 0))


@contextmanager
def _translate_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise as_storage_error(path, error) from error


_CHOOSE = mark("Choose another folder with --config-dir.")
_REMEDIES = {
    sqlite3.SQLITE_FULL: mark("Free up space on that disk."),
    sqlite3.SQLITE_BUSY: mark("Another program is using it; try again in a moment."),
    sqlite3.SQLITE_READONLY: mark("Make that file writable, or choose another folder with --config-dir."),
}
