"""The rankings that a person has made: in the history's database, and written beside it for what trains on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core import labs
from core.errors import DecodescopeError
from resources.language import tr

if TYPE_CHECKING:
    from app.control.history import History


class SavedRankings:
    """Everything raises PreferenceError for what is no ranking, StorageError and OSError where the disk refuses."""

    def __init__(self, history: History, file: Path) -> None:
        """`file`: JSON lines, all that a training reads; what stands in it from before is taken over."""
        self._history, self._file = history, file

    def all(self) -> list[labs.preference.Ranking]:
        """In the order in which they were made."""
        saved = self._history.query_or_raise(
            lambda store: store.rankings.all(parse_ranking), list[labs.preference.Ranking]()
        )
        if saved or not self._file.is_file():
            return saved
        earlier = labs.preference.read_rankings(self._file)
        self._append(earlier)
        return earlier

    def add(self, rankings: Sequence[labs.preference.Ranking]) -> None:
        """Keep these as well; in the file alone while the history cannot be used."""
        before = self.all()
        self._append(rankings)
        labs.preference.write_rankings(self._file, [*before, *rankings])

    def _append(self, rankings: Sequence[labs.preference.Ranking]) -> None:
        records = [asdict(ranking) for ranking in rankings]
        self._history.query_or_raise(lambda store: store.rankings.add(records), None)


def parse_ranking(values: dict[str, Any]) -> labs.preference.Ranking:
    """The ranking that was kept so. Raises ValueError for what is none."""
    try:
        return labs.preference.Ranking(values["prompt"], tuple(values["completions"]), tuple(values["ranks"]))
    except (KeyError, TypeError, DecodescopeError) as error:
        raise ValueError(tr("a ranking in it cannot be read: {error}").format(error=error)) from error
