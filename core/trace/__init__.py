"""Record runs to files and replay them without a model. The format: docs/trace-format.md."""

from decodescope.core.trace.file_metadata import Failure, Header, failure_of
from decodescope.core.trace.live_address import RECEIVED, LiveAddress
from decodescope.core.trace.recorder import Recorder, record
from decodescope.core.trace.schema import VERSION
from decodescope.core.trace.trace_file import Trace, read, read_header_of, replay
from decodescope.core.trace.trace_stream import TraceStream
from decodescope.core.trace.validation import EventChecker

__all__ = [
    "RECEIVED", "VERSION", "EventChecker", "Failure", "Header", "LiveAddress", "Recorder", "Trace", "TraceStream",
    "failure_of", "read", "read_header_of", "record", "replay",
]  # fmt: skip
