"""Counts the tokens of a chat before it is sent, and the turns that do not fit the context."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from decodescope.app.session.queries.base import Query, Report
from decodescope.app.state.worker_messages import RunRequest

if TYPE_CHECKING:
    from decodescope.app.session.local_models import LocalModels


class ChatFit(NamedTuple):
    """How a chat fits the context of its model."""

    tokens: int
    """Tokens of all messages."""
    kept_tokens: int
    """Tokens of the messages that are sent."""
    room: int
    """Tokens reserved for the answer."""
    context: int
    dropped: int
    """Number of messages that are left out."""

    @property
    def is_too_long(self) -> bool:
        """Whether even the new messages alone do not fit."""
        return self.kept_tokens >= self.context


@dataclass(frozen=True)
class ChatFitQuery(Query):
    """Query for the fit of a chat; None if its model has no limit, is not loaded, or runs on another machine."""

    replaces_earlier = True
    yields_to_runs = True

    request: RunRequest

    def run(self, models: LocalModels, report: Report) -> ChatFit | None:
        """Count with the tokenizer and the chat template of the loaded model. Raises DecodescopeError."""
        from decodescope.app.session.worker_jobs import fit_chat, has_bounded_context

        model = models.find(self.load)
        if model is None or model.context is None or not has_bounded_context(model, self.request):
            return None
        fitted = fit_chat(model, self.request)
        dropped = len(self.request.prompt) - len(fitted.kept)
        return ChatFit(fitted.tokens, fitted.kept_tokens, fitted.room, model.context, dropped)
