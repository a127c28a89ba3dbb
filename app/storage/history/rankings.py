"""What a person has preferred, beside the runs: it stays when those are forgotten."""

from __future__ import annotations

from collections.abc import Sequence

from app.storage.history.open_file import OpenFile


class Rankings:
    """Each a JSON text, in the order in which they were kept. Raises StorageError."""

    def __init__(self, file: OpenFile) -> None:
        self._file = file

    def all(self) -> list[str]:
        """Every one."""
        return self._file.do(lambda rows: rows.rankings())

    def add(self, rankings: Sequence[str]) -> None:
        """These behind the others."""
        self._file.do(lambda rows: rows.add_rankings(rankings))
