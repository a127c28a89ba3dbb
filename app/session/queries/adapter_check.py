"""Checks whether an adapter fits the loaded model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from decodescope.app.session.queries.base import Query, Report

if TYPE_CHECKING:
    from decodescope.app.session.local_models import LocalModels


class AdapterInfo(NamedTuple):
    """Properties of an adapter."""

    kind: str
    """Kind of adapter and file, for people."""
    base: str
    """The model it was trained for; empty if unknown."""
    ranks: tuple[int, ...]
    layers: int
    """Number of layers that it changes."""
    bytes: int


@dataclass(frozen=True)
class AdapterQuery(Query):
    """Query whether an adapter fits the loaded model, and what it is; None if the model is not loaded, or remote."""

    path: str

    def run(self, models: LocalModels, report: Report) -> AdapterInfo | None:
        """Load the adapter, again if its files have changed, and describe it. Raises DecodescopeError."""
        model = models.find(self.load)
        if model is None:
            return None
        if model.adapters.is_outdated(self.path):
            model.adapters.remove(self.path)
        found = model.adapters.load(self.path, self.load.allow_pickle)
        return AdapterInfo(found.kind, found.base, found.ranks, len(found.layers), found.nbytes)
