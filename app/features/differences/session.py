"""Compares runs, precisions, caches and drafts on the worker's thread."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from decodescope.app.session.queries.base import Query, Report
from decodescope.app.state.worker_messages import RunRequest

if TYPE_CHECKING:
    from decodescope.app.session.local_models import LocalModels
    from decodescope.core import DraftCheck, NearMisses, RunDifference
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


@dataclass(frozen=True)
class NearMissQuery(Query):
    """Query for the near misses of a greedy text. Reports sentences on its progress."""

    replaces_earlier = True
    yields_to_runs = True

    request: RunRequest = field(compare=False, repr=False)
    weights: str = ""
    """Number format of the other side's weights; empty for the same."""
    cache: str = ""
    """Cache of the other side; empty for the same."""

    def run(self, models: LocalModels, report: Report) -> NearMisses:
        """Return all words of the text. Raises DecodescopeError."""
        from decodescope import core

        models.load(self.load)
        model = models.loaded_for(self.load)
        other = models.load_beside(replace(self.load, weights=self.weights)) if self.weights else None
        return core.near_misses(
            model, self.request, other, cache=self.cache or None, cancel=self.cancel, progress=report
        )  # fmt: skip


@dataclass(frozen=True)
class DraftCheckQuery(Query):
    """Query for the effect of verification rules with a draft model. Reports sentences on its progress."""

    replaces_earlier = True
    yields_to_runs = True

    request: RunRequest = field(compare=False, repr=False)
    """With the name of the draft model."""

    def run(self, models: LocalModels, report: Report) -> DraftCheck:
        """Return the positions of the text. Raises DecodescopeError."""
        from decodescope import core

        models.load(self.load)
        model, draft = models.loaded_for(self.load), models.load_drafters(self.request)[0]
        request = replace(self.request, draft_names=())
        return core.check_draft(model, draft, request, cancel=self.cancel, progress=report)
