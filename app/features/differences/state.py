"""The runs that can be compared. No Qt in here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from decodescope.app.state.worker_messages import LoadRequest

if TYPE_CHECKING:
    from decodescope.core.events import Event

MAX_RUNS = 200
"""Number of saved runs in the lists, the latest ones."""


@dataclass(frozen=True)
class RunChoice:
    """A run in the lists."""

    id: str
    title: str
    """Name, model and strategy."""
    source: Path | tuple[Event, ...] = field(compare=False)
    """Its recording, or its events."""
    load: LoadRequest = field(default_factory=LoadRequest)
    """Its model; empty if unknown."""


class SavedRuns(Protocol):
    """The history, as far as it is needed here."""

    def query(self, question: Callable[[Any], Any], default: Any) -> Any:
        """Return the result of `question`, called with the store."""
        ...


def list_runs(history: SavedRuns, shown: RunChoice | None) -> list[RunChoice]:
    """Return the shown run, if it is not saved, and the latest saved runs."""
    found = history.query(_saved_runs, [])
    is_saved = shown is None or any(one.id == shown.id for one in found)
    return found if is_saved or shown is None else [shown, *found]


def _saved_runs(store: Any) -> list[RunChoice]:
    records = store.records(store.ids("", MAX_RUNS))
    return [
        RunChoice(record.id, run_title(record.name, record.model, record.strategy), store.trace_path(record.id))
        for record in records
    ]


def run_title(name: str, model: str, strategy: str) -> str:
    """Return a run's line in the lists."""
    from decodescope.core import strategies
    from decodescope.resources.language import tr

    known = strategies.registry.get(strategy)
    return " · ".join(part for part in (name, model, tr(known.title) if known is not None else strategy) if part)
