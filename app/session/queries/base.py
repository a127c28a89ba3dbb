"""Base class of queries, and their answers."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from decodescope.app.state.worker_messages import ErrorReport, LoadRequest
from decodescope.core.common.lightweight_dataclass import plain

if TYPE_CHECKING:
    from decodescope.app.session.local_models import LocalModels

Report = Callable[[object], None]
"""Delivers a part of a result, at once."""


@plain(frozen=True)
class Query:
    """A request to the worker besides runs: its inputs are the fields of a subclass, `run` computes the result.

    `Session.request` sends it and `Session.answered` returns the answer. It is created on the main thread and run on
    the worker's thread: import `core` and torch only inside `run`.
    """

    replaces_earlier: ClassVar[bool] = False
    """Whether it cancels an earlier query of its class."""
    yields_to_runs: ClassVar[bool] = False
    """Whether a run that starts cancels it."""
    is_reproducible: ClassVar[bool] = True
    """Whether the result is the same on every machine; otherwise it is None in pictures that must not change."""

    load: LoadRequest = field(default=LoadRequest(), kw_only=True)
    """The model that it is about; the engine of that model answers it. Empty if it needs none."""
    cancel: threading.Event = field(default_factory=threading.Event, kw_only=True, repr=False, compare=False)
    """Set to cancel it: before its turn it is answered without a result, afterwards `run` may check it."""

    def run(self, models: LocalModels, report: Report) -> object:
        """Return the result, computed with the models on this machine; `report` delivers parts of it before.

        Runs on the worker's thread. Any exception is answered as an error. A run that was read from a file may need a
        model that is not loaded.
        """
        raise NotImplementedError

    def remote_result(self, model: str) -> object:
        """Return the result for `model` on another machine: None. Override to raise DecodescopeError with a reason."""
        return None


class Answer(NamedTuple):
    """Answer to a query: a part of its result, or with `has_ended` its end with the `result` or an `error`."""

    query: Query
    result: Any = None
    """As `Query.run` returns or reports it; None if the query was cancelled before its turn."""
    error: ErrorReport | None = None
    has_ended: bool = True
