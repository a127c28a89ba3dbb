"""Truncate texts between user-perceived characters, never inside one.

An emoji family, a flag or an accented letter consists of several code points. Which code points continue the previous
one follows Unicode's grapheme cluster rules (UAX #29), except for Hangul jamo: models write syllables.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO, cast

_JOINER = "\u200d"


def cut_short(text: str, most: int) -> str:
    """Return the text if it has at most `most` code points, otherwise its beginning with an ellipsis, within that
    length.
    """
    return text if len(text) <= most else f"{beginning(text, most - 1).rstrip()}…"


def beginning(text: str, most: int) -> str:
    """Return the longest beginning of at most `most` code points that ends between two characters."""
    end = min(max(most, 0), len(text))
    while 0 < end < len(text) and _continues_character(text, end):
        end -= 1
    return text[:end]


def _continues_character(text: str, position: int) -> bool:
    """Return whether the code point at `position` continues the character before it."""
    sign, before = text[position], text[position - 1]
    if sign == _JOINER or before == _JOINER or unicodedata.category(sign) in ("Mn", "Mc", "Me"):
        return True
    if "\U0001f3fb" <= sign <= "\U0001f3ff" or "\U000e0020" <= sign <= "\U000e007f":
        return True  # skin tones, and the letters of a region's flag
    return _is_flag(sign) and _flag_letters_before(text, position) % 2 == 1


def _is_flag(sign: str) -> bool:
    return "\U0001f1e6" <= sign <= "\U0001f1ff"


def _flag_letters_before(text: str, position: int) -> int:
    """Count the flag letters directly before `position`: two form one flag."""
    first = position
    while first > 0 and _is_flag(text[first - 1]):
        first -= 1
    return position - first


_CONTROL_CHARACTERS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 except tab and line feed, DEL, C1
    "\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"  # line separators; marks that change the writing direction
    "\ufff9-\ufffb\ufeff\U000e0001\U000e0020-\U000e007f"  # annotations and tags, which are invisible
    "\ud800-\udfff]"
)


def printable(text: str) -> str:
    r"""Escape every control character of `text` as in a Python string literal; tabs and line feeds stay."""
    return _CONTROL_CHARACTERS.sub(_escaped, text) if not text.isprintable() else text


def _escaped(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


class EscapingStream:
    """A text stream that escapes control characters. A carriage return is kept at the beginning of a write, where a
    progress bar returns to the start of its line, and before a line feed.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write the text and return its length."""
        if text.isprintable():
            self._stream.write(text)
        else:
            start = "\r" if text.startswith("\r") else ""
            self._stream.write(start + printable(text[len(start) :].replace("\r\n", "\n")))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write each line."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._stream)


@contextmanager
def escape_streams() -> Iterator[None]:
    """Wrap standard output and standard error within the block."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (_wrapped(stream) for stream in before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def _wrapped(stream: Any) -> Any:
    """Return the wrapped stream; None if the program has no terminal (pythonw on Windows)."""
    return stream if stream is None or isinstance(stream, EscapingStream) else EscapingStream(stream)


def unescaped_stream(stream: object) -> TextIO:
    """Return the stream behind an `EscapingStream`, for a program that escapes texts itself; others unchanged."""
    return stream._stream if isinstance(stream, EscapingStream) else cast("TextIO", stream)
