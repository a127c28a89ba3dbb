"""What a person has preferred, beside the runs: it stays when those are forgotten."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from app.storage.history.database_file import HistoryDatabase

T = TypeVar("T")


class RankingStore:
    """Each an object of JSON, in the order in which they were kept. Raises StorageError."""

    def __init__(self, file: HistoryDatabase) -> None:
        self._file = file

    def all(self, read: Callable[[dict[str, Any]], T]) -> list[T]:
        """What `read` makes of every one; it raises ValueError for what can be none, which is damage."""
        return self._file.run(lambda rows: [read(values) for values in rows.rankings()])

    def add(self, rankings: Sequence[dict[str, Any]]) -> None:
        """These behind the others."""
        lines = [json.dumps(ranking, ensure_ascii=False) for ranking in rankings]
        self._file.run(lambda rows: rows.add_rankings(lines))
