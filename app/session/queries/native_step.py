"""Determines whether the loaded model uses native decode steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from decodescope.app.session.queries.base import Query, Report

if TYPE_CHECKING:
    from decodescope.app.session.local_models import LocalModels


@dataclass(frozen=True)
class NativeStepQuery(Query):
    """Query whether the loaded model of that name uses native code."""

    model: str

    def run(self, models: LocalModels, report: Report) -> bool:
        """Return whether native decode steps work, trying them once if needed; False if the model is not loaded."""
        from decodescope import core

        model = models.find(self.model)
        return model is not None and core.has_native_step(model)
