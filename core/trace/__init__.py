"""A run in a file: recorded while it goes on, replayed without a model. The format: docs/trace-format.md."""

from core.trace.consistency import EventChecker
from core.trace.file_ending import Failure, failure_of
from core.trace.file_header import Header
from core.trace.recorder import Recorder, record
from core.trace.schema import VERSION
from core.trace.trace_file import Trace, read, read_header_of, replay

__all__ = [
    "VERSION", "EventChecker", "Failure", "Header", "Recorder", "Trace", "failure_of", "read", "read_header_of",
    "record", "replay",
]  # fmt: skip
