"""Read recorded runs, without torch or transformers."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from decodescope.core.common.text import cut_short as shorten
from decodescope.core.errors import TraceError
from decodescope.core.events import Event
from decodescope.core.parameter import short_repr
from decodescope.core.trace.block_file import (
    END,
    EVENTS,
    HEADER,
    TraceBlock,
    damaged_error,
    read_blocks,
    truncated_error,
)
from decodescope.core.trace.block_reader import BlockReader
from decodescope.core.trace.file_metadata import Failure, Header, read_ending, read_header
from decodescope.core.trace.schema import FileLayout
from decodescope.core.trace.validation import EventChecker
from decodescope.resources.language import join_names, tr


@dataclass(frozen=True, slots=True)
class Trace:
    """A recorded run."""

    header: Header
    events: list[Event]
    trouble: TraceError | None = None
    """Why later events are missing: the file is truncated or damaged. None if it is complete."""
    failure: Failure | None = None
    """The error that the run itself raised."""
    notices: tuple[str, ...] = ()
    """Sentences on parts of the file unknown to this version."""

    @property
    def is_whole(self) -> bool:
        """Whether the file is complete: False if the program was killed or the file is damaged."""
        return self.trouble is None


def read(path: str | PathLike[str]) -> Trace:
    """Read a recorded run, or its intact part. Raises TraceError for a file without readable content."""
    reader = _TraceReader(Path(path))
    header, events = reader.header, list[Event]()
    try:
        events.extend(reader.events())  # keeps the events before an error
    except TraceError as error:
        return Trace(header, events, error, None, reader.notices())
    return Trace(header, events, None, reader.failure, reader.notices())


def read_header_of(path: str | PathLike[str]) -> Header:
    """Read only the header. Raises TraceError."""
    return _TraceReader(Path(path)).header


def replay(path: str | PathLike[str]) -> Iterator[Event]:
    """Yield the events of a recorded run in order. Raises TraceError, after the last intact event."""
    if not isinstance(path, str | PathLike):
        raise TraceError(
            tr("The path of the recording is {value}, which is not a path.").format(value=short_repr(path)),
            tr("Pass the path of a file."),
        )
    yield from _TraceReader(Path(path)).events()


_DATA_ERRORS = (ValueError, TypeError, LookupError, OverflowError, RecursionError, MemoryError)
"""Errors that a block with a matching checksum but invalid content can cause."""


@contextmanager
def _garbage_collection_off() -> Iterator[None]:
    """Pause garbage collection: nothing decoded from a block is garbage, and searching for it would double the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


class _TraceReader:
    """Reads one file once."""

    def __init__(self, path: Path, is_checked: bool = True) -> None:
        """Read the header. Raises TraceError.

        Unchecked, it also returns events that no run emits, as tests of the format need.
        """
        self._path, self._blocks = path, read_blocks(path)
        self.header, self._layout = self._read_header()
        self._reader = BlockReader(self._layout, check_ranges=is_checked)
        self._checker = EventChecker() if is_checked else None
        self.failure: Failure | None = None
        self._unsupported_events = 0
        self._unknown_blocks = 0

    def events(self) -> Iterator[Event]:
        """Yield the events of every block. Raises TraceError."""
        count, skipped = 0, self._reader.skipped
        for block in self._blocks:
            if block.kind == END:
                self._read_end(block, count + skipped.total())
                return
            if block.kind == EVENTS:
                events = self._read_block(block)
                count += len(events)
                yield from self._checked(events)
            else:
                self._unknown_blocks += 1
        raise truncated_error(self._path)

    def notices(self) -> tuple[str, ...]:
        """Return sentences on what was not read."""
        found = []
        if self._layout.unknown_fields:
            names = [_short_name(name) for name in sorted(self._layout.unknown_fields)[:_MAX_LISTED]]
            found.append(_left_out_notice(join_names(names)))
        for name, count in sorted(self._reader.skipped.items())[:_MAX_LISTED]:
            found.append(_left_out_notice(f"{count:,} × {_short_name(name)}"))
        if self._unknown_blocks:
            found.append(_left_out_notice(tr("{count:,} blocks").format(count=self._unknown_blocks)))
        if self._unsupported_events:
            found.append(
                tr("{count:,} events have classes that the file format does not support.").format(
                    count=self._unsupported_events
                )
            )
        return tuple(found)

    def _read_header(self) -> tuple[Header, FileLayout]:
        block = next(self._blocks, None)
        if block is None:
            raise truncated_error(self._path)
        if block.kind != HEADER:
            raise damaged_error(self._path, tr("it does not begin with a header"))
        try:
            return read_header(block.data)
        except ValueError as error:
            raise damaged_error(self._path, str(error)) from None

    def _read_block(self, block: TraceBlock) -> list[Event]:
        try:
            with _garbage_collection_off():
                events = self._reader.read_block(block.data, block.stored_bytes)
        except _DATA_ERRORS as error:
            raise damaged_error(self._path, str(error)) from None
        if self._checker is not None:
            self._checker.allow(block.stored_bytes)
        return events

    def _checked(self, events: list[Event]) -> Iterator[Event]:
        """Yield the events up to the first that contradicts an earlier one, and raise TraceError there."""
        for event in events:
            try:
                if self._checker is not None:
                    self._checker.check(event)
            except _DATA_ERRORS as error:
                raise damaged_error(self._path, str(error)) from None
            yield event

    def _read_end(self, block: TraceBlock, count: int) -> None:
        try:
            ending = read_ending(block.data)
        except ValueError as error:
            raise damaged_error(self._path, str(error)) from None
        if ending.events != count:
            raise damaged_error(self._path, tr("its last block does not match the others"))
        self._unsupported_events, self.failure = ending.left_out, ending.failure


_MAX_LISTED = 20
"""Maximum number of unknown fields and events listed by name."""


def _short_name(name: str) -> str:
    """Shorten a name from the file for a notice."""
    return shorten(name, 60)


def _left_out_notice(detail: str) -> str:
    return tr("Skipped: {what}, written by a later version of Decodescope.").format(what=detail)
