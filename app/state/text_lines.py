"""Lists of texts as people type them: one text a line, with escapes for what a line cannot hold, or a JSON list."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

_ESCAPES = {"\\": "\\", "n": "\n", "t": "\t", "r": "\r"}
_WRITTEN = {sign: f"\\{letter}" for letter, sign in _ESCAPES.items()}
_ESCAPED = re.compile(r"\\(u[0-9a-fA-F]{4}|[\\ntr])")
_INVISIBLE = re.compile("[\\\\\x00-\x1f\x7f\x85\u2028\u2029]")


def escape(text: str) -> str:
    """Write a text in one line: `unescape` reads it back."""
    return _INVISIBLE.sub(lambda found: _WRITTEN.get(found[0]) or f"\\u{ord(found[0]):04x}", text)


def unescape(line: str) -> str:
    """Read `\\n`, `\\t`, `\\r`, `\\\\` and `\\u2028`; any other backslash is one."""
    return _ESCAPED.sub(lambda found: _ESCAPES.get(found[1]) or chr(int(found[1][1:], 16)), line)


def write_lines(texts: Sequence[str]) -> str:
    """Write texts one a line, or as a JSON list where lines would be read as something else."""
    lines = "\n".join(map(escape, texts))
    return lines if read_lines(lines) == list(texts) else json.dumps(list(texts), ensure_ascii=False)


def read_lines(text: str) -> list[str]:
    """Read texts: a JSON list of them, or one a line. Empty lines are none."""
    return json_texts(text) or [unescape(line) for line in text.split("\n") if line]


def json_texts(text: str) -> list[str]:
    """Return what a JSON list of texts holds; empty where `text` is none."""
    if not text.lstrip().startswith("["):
        return []
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return []
    return found if isinstance(found, list) and all(isinstance(item, str) for item in found) else []
