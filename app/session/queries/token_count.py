"""Counts the tokens of a prompt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from decodescope.app.session.queries.base import Query, Report
from decodescope.app.state.worker_messages import Prompt

if TYPE_CHECKING:
    from decodescope.app.session.local_models import LocalModels


class TokenCount(NamedTuple):
    """Length of a prompt and of the model's context, in tokens."""

    tokens: int
    context: int | None
    """None for a model without a limit."""


@dataclass(frozen=True)
class TokenCountQuery(Query):
    """Query for the number of tokens of a prompt, for the loaded model; None if it is another one."""

    replaces_earlier = True

    prompt: Prompt = ""

    def run(self, models: LocalModels, report: Report) -> TokenCount | None:
        """Count without running the model. Raises what `core.encode` raises."""
        from decodescope import core

        model = models.find(self.load)
        if model is None:
            return None
        prompt = self.prompt if isinstance(self.prompt, str) else list(self.prompt)
        return TokenCount(len(core.encode(model, prompt, unbounded=True)) if prompt else 0, model.context)
