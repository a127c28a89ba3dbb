"""Explains on the worker's thread why two runs differ."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from decodescope.app.session.queries.base import Query, Report

if TYPE_CHECKING:
    from decodescope.app.session.local_models import LocalModels
    from decodescope.core import RunDifference
    from decodescope.core.events import Event


@dataclass(frozen=True)
class DifferenceQuery(Query):
    """Query for the first difference of two runs and its cause. Reports sentences on its progress."""

    replaces_earlier = True
    yields_to_runs = True

    a: Path | tuple[Event, ...] = field(compare=False, repr=False)
    b: Path | tuple[Event, ...] = field(compare=False, repr=False)
    """Recordings or events."""
    tries: bool = False
    """Whether A is repeated with parts of B on the model `load`, if the recorded values leave causes open."""

    def run(self, models: LocalModels, report: Report) -> RunDifference:
        """Return the difference. Raises DecodescopeError."""
        from decodescope import core

        model = None
        if self.tries:
            models.load(self.load)
            model = models.loaded_for(self.load)
        return core.explain_difference(self.a, self.b, models=model, cancel=self.cancel, progress=report)
