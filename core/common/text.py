"""Texts cut short between the characters that a reader sees, never inside one of them.

A family of emoji, a flag or a letter with its accents is several code points. What goes on the one before it is told by
Unicode's own data, as in its rules for grapheme clusters (UAX #29), but for the jamo of Hangul: models write syllables.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

_JOINER = "\u200d"


def cut_short(text: str, most: int) -> str:
    """The text if it has at most `most` code points, else the beginning of it with an ellipsis, as long as that."""
    return text if len(text) <= most else f"{beginning(text, most - 1).rstrip()}…"


def beginning(text: str, most: int) -> str:
    """The longest beginning of at most `most` code points that ends between two characters."""
    end = min(max(most, 0), len(text))
    while 0 < end < len(text) and _continues_character(text, end):
        end -= 1
    return text[:end]


def _continues_character(text: str, place: int) -> bool:
    """Whether what stands at `place` belongs to the character before it."""
    sign, before = text[place], text[place - 1]
    if sign == _JOINER or before == _JOINER or unicodedata.category(sign) in ("Mn", "Mc", "Me"):
        return True
    if "\U0001f3fb" <= sign <= "\U0001f3ff" or "\U000e0020" <= sign <= "\U000e007f":
        return True  # the tone of a skin, the letters of a region's flag
    return _is_flag(sign) and _flag_letters_before(text, place) % 2 == 1


def _is_flag(sign: str) -> bool:
    return "\U0001f1e6" <= sign <= "\U0001f1ff"


def _flag_letters_before(text: str, place: int) -> int:
    """How many halves of flags stand right before `place`: two make one."""
    first = place
    while first > 0 and _is_flag(text[first - 1]):
        first -= 1
    return place - first


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
