"""Record a run while it is running: a separate thread writes pending events several times per second."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from functools import partial
from os import PathLike
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from decodescope.core.checks.arguments import check_events, check_path
from decodescope.core.errors import TraceError
from decodescope.core.events import Event, ModelIdentity, RunStarted
from decodescope.core.request import Request, check_request
from decodescope.core.settings import settings_by_name
from decodescope.core.system.system_errors import system_error_reason
from decodescope.core.trace.block_file import END, EVENTS, HEADER, BlockFile
from decodescope.core.trace.file_metadata import Failure, FileEnding, failure_of, write_ending, write_header
from decodescope.resources.language import tr

if TYPE_CHECKING:
    from transformers import GenerationConfig

_NOT_SETTINGS = {"transformers_version", "_from_model_config"}


def request_to_plain(request: Request) -> dict[str, object]:
    """Return the fields of `core.Request` by name: settings as mappings, draft models by their names."""
    held = {field.name: _plain_value(getattr(request, field.name)) for field in fields(Request)}
    return {
        **held,
        "config": _plain_settings(request.config),
        "drafters": [model.name for model in request.drafters],
    }


def _plain_settings(config: GenerationConfig | Mapping[str, object] | None) -> object:
    """Return settings by name; of a GenerationConfig, only those that differ from its defaults."""
    if config is None or isinstance(config, Mapping):
        return _plain_value(config)
    usual = type(config)().to_dict()
    held = config.to_dict().items()
    return {
        name: _plain_value(value)
        for name, value in held
        if name not in _NOT_SETTINGS and (name not in usual or usual[name] != value)
    }


def _plain_value(value: object) -> object:
    """Convert sequences to lists and mappings to dicts."""
    match value:
        case str() | bytes():
            return value
        case PurePath():
            return str(value)
        case Mapping():
            return {key: _plain_value(item) for key, item in value.items()}
        case Sequence():
            return [_plain_value(item) for item in value]
    return value


_FLUSH_SECONDS = 0.5
"""Seconds between two blocks: a killed program loses at most this much."""
_MAX_BLOCK_EVENTS = 1000
"""Maximum number of events in one block."""


def record(
    path: str | PathLike[str],
    events: Iterable[Event],
    request: Request,
    *,
    extra: Mapping[str, object] | None = None,
) -> Iterator[Event]:
    """Pass the events of a run on and write them to a new file at `path`.

    `extra` are JSON values stored for the reader of the file. An exception of the run is recorded and raised again. A
    full disk does not stop the run: TraceError is raised at its end. Raises TraceError immediately if the file cannot
    be created, and ParameterError for an invalid request.
    """
    check_path("path", path)
    check_request(request)
    check_events(events)
    if extra is not None:
        settings_by_name("extra", extra)
    return _record_events(Recorder(path, request, extra), events)


def _record_events(recorder: Recorder, events: Iterable[Event]) -> Iterator[Event]:
    failure: BaseException | None = None
    try:
        for event in events:
            recorder.write(event)
            yield event
    except BaseException as error:
        failure = error
        raise
    finally:
        if isinstance(events, Generator):  # lets the run clean up its caches now, however this generator ends
            events.close()
        recorder.close(failure_of(failure))
    if recorder.trouble is not None:
        raise recorder.trouble


class Recorder:
    """Writes one run to one file; errors of the file are only raised after the run."""

    def __init__(self, path: str | PathLike[str], request: Request, extra: Mapping[str, object] | None = None) -> None:
        """Create the file. Raises TraceError."""
        from decodescope.core.trace.block_writer import BlockWriter  # needs NumPy, which reading a file does not

        self.trouble: TraceError | None = None
        """The error because of which the file ends before the run; None if there was none."""
        self._path, self._request, self._extra = Path(path), request_to_plain(request), dict(extra or {})
        self._writer, self._pending = BlockWriter(), deque[Event]()
        self._written = self._unknown = 0
        self._start_time = time.time()
        self._identity: ModelIdentity | None = None
        self._has_header = False
        self._closed, self._lock = threading.Event(), threading.Lock()
        self._thread: threading.Thread | None = None
        try:
            self._file = BlockFile(self._path)
        except (OSError, ValueError) as error:
            raise _write_error(self._path, error) from None

    def write(self, event: Event) -> None:
        """Queue one event for writing; takes almost no time in this thread."""
        self._pending.append(event)
        if self._thread is None:
            self._start_thread(event)

    def close(self, failure: Failure | None = None) -> None:
        """Write pending events and the run's failure, if any; a second call does nothing."""
        if self._closed.is_set():
            return
        self._closed.set()
        self._flush()
        self._write_block(END, partial(write_ending, FileEnding(self._written, self._unknown, failure)))
        try:
            self._file.close()
        except OSError as error:
            self.trouble = self.trouble or _write_error(self._path, error)

    def _start_thread(self, event: Event) -> None:
        """Start the thread. The header is also left to the first block, so that the run starts without delay."""
        self._identity = event.identity if isinstance(event, RunStarted) else None
        self._thread = threading.Thread(target=self._flush_periodically, name="recorder", daemon=True)
        self._thread.start()

    def _flush_periodically(self) -> None:
        while not self._closed.wait(_FLUSH_SECONDS):
            self._flush()

    def _flush(self) -> None:
        """Write pending events, as far as the file accepts them."""
        with self._lock:  # close() must not wait for the thread to wake up
            if not self._has_header:
                self._has_header = True
                self._write_block(
                    HEADER, partial(write_header, self._request, self._identity, self._extra, self._start_time)
                )
            self._write_pending()

    def _write_pending(self) -> None:
        # One by one, because the run appends meanwhile; each deque operation is atomic.
        waiting = [self._pending.popleft() for _ in range(len(self._pending))]
        known = [event for event in waiting if self._writer.can_write(event)]
        self._unknown += len(waiting) - len(known)
        for start in range(0, len(known), _MAX_BLOCK_EVENTS):
            part = known[start : start + _MAX_BLOCK_EVENTS]
            self._write_block(EVENTS, partial(self._writer.encode_block, part))
            self._written += len(part)

    def _write_block(self, kind: bytes, make_block: Callable[[], bytes]) -> None:
        """Create and write a block; on any error, the file ends before it and the run continues."""
        if self.trouble is None:
            try:
                self._file.write(kind, make_block())
            except Exception as error:
                self.trouble = _write_error(self._path, error)


def _write_error(path: Path, error: Exception) -> TraceError:
    reason = system_error_reason(error)
    return TraceError(
        tr("The run cannot be recorded in {path}: {reason}.").format(path=path, reason=reason),
        tr("Choose a folder with write permission, on a disk with free space."),
    )
