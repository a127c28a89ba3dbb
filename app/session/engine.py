"""The engine interface of the worker, and the core engine. Call it only from the worker thread, as it imports torch."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

from decodescope.app.session.local_models import LocalModels
from decodescope.app.session.worker_jobs import score_stream, trim_chat, with_phrase_ids
from decodescope.app.state.worker_messages import LoadRequest, ModelInfo, RunRequest

if TYPE_CHECKING:
    from decodescope.app.session.queries.base import Query, Report
    from decodescope.core.events import Event


class Engine(Protocol):
    """Engine interface of the worker; tests use a scripted one."""

    def load(self, request: LoadRequest) -> ModelInfo:
        """Load a model. Raises core.errors.DecodescopeError."""
        ...

    def prepare(self, request: RunRequest) -> RunRequest:
        """Return the request as the loaded model can run it: the same object, or one without the chat turns that do not
        fit.
        """
        ...

    def stream(self, request: RunRequest, cancel: threading.Event) -> Iterator[Event]:
        """Yield the events of a prepared run; check `cancel` before every forward pass."""
        ...

    def answer(self, query: Query, report: Report) -> object:
        """Return the result of a query; `report` delivers parts of it before. Raises core.errors.DecodescopeError."""
        ...


class CoreEngine(LocalModels):
    """Streams runs of the models on this machine, and answers queries with them."""

    def prepare(self, request: RunRequest) -> RunRequest:
        """Return the request without the chat turns that do not fit the context."""
        return trim_chat(self.loaded_for(request.load), request)

    def stream(self, request: RunRequest, cancel: threading.Event) -> Iterator[Event]:
        """Return the events of the run."""
        from decodescope import core

        model = self.loaded_for(request.load)
        model.adapters.set(request.adapters or (), request.load.allow_pickle)
        if request.scored:
            return score_stream(model, request, self.comparison_model(request), cancel)
        return core.stream(
            model,
            with_phrase_ids(model, request),
            cancel=cancel,
            prefixes=self.prefix_store(request.prefix_budget),
            drafters=self.load_drafters(request),
            scores=self.score_cache() if request.top_n else None,
        )

    def answer(self, query: Query, report: Report) -> object:
        """Run the query with the models on this machine."""
        return query.run(self, report)
