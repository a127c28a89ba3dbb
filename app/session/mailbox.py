"""What crosses between the two threads: a run to be done, its events, and the answers to everything asked."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from app.state.decode_backend import BackendRequest
from app.state.worker_messages import (
    ErrorReport,
    LoadRequest,
    MemoryEstimate,
    ModelInfo,
    PrefixRequest,
    PrefixResult,
    RunRequest,
    StepReplayRequest,
)
from core.lightweight_dataclass import plain

if TYPE_CHECKING:
    from core import WhatIf
    from core.events import Event


class Mailbox:
    """Events on their way to the window. Appending and taking are single steps of a deque: no lock is held."""

    def __init__(self) -> None:
        self._events: deque[Event] = deque()
        self.is_urgent = False
        """It holds something that is to be shown at once."""

    def put(self, event: Event, is_urgent: bool = False) -> bool:
        """Add one; True when the window must be told: it is the first in the box, or urgent.

        Looking after adding, not before: the window may empty the box in between.
        """
        self._events.append(event)
        if is_urgent:
            self.is_urgent = True
        return is_urgent or len(self._events) == 1

    def take(self) -> list[Event]:
        """Everything in it, oldest first."""
        self.is_urgent, taken = False, []
        while self._events:
            taken.append(self._events.popleft())
        return taken


@plain(eq=False)
class WorkerJob:
    """One run as the worker sees it."""

    number: int
    request: RunRequest
    recording: Path | None = None
    """Where it is to be recorded, if anywhere."""
    cancel: threading.Event = field(default_factory=threading.Event)
    end_reported: threading.Event = field(default_factory=threading.Event)
    """Set once the window has been told of its end."""
    mailbox: Mailbox = field(default_factory=Mailbox)


class ModelLoaded(NamedTuple):
    """Answer to a load request: `info` or `error`; `for_run` when a run asked for it, not the window."""

    request: LoadRequest
    for_run: bool = False
    info: ModelInfo | None = None
    error: ErrorReport | None = None


class RunEnded(NamedTuple):
    """Answer to a job, once all its events are in its mailbox; `error` is None when the stream ended by itself."""

    number: int
    error: ErrorReport | None = None


class Recording(NamedTuple):
    """The recording of a run that has ended, closed; `error` says why it is not whole."""

    path: Path
    error: ErrorReport | None = None


class Answer(NamedTuple):
    """What came of a prefix served, a run reckoned, a step supposed, or who takes the steps: `result` or `error`."""

    request: PrefixRequest | RunRequest | StepReplayRequest | BackendRequest
    result: PrefixResult | MemoryEstimate | WhatIf | bool | None = None
    error: ErrorReport | None = None
