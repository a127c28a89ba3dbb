"""Compares runs, precisions, caches and drafts on the worker's thread."""

from __future__ import annotations

from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from decodescope.app.session.queries.base import Query, Report
from decodescope.app.state.worker_messages import LoadRequest, RunRequest
from decodescope.core.common.lightweight_dataclass import plain
from decodescope.resources.language import tr

if TYPE_CHECKING:
    from decodescope import core
    from decodescope.app.session.local_models import LocalModels
    from decodescope.core import DraftCheck, EngineCheck, NearMisses, RunDifference
    from decodescope.core.events import Event


@plain(frozen=True)
class DifferenceQuery(Query):
    """Query for the first difference of two runs and its cause. Reports sentences on its progress."""

    replaces_earlier = True
    yields_to_runs = True

    a: Path | tuple[Event, ...] = field(compare=False, repr=False)
    b: Path | tuple[Event, ...] = field(compare=False, repr=False)
    """Recordings or events."""
    tries: bool = False
    """Whether A is repeated with parts of B on the model `load`, if the recorded values leave causes open."""
    other_load: LoadRequest | None = None
    """The model of B; None if it is that of A."""

    def run(self, models: LocalModels, report: Report) -> RunDifference:
        """Return the difference. Raises DecodescopeError."""
        from decodescope import core

        pair: tuple[core.LoadedModel | None, core.LoadedModel | None] = (None, None)
        if self.tries:
            models.load(self.load)
            first = second = models.loaded_for(self.load)
            if self.other_load is not None and not self.cancel.is_set():
                report(tr("Loading {model}").format(model=self.other_load.model))
                second = models.load_beside(self.other_load)
            pair = first, second
        return core.explain_difference(self.a, self.b, models=pair, cancel=self.cancel, progress=report)


@plain(frozen=True)
class NearMissQuery(Query):
    """Query for the near misses of a greedy text. Reports sentences on its progress."""

    replaces_earlier = True
    yields_to_runs = True

    request: RunRequest = field(compare=False, repr=False)
    weights: str = ""
    """Number format of the other side's weights; empty for the same."""
    cache: str = ""
    """Cache of the other side; empty for the same."""
    model: str = ""
    """Model of the other side; empty for the same."""

    def run(self, models: LocalModels, report: Report) -> NearMisses:
        """Return all words of the text. Raises DecodescopeError."""
        from decodescope import core

        models.load(self.load)
        model = models.loaded_for(self.load)
        other = None
        if self.weights:
            other = models.load_beside(replace(self.load, weights=self.weights))
        elif self.model:
            report(tr("Loading {model}").format(model=self.model))
            other = models.load_other_beside(self.request, self.model)
        return core.near_misses(
            model, self.request, other, cache=self.cache or None, cancel=self.cancel, progress=report
        )  # fmt: skip


@plain(frozen=True)
class DraftCheckQuery(Query):
    """Query for the effect of verification rules with a draft model. Reports sentences on its progress."""

    replaces_earlier = True
    yields_to_runs = True

    request: RunRequest = field(compare=False, repr=False)
    """With the name of the draft model, unless a head drafts."""
    head: str | None = None
    """Name of the EAGLE head that drafts; empty for the model's own heads."""

    def run(self, models: LocalModels, report: Report) -> DraftCheck:
        """Return the positions of the text. Raises DecodescopeError."""
        from decodescope import core

        models.load(self.load)
        model = models.loaded_for(self.load)
        draft = models.load_drafters(self.request)[0] if self.head is None else self.head
        request = replace(self.request, draft_names=())
        return core.check_draft(model, draft, request, cancel=self.cancel, progress=report)


@plain(frozen=True)
class EngineCheckQuery(Query):
    """Query for the sequential test of an engine. Reports the state after each answer."""

    replaces_earlier = True
    is_reproducible = False

    engine: LoadRequest
    request: RunRequest = field(compare=False, repr=False)
    """With the prompt."""
    answers: int
    tokens: int
    """Of each answer."""

    def run(self, models: LocalModels, report: Report) -> EngineCheck:
        """Return the state at the end. `load` is the model to compare with; empty: what the engine reports. Raises
        DecodescopeError.
        """
        from decodescope import core

        reference = None
        if self.load.model:
            models.load(self.load)
            reference = models.loaded_for(self.load)
        engine = core.remote.connect(self.engine.model, allow_plain=self.engine.allow_plain)
        return core.check_engine(
            engine, self.request, reference, answers=self.answers, tokens=self.tokens, cancel=self.cancel,
            progress=report,
        )  # fmt: skip
