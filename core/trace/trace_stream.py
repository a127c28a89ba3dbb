"""Read a recording that arrives in portions while its run goes on."""

from __future__ import annotations

from pathlib import Path

from decodescope.core.events import Event
from decodescope.core.trace.block_file import END, EVENTS, HEADER, BlockParser, TraceBlock, damaged_error
from decodescope.core.trace.block_reader import BlockReader
from decodescope.core.trace.file_metadata import Failure, Header, read_ending, read_header
from decodescope.core.trace.validation import EventChecker
from decodescope.resources.language import tr


class TraceStream:
    """Decodes the bytes of a recording as they arrive; everything is checked as in a file. `name` is shown in
    errors.
    """

    def __init__(self, name: str) -> None:
        self.header: Header | None = None
        """None until it has arrived."""
        self.failure: Failure | None = None
        """The error that the run itself raised."""
        self.is_complete = False
        """Whether the recording has reached its end."""
        self._name, self._parser = Path(name), BlockParser(name)
        self._reader: BlockReader | None = None
        self._checker = EventChecker()

    def feed(self, data: bytes) -> list[Event]:
        """Return the events that `data` completes. Raises TraceError for anything but a recording."""
        events: list[Event] = []
        for block in self._parser.feed(data):
            try:
                events += self._read(block)
            except (ValueError, TypeError, LookupError, OverflowError, RecursionError, MemoryError) as error:
                raise damaged_error(self._name, str(error)) from None
        return events

    def _read(self, block: TraceBlock) -> list[Event]:
        if self.is_complete:
            raise ValueError(tr("it continues after its end"))
        if self._reader is None:
            if block.kind != HEADER:
                raise ValueError(tr("it does not begin with a header"))
            self.header, layout = read_header(block.data)
            self._reader = BlockReader(layout, check_ranges=True)
        elif block.kind == END:
            self.failure, self.is_complete = read_ending(block.data).failure, True
        elif block.kind == EVENTS:
            events = self._reader.read_block(block.data, block.stored_bytes)
            self._checker.allow(block.stored_bytes)
            for event in events:
                self._checker.check(event)
            return events
        return []
