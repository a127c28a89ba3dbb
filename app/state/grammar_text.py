"""A grammar as people type it: the text of each kind, and what a command line gives."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from app.state.text_lines import escape, unescape
from resources.language import tr

_BY_SUFFIX = {".json": "json_schema", ".lark": "lark", ".txt": "choice", ".regex": "regex"}
_LARGEST_FILE = 2**20


def to_text(kind: str, content: Any) -> str:
    """What an editor shows; `from_text` reads it back."""
    if kind == "json_schema" and not isinstance(content, str):
        return json.dumps(content, indent=2, ensure_ascii=False)
    if kind == "choice" and isinstance(content, list | tuple):
        return "\n".join(escape(str(word)) for word in content)
    return content if isinstance(content, str) else json.dumps(content)


def from_text(kind: str, text: str) -> dict[str, Any]:
    """The setting that a text of a kind means; a schema that is no JSON yet stays text."""
    if kind == "json_schema":
        try:
            return {kind: json.loads(text)}
        except (ValueError, RecursionError):
            return {kind: text}
    if kind == "choice":
        return {kind: [unescape(line) for line in text.replace("\r\n", "\n").split("\n") if line]}
    return {kind: text}


def parse_grammar(text: str) -> dict[str, Any]:
    """A command line's value: JSON as in a request, or a file (.json a schema, .lark, .txt a choice, one a line,
    .regex). Raises ValueError."""
    if not text.startswith("{"):
        return _read_file(Path(text))
    try:
        found = json.loads(text)
    except ValueError as error:
        raise ValueError(tr("this is no JSON: {error}").format(error=error)) from None
    except RecursionError:
        raise ValueError(tr("it is nested too deep")) from None
    return dict(found)


def _read_file(path: Path) -> dict[str, Any]:
    kind = _BY_SUFFIX.get(path.suffix.lower())
    if kind is None:
        raise ValueError(
            tr("give JSON as in {example}, or a file that ends with {suffixes}").format(
                example='{"choice": ["red", "blue"]}', suffixes=", ".join(_BY_SUFFIX)
            )
        )
    try:
        if path.exists() and not path.is_file():  # a pipe would wait for ever, a device would never end
            raise ValueError(tr("{file} is a folder, a pipe or a device").format(file=path.name))
        if path.stat().st_size > _LARGEST_FILE:
            raise ValueError(tr("{file} is too large for a grammar").format(file=path.name))
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise ValueError(tr("{file} cannot be read").format(file=path)) from None
    made = from_text(kind, text.rstrip("\n") if kind == "regex" else text)
    inner = made.get("json_schema")
    return dict(inner) if isinstance(inner, Mapping) and len(inner) == 1 and set(inner) <= set(_KINDS) else made


_KINDS = tuple(_BY_SUFFIX.values())
