"""Finding runs by what stands in them: by an index of every three letters where SQLite has one, else by reading all.

Words are looked for as parts of words, in any order, and all of them have to be there; so “drag” finds “dragons”, and
a language without spaces is searched as well as any.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from app.storage.history.history_record import normalize_for_search

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
