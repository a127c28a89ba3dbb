"""Text for a terminal: control characters are shown, not sent.

A file from elsewhere (a configuration, a reply, a file name) may hold escape sequences that set a terminal's title,
clear lines, or type into it. Everything that the program prints goes through `printable`, or through a stream that
`escape_streams` has wrapped.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

_CONTROL_CHARACTERS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 except tab and line feed, DEL, C1
    "\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"  # line separators; marks that change the direction of writing
    "\ufff9-\ufffb\ufeff\U000e0001\U000e0020-\U000e007f"  # annotations and tags: they are not seen
    "\ud800-\udfff]"
)


def printable(text: str) -> str:
    r"""`text` with every control character written out, as `\x1b`; tabs and line feeds stay."""
    return _CONTROL_CHARACTERS.sub(_escaped, text) if not text.isprintable() else text


def _escaped(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


class EscapingStream:
    """A text stream that writes control characters out. One carriage return stays: at the beginning of what is written,
    where a progress bar goes back to the start of its line, or before a line feed."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write the text; returns its length as that of any stream does."""
        if text.isprintable():
            self._stream.write(text)
        else:
            start = "\r" if text.startswith("\r") else ""
            self._stream.write(start + printable(text[len(start) :].replace("\r\n", "\n")))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write each of them."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._stream)


@contextmanager
def escape_streams() -> Iterator[None]:
    """Wrap standard output and standard error for the length of a block."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (_wrapped(stream) for stream in before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def _wrapped(stream: Any) -> Any:
    """None where the program has no terminal (pythonw on Windows)."""
    return stream if stream is None or isinstance(stream, EscapingStream) else EscapingStream(stream)
