"""The rankings that a person has made: in the history's database, and written beside it for what trains on them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from core import labs

if TYPE_CHECKING:
    from app.control.history import History


class KeptRankings:
    """Everything raises PreferenceError for what is no ranking, StorageError and OSError where the disk refuses."""

    def __init__(self, history: History, file: Path) -> None:
        """`file`: JSON lines, all that a training reads; what stands in it from before is taken over."""
        self._history, self._file = history, file

    def all(self) -> list[labs.preference.Ranking]:
        """In the order in which they were made."""
        store = self._history.store
        found = [_read(line) for line in store.rankings.all()] if store is not None else []
        if found or not self._file.is_file():
            return found
        earlier = labs.preference.read_rankings(self._file)
        if store is not None:
            store.rankings.add([_line(ranking) for ranking in earlier])
        return earlier

    def add(self, rankings: Sequence[labs.preference.Ranking]) -> None:
        """Keep these as well; in the file alone while the history cannot be used."""
        before, store = self.all(), self._history.store
        if store is not None:
            store.rankings.add([_line(ranking) for ranking in rankings])
        labs.preference.write_rankings(self._file, [*before, *rankings])


def _line(ranking: labs.preference.Ranking) -> str:
    return json.dumps(asdict(ranking), ensure_ascii=False)


def _read(line: str) -> labs.preference.Ranking:
    values = json.loads(line)
    return labs.preference.Ranking(values["prompt"], tuple(values["completions"]), tuple(values["ranks"]))
