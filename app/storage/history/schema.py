"""The tables of the history's file, version by version. SQLite is imported by those who call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

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
    # What is long lies apart, so that a list reads none of it.
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
    """What a person preferred, a JSON text each, with the three fields of a ranking."""
    connection.execute("CREATE TABLE rankings (number INTEGER PRIMARY KEY, ranking TEXT NOT NULL)")


MIGRATIONS: Sequence[Migration] = (_create_tables, _create_rankings_table)
"""The n-th makes version n + 1 of a file of version n; version 0 is an empty file."""


def version_of(connection: sqlite3.Connection) -> int:
    """Which version wrote the file."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def migrate(connection: sqlite3.Connection, migrations: Sequence[Migration]) -> None:
    """Bring the file up to date in one transaction, which is taken back when anything fails."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        for version in range(version_of(connection), len(migrations)):  # another program may just have done it
            migrations[version](connection)
        connection.execute(f"PRAGMA user_version = {len(migrations)}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
