"""Estimates the memory of a run without loading anything."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from decodescope.app.session.queries.base import Query, Report
from decodescope.app.state.worker_messages import RunRequest

if TYPE_CHECKING:
    from decodescope.app.session.local_models import LocalModels


class MemoryEstimate(NamedTuple):
    """Memory requirement of a run, as text and as numbers."""

    summary: str
    advice: str
    """Advice on how to make it fit; empty if it fits."""
    tokens: int
    """Tokens of the longest sequence."""
    rows: int
    """Sequences, beams or candidates in parallel."""
    needed_bytes: int = 0
    """Total bytes."""
    cache: int = 0
    """Cache bytes."""
    speed: str = ""
    """Predicted speed if layers are read from disk."""


@dataclass(frozen=True)
class MemoryQuery(Query):
    """Query for the memory of a run; None if it runs on another machine."""

    replaces_earlier = True
    is_reproducible = False

    request: RunRequest

    def run(self, models: LocalModels, report: Report) -> MemoryEstimate:
        """Estimate with the loaded models, or with blueprints of those not loaded. Raises DecodescopeError."""
        from decodescope import core
        from decodescope.app.session.worker_jobs import with_phrase_ids

        model, *drafters = models.models_or_blueprints(self.request)
        loaded_bytes = sum(known.weight_bytes for known in (model, *drafters) if models.is_loaded(known))
        estimate = core.estimate(model, with_phrase_ids(model, self.request), loaded_bytes, drafters=drafters)
        return MemoryEstimate(
            estimate.figures, estimate.advice, estimate.tokens, estimate.rows, estimate.needed, estimate.cache,
            models.throughput_text(self.load, model),
        )  # fmt: skip
