"""Queries and updates on the history tables over one connection.

SQLite accepts any value in any column, so values read are checked.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, get_type_hints

from decodescope.app.features.history.store.database import transaction
from decodescope.app.features.history.store.history_record import (
    MAX_ID_LENGTH,
    MAX_TITLE_LENGTH,
    HistoryRecord,
    SavedRunData,
    is_run_id,
    normalize_for_search,
    storable_text,
)
from decodescope.app.storage.json_files import as_object, parse_json
from decodescope.core import beginning
from decodescope.resources.language import tr

MIN_INDEXED_LENGTH = 3
"""Shortest word, in characters, that the index can find."""
SqlCondition = tuple[str, list[str]]
"""SQL condition on a row of `texts`, and its parameters."""


def search_words(query: str) -> list[str]:
    """Split a query into normalized search words."""
    return list(dict.fromkeys(normalize_for_search(query).split()))


class SearchIndex:
    """The trigram index. `is_there` is False if SQLite lacks it; searches then scan every run."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self.is_available = self._create()

    def add(self, number: int) -> None:
        """Add a run to the index; its row in `texts` must already exist."""
        if self.is_available:
            self._connection.execute(
                "INSERT INTO found (rowid, title, words) SELECT number, title, words FROM texts WHERE number = ?",
                (number,),
            )

    def remove(self, number: int) -> None:
        """Remove a run from the index; its row in `texts` must still be as added."""
        if self.is_available:
            self._connection.execute(
                "INSERT INTO found (found, rowid, title, words) "
                "SELECT 'delete', number, title, words FROM texts WHERE number = ?",
                (number,),
            )

    def rebuild(self) -> None:
        """Rebuild the index from `texts`."""
        if self.is_available:
            self._fill()

    def condition(self, choices: Sequence[str]) -> SqlCondition:
        """Return the SQL condition for rows that contain all of these words."""
        indexed = [word for word in choices if self.is_available and len(word) >= MIN_INDEXED_LENGTH]
        parts, values = [], []
        if indexed:
            parts.append("texts.number IN (SELECT rowid FROM found WHERE found MATCH ?)")
            values.append(" AND ".join(_quote(word) for word in indexed))
        for word in choices:
            if word not in indexed:
                parts.append("(instr(texts.title, ?) OR instr(texts.words, ?))")
                values += [word, word]
        return " AND ".join(parts) or "1", values

    def _create(self) -> bool:
        """Create the index; rebuild it if a program without one has added runs since."""
        try:
            self._connection.execute(
                "CREATE VIRTUAL TABLE IF NOT EXISTS found USING fts5"
                " (title, words, content = 'texts', content_rowid = 'number', tokenize = 'trigram')"
            )
            counts = [self._count("found_docsize"), self._count("texts")]
        except sqlite3.OperationalError:
            return False
        if counts[0] != counts[1]:
            self._fill()
        return True

    def _fill(self) -> None:
        self._connection.execute("INSERT INTO found (found) VALUES ('rebuild')")

    def _count(self, table: str) -> int:
        return int(self._connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


def _quote(word: str) -> str:
    return '"' + word.replace('"', '""') + '"'


_COLUMNS = HistoryRecord._fields
_COLUMN_LIST = ", ".join(_COLUMNS)
_PLACEHOLDERS = ", ".join(f":{name}" for name in _COLUMNS)
_COLUMN_TYPES = get_type_hints(HistoryRecord) | {"pinned": int}
"""The type expected from SQLite for each column: it stores booleans as integers."""
_NOT_DELETED = "deleted IS NULL"
_TOTAL_BYTES = "coalesce(sum(bytes), 0)"
"""An integer, unless a value in the column has another type."""
_ORDER = "pinned DESC, made DESC, runs.number DESC"


class HistoryTables:
    """Typed access to the history tables. Raises sqlite3.Error, and ValueError for values no program has written; the
    caller decides what that means.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._index = SearchIndex(connection)
        self._seen_version = self._fetch_all("PRAGMA data_version")[0][0]

    def ids(self, query: str, max_count: int = -1) -> list[str]:
        """Return up to `max_count` runs (all if negative) that contain every word of `query`: pinned ones
        first, then the latest.
        """
        words = search_words(query)
        source, condition, values = "runs", "1", list[str]()
        if words:
            source = "runs JOIN texts USING (number)"
            condition, values = self._index.condition(words)
        return self._fetch_ids(
            f"SELECT id FROM {source} WHERE {_NOT_DELETED} AND {condition} ORDER BY {_ORDER} LIMIT ?",
            [*values, max_count],
        )

    def records(self, runs: Sequence[str]) -> list[HistoryRecord]:
        """Return the records of those of `runs` that exist, in the given order."""
        marks = ", ".join("?" * len(runs))
        rows = self._fetch_all(f"SELECT {_COLUMN_LIST} FROM runs WHERE {_NOT_DELETED} AND id IN ({marks})", runs)
        found = {row[0]: _record_from_row(row) for row in rows}
        return [found[run] for run in runs if run in found]

    def request(self, run: str) -> dict[str, Any]:
        """Return the panel settings of a run; empty if unknown."""
        rows = self._fetch_all("SELECT request FROM texts JOIN runs USING (number) WHERE id = ?", (run,))
        return _parsed_object("request", rows[0][0]) if rows else {}

    def latest(self, before: float) -> str | None:
        """Return the last run saved before `before`."""
        sql = f"SELECT id FROM runs WHERE {_NOT_DELETED} AND made < ? ORDER BY made DESC, number DESC LIMIT 1"
        return next(iter(self._fetch_ids(sql, (before,))), None)

    def totals(self) -> tuple[int, int]:
        """Return the number of saved runs and their size in bytes."""
        count, size = self._fetch_all(f"SELECT count(*), {_TOTAL_BYTES} FROM runs WHERE {_NOT_DELETED}")[0]
        return int(count), _check_type("bytes", size, int)

    def has_changed(self) -> bool:
        """Return whether another program has changed the database since the last call."""
        before, self._seen_version = self._seen_version, self._fetch_all("PRAGMA data_version")[0][0]
        return bool(before != self._seen_version)

    def insert(self, saved_run: SavedRunData, size: int) -> None:
        """Insert a run whose recording has `size` bytes; an existing run stays unchanged."""
        words, request = normalize_for_search(saved_run.searchable_text), json.dumps(saved_run.request)
        row = {name: _sanitize(value) for name, value in saved_run.record._asdict().items()}
        row["bytes"] = size + len(words) + len(request)
        with transaction(self._connection):
            inserted = self._connection.execute(
                f"INSERT INTO runs ({_COLUMN_LIST}) VALUES ({_PLACEHOLDERS}) ON CONFLICT (id) DO NOTHING", row
            )
            if inserted.rowcount == 1 and (number := inserted.lastrowid) is not None:
                texts = (number, normalize_for_search(saved_run.record.title), words, request)
                self._connection.execute("INSERT INTO texts VALUES (?, ?, ?, ?)", texts)
                self._index.add(number)

    def rename(self, run: str, title: str) -> None:
        """Set the title; an empty one removes it."""
        title = beginning(" ".join(storable_text(title).split()), MAX_TITLE_LENGTH)
        with transaction(self._connection):
            for (number,) in self._fetch_all("SELECT number FROM runs WHERE id = ?", (run,)):
                self._index.remove(number)
                self._connection.execute("UPDATE runs SET title = ? WHERE number = ?", (title, number))
                self._connection.execute(
                    "UPDATE texts SET title = ? WHERE number = ?", (normalize_for_search(title), number)
                )
                self._index.add(number)

    def pin(self, run: str, is_pinned: bool) -> None:
        """Pin or unpin a run: pinned runs are listed first and never trimmed."""
        self._connection.execute("UPDATE runs SET pinned = ? WHERE id = ?", (is_pinned, run))

    def mark_deleted(self, run: str, deleted_at: float | None) -> None:
        """Hide a run from every list, or (None) restore it."""
        self._connection.execute("UPDATE runs SET deleted = ? WHERE id = ?", (deleted_at, run))

    def deleted(self, before: float) -> list[str]:
        """Return the runs marked as deleted before `before`."""
        return self._fetch_ids("SELECT id FROM runs WHERE deleted < ?", (before,))

    def remove(self, runs: Sequence[str]) -> None:
        """Delete these runs permanently."""
        if not runs:
            return
        with transaction(self._connection):
            for run in runs:
                for (number,) in self._fetch_all("SELECT number FROM runs WHERE id = ?", (run,)):
                    self._index.remove(number)
                    self._connection.execute("DELETE FROM runs WHERE number = ?", (number,))

    def runs_over_budget(self, budget: int) -> list[str]:
        """Return the runs to delete so that the rest fits into `budget` bytes: deleted ones first, then the oldest
        unpinned ones; never the last one saved.
        """
        over = _check_type("bytes", self._fetch_all(f"SELECT {_TOTAL_BYTES} FROM runs")[0][0], int) - budget
        going: list[str] = []
        if over > 0:
            sql = (
                "SELECT id, bytes FROM runs WHERE NOT pinned AND number < (SELECT max(number) FROM runs)"
                " ORDER BY deleted IS NULL, made, number"
            )
            for run, size in self._fetch_all(sql):
                if over <= 0:
                    break
                going.append(_checked_id(run))
                over -= size
        return going

    def rankings(self) -> list[dict[str, Any]]:
        """Return the user's rankings in order."""
        return [
            _parsed_object("ranking", row[0]) for row in self._fetch_all("SELECT ranking FROM rankings ORDER BY number")
        ]

    def add_rankings(self, rankings: Sequence[str]) -> None:
        """Append rankings."""
        with transaction(self._connection):
            self._connection.executemany("INSERT INTO rankings (ranking) VALUES (?)", [(line,) for line in rankings])

    def clear(self) -> None:
        """Delete everything, also from the file's free pages."""
        with transaction(self._connection):
            self._connection.execute("DELETE FROM runs")
            self._index.rebuild()
        with suppress(sqlite3.OperationalError):  # another window is reading; secure_delete overwrites the data anyway
            self._connection.execute("VACUUM")
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()

    def rebuild_index(self) -> None:
        """Rebuild the search index."""
        self._index.rebuild()

    def _fetch_all(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        return self._connection.execute(sql, values).fetchall()

    def _fetch_ids(self, sql: str, values: Sequence[Any]) -> list[str]:
        return [_checked_id(row[0]) for row in self._fetch_all(sql, values)]


def _sanitize(value: Any) -> Any:
    return storable_text(value) if isinstance(value, str) else value


def _record_from_row(row: Sequence[Any]) -> HistoryRecord:
    for name, value in zip(_COLUMNS, row, strict=True):
        _check_type(name, value, _COLUMN_TYPES[name])
    record = HistoryRecord(*row)
    return record._replace(id=_checked_id(record.id), pinned=bool(record.pinned))


def _checked_id(value: Any) -> str:
    """Check a run id, which becomes a file name."""
    if not is_run_id(_check_type("id", value, str)):
        raise ValueError(tr("{id} is not a valid run id").format(id=beginning(repr(value), MAX_ID_LENGTH)))
    return str(value)


def _parsed_object(name: str, value: Any) -> dict[str, Any]:
    return as_object(parse_json(_check_type(name, value, str).encode()))


def _check_type(name: str, value: Any, kind: Any) -> Any:
    if not isinstance(value, kind):
        raise ValueError(tr("the “{name}” of a run has the wrong type").format(name=name))
    return value
