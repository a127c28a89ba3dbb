"""Keeps the outcomes of claims for each model in a file of the data folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from decodescope.app.storage.json_files import UnreadableError, as_object, keep_copy, locked, read_object, write_json
from decodescope.core.claims import ClaimOutcome, outcome_from_json
from decodescope.core.errors import StudyError

FILE = "claims.json"
MAX_OUTCOMES = 2_000


class ClaimStore:
    """Outcomes by claim, and by model with its weights. `folder()` returns the data folder, read on first use."""

    def __init__(self, folder: Callable[[], Path]) -> None:
        self._folder = folder
        self._outcomes: dict[tuple[str, str], ClaimOutcome] | None = None

    def find(self, claim: str, model: str) -> ClaimOutcome | None:
        """Return the outcome of a claim on a model; None if it was not tested."""
        return self._read().get((claim, model))

    def keep(self, claim: str, model: str, outcome: ClaimOutcome) -> None:
        """Store an outcome in place of the earlier one of the same claim and model. Raises StorageError."""
        folder = self._folder()
        folder.mkdir(parents=True, exist_ok=True)
        with locked(folder):
            self._outcomes = None  # another window may have stored some
            kept = self._read()
            kept.pop((claim, model), None)
            kept[claim, model] = outcome
            for key in list(kept)[: max(0, len(kept) - MAX_OUTCOMES)]:
                del kept[key]
            entries = [
                {"claim": claim, "model": model, "outcome": outcome.to_json()}
                for (claim, model), outcome in kept.items()
            ]
            write_json(folder / FILE, {"outcomes": entries})

    def _read(self) -> dict[tuple[str, str], ClaimOutcome]:
        if self._outcomes is None:
            self._outcomes = {}
            for one in self._entries():
                try:
                    outcome = outcome_from_json(as_object(one.get("outcome")))
                except (StudyError, UnreadableError):
                    continue  # of another version; it can be measured again
                self._outcomes[str(one.get("claim")), str(one.get("model"))] = outcome
        return self._outcomes

    def _entries(self) -> list[dict[str, object]]:
        path = self._folder() / FILE
        try:
            found = read_object(path).get("outcomes")
        except FileNotFoundError:
            return []
        except UnreadableError:
            keep_copy(path)
            return []
        return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
