"""The history's tables in use: what is asked of them, each a few statements on one connection.

SQLite keeps anything in any column, so what is read is checked.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, get_type_hints

from app.storage.history.database import transaction
from app.storage.history.history_record import (
    MAX_ID_LENGTH,
    MAX_TITLE_LENGTH,
    HistoryRecord,
    SavedRunData,
    is_run_id,
    normalize_for_search,
    storable_text,
)
from app.storage.json_files import as_object, parse_json
from core import beginning
from resources.language import tr

MIN_INDEXED_LENGTH = 3
"""Letters from which on the index can help."""
SqlCondition = tuple[str, list[str]]
"""SQL about a row of `texts`, and its parameters."""


def search_words(query: str) -> list[str]:
    """The words that are looked for."""
    return list(dict.fromkeys(normalize_for_search(query).split()))


class SearchIndex:
    """`is_available` False: the library has no full-text search of that kind, and every run is read through."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self.is_available = self._create()

    def add(self, number: int) -> None:
        """Let a run be found; it stands in `texts` already."""
        if self.is_available:
            self._connection.execute(
                "INSERT INTO found (rowid, title, words) SELECT number, title, words FROM texts WHERE number = ?",
                (number,),
            )

    def remove(self, number: int) -> None:
        """Let it be found no more; it still stands in `texts` as it was added."""
        if self.is_available:
            self._connection.execute(
                "INSERT INTO found (found, rowid, title, words) "
                "SELECT 'delete', number, title, words FROM texts WHERE number = ?",
                (number,),
            )

    def rebuild(self) -> None:
        """Make it of what stands in `texts` now."""
        if self.is_available:
            self._fill()

    def condition(self, words: Sequence[str]) -> SqlCondition:
        """What a row has to be like to hold all of these words."""
        indexed = [word for word in words if self.is_available and len(word) >= MIN_INDEXED_LENGTH]
        parts, values = [], []
        if indexed:
            parts.append("texts.number IN (SELECT rowid FROM found WHERE found MATCH ?)")
            values.append(" AND ".join(_quote(word) for word in indexed))
        for word in words:
            if word not in indexed:
                parts.append("(instr(texts.title, ?) OR instr(texts.words, ?))")
                values += [word, word]
        return " AND ".join(parts) or "1", values

    def _create(self) -> bool:
        """Make the index, or fill it where a program without one has kept runs since."""
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
"""What SQLite gives for each column: it has no kind of its own for yes and no."""
_NOT_DELETED = "deleted IS NULL"
_TOTAL_BYTES = "coalesce(sum(bytes), 0)"
"""A whole number, unless one of them is something else."""
_ORDER = "pinned DESC, made DESC, runs.number DESC"


class HistoryTables:
    """Raises sqlite3.Error, and ValueError where something stands that no program has put there; whoever has opened
    the file knows what that means."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._index = SearchIndex(connection)
        self._seen_version = self._fetch_all("PRAGMA data_version")[0][0]

    def ids(self, query: str, max_count: int = -1) -> list[str]:
        """The first `max_count` runs (all below 0) that hold every word of `query`, pinned ones first, then the latest."""
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
        """Those of these runs that are there, in their order."""
        marks = ", ".join("?" * len(runs))
        rows = self._fetch_all(f"SELECT {_COLUMN_LIST} FROM runs WHERE {_NOT_DELETED} AND id IN ({marks})", runs)
        found = {row[0]: _record_from_row(row) for row in rows}
        return [found[run] for run in runs if run in found]

    def request(self, run: str) -> dict[str, Any]:
        """What the panels had set for a run; empty when that is not known."""
        rows = self._fetch_all("SELECT request FROM texts JOIN runs USING (number) WHERE id = ?", (run,))
        return _parsed_object("request", rows[0][0]) if rows else {}

    def latest(self, before: float) -> str | None:
        """The run that was kept last before that moment."""
        sql = f"SELECT id FROM runs WHERE {_NOT_DELETED} AND made < ? ORDER BY made DESC, number DESC LIMIT 1"
        return next(iter(self._fetch_ids(sql, (before,))), None)

    def totals(self) -> tuple[int, int]:
        """How many runs are kept, and their bytes."""
        count, size = self._fetch_all(f"SELECT count(*), {_TOTAL_BYTES} FROM runs WHERE {_NOT_DELETED}")[0]
        return int(count), _check_type("bytes", size, int)

    def has_changed(self) -> bool:
        """Whether another program has changed something since this was last asked."""
        before, self._seen_version = self._seen_version, self._fetch_all("PRAGMA data_version")[0][0]
        return bool(before != self._seen_version)

    def insert(self, saved_run: SavedRunData, size: int) -> None:
        """A new run, whose recording takes `size` bytes; one that is there already stays as it is."""
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
        """Another title; an empty one for none."""
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
        """Whether it stands first, and stays."""
        self._connection.execute("UPDATE runs SET pinned = ? WHERE id = ?", (is_pinned, run))

    def mark_deleted(self, run: str, moment: float | None) -> None:
        """Out of every list, or (None) back in them."""
        self._connection.execute("UPDATE runs SET deleted = ? WHERE id = ?", (moment, run))

    def deleted(self, before: float) -> list[str]:
        """The runs that were marked as deleted before that moment."""
        return self._fetch_ids("SELECT id FROM runs WHERE deleted < ?", (before,))

    def remove(self, runs: Sequence[str]) -> None:
        """For good."""
        if not runs:
            return
        with transaction(self._connection):
            for run in runs:
                for (number,) in self._fetch_all("SELECT number FROM runs WHERE id = ?", (run,)):
                    self._index.remove(number)
                    self._connection.execute("DELETE FROM runs WHERE number = ?", (number,))

    def runs_over_budget(self, budget: int) -> list[str]:
        """What has to go for all to take at most `budget` bytes: deleted ones, then the oldest that are not pinned;
        never the run that was kept last."""
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
        """Those that a person has made, in order."""
        return [
            _parsed_object("ranking", row[0]) for row in self._fetch_all("SELECT ranking FROM rankings ORDER BY number")
        ]

    def add_rankings(self, rankings: Sequence[str]) -> None:
        """Behind those that are there."""
        with transaction(self._connection):
            self._connection.executemany("INSERT INTO rankings (ranking) VALUES (?)", [(line,) for line in rankings])

    def clear(self) -> None:
        """Nothing is left, in the file's free room neither."""
        with transaction(self._connection):
            self._connection.execute("DELETE FROM runs")
            self._index.rebuild()
        with suppress(sqlite3.OperationalError):  # another window reads: what is deleted is overwritten all the same
            self._connection.execute("VACUUM")
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()

    def rebuild_index(self) -> None:
        """Make anew what is searched by."""
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
    """It becomes the name of a file."""
    if not is_run_id(_check_type("id", value, str)):
        raise ValueError(tr("{id} is no run's id").format(id=beginning(repr(value), MAX_ID_LENGTH)))
    return str(value)


def _parsed_object(name: str, value: Any) -> dict[str, Any]:
    return as_object(parse_json(_check_type(name, value, str).encode()))


def _check_type(name: str, value: Any, kind: Any) -> Any:
    if not isinstance(value, kind):
        raise ValueError(tr("a run's “{name}” is of another kind").format(name=name))
    return value
