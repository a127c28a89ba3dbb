"""CSV text from rows. Texts that a spreadsheet would run as formulas are escaped. No Qt in here."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from decodescope.core.common.csv_text import CsvRows as CsvRows
from decodescope.core.common.csv_text import is_formula as is_formula
from decodescope.core.common.csv_text import to_csv as to_csv
from decodescope.resources.language import join_names, tr

_ESCAPES = {"\\": "\\", "n": "\n", "t": "\t", "r": "\r"}
_WRITTEN = {sign: f"\\{letter}" for letter, sign in _ESCAPES.items()}
_ESCAPED = re.compile(r"\\(u[0-9a-fA-F]{4}|[\\ntr])")
_INVISIBLE = re.compile("[\\\\\x00-\x1f\x7f\x85\u2028\u2029]")


def escape(text: str) -> str:
    """Write a text on one line; `unescape` reads it back."""
    return _INVISIBLE.sub(lambda found: _WRITTEN.get(found[0]) or f"\\u{ord(found[0]):04x}", text)


def unescape(line: str) -> str:
    r"""Replace `\n`, `\t`, `\r`, `\\` and `\uXXXX`; any other backslash is literal."""
    return _ESCAPED.sub(lambda found: _ESCAPES.get(found[1]) or chr(int(found[1][1:], 16)), line)


def write_lines(texts: Sequence[str]) -> str:
    """Write one text per line, or a JSON list if the lines would be read differently."""
    lines = "\n".join(map(escape, texts))
    return lines if read_lines(lines) == list(texts) else json.dumps(list(texts), ensure_ascii=False)


def read_lines(text: str) -> list[str]:
    """Read a JSON list of texts, or one text per line. Empty lines are skipped."""
    return json_texts(text) or [unescape(line) for line in text.split("\n") if line]


def json_texts(text: str) -> list[str]:
    """Return the texts of a JSON list; empty if `text` is not one."""
    if not text.lstrip().startswith("["):
        return []
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return []
    return found if isinstance(found, list) and all(isinstance(item, str) for item in found) else []


_BY_SUFFIX = {".json": "json_schema", ".lark": "lark", ".gbnf": "gbnf", ".txt": "choice", ".regex": "regex"}
GRAMMAR_FILES = tuple(_BY_SUFFIX)
"""Endings of files that contain a grammar."""
_LARGEST_FILE = 2**20


def to_text(kind: str, content: Any) -> str:
    """Return the text for an editor; `from_text` converts it back."""
    if kind == "json_schema" and not isinstance(content, str):
        return json.dumps(content, indent=2, ensure_ascii=False)
    if kind == "choice" and isinstance(content, list | tuple):
        return "\n".join(escape(str(word)) for word in content)
    return content if isinstance(content, str) else json.dumps(content)


def from_text(kind: str, text: str) -> dict[str, Any]:
    """Return the setting for a text of this kind; an invalid JSON schema stays text."""
    if kind == "json_schema":
        try:
            return {kind: json.loads(text)}
        except (ValueError, RecursionError):
            return {kind: text}
    if kind == "choice":
        return {kind: [unescape(line) for line in text.replace("\r\n", "\n").split("\n") if line]}
    return {kind: text}


def parse_grammar(text: str) -> dict[str, Any]:
    """Parse a command-line value: JSON as in a request, or a file (.json for a schema, .lark, .gbnf, .txt for choices,
    one per line, .regex).

    Raises ValueError.
    """
    if not text.startswith("{"):
        return _read_file(Path(text))
    try:
        found = json.loads(text)
    except ValueError as error:
        raise ValueError(tr("not valid JSON: {error}").format(error=error)) from None
    except RecursionError:
        raise ValueError(tr("it is nested too deeply")) from None
    return dict(found)


def _read_file(path: Path) -> dict[str, Any]:
    kind = _BY_SUFFIX.get(path.suffix.lower())
    if kind is None:
        raise ValueError(
            tr("pass JSON such as {example}, or a file that ends with {suffixes}").format(
                example='{"choice": ["red", "blue"]}', suffixes=join_names(_BY_SUFFIX)
            )
        )
    try:
        if path.exists() and not path.is_file():  # reading a pipe or device may never end
            raise ValueError(tr("{file} is not a regular file").format(file=path.name))
        if path.stat().st_size > _LARGEST_FILE:
            raise ValueError(tr("{file} is too large for a grammar").format(file=path.name))
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise ValueError(tr("{file} cannot be read").format(file=path)) from None
    made = from_text(kind, text.rstrip("\n") if kind == "regex" else text)
    inner = made.get("json_schema")
    return dict(inner) if isinstance(inner, Mapping) and len(inner) == 1 and set(inner) <= set(_KINDS) else made


_KINDS = tuple(_BY_SUFFIX.values())


FieldKind = Literal["string", "number", "boolean", "choice"]


class SchemaField(NamedTuple):
    """A field of the object."""

    name: str
    kind: FieldKind = "string"
    is_required: bool = True
    max_length: int = 0
    """Maximum length of a text in characters; 0 means no limit."""
    words: tuple[str, ...] = ()
    """Words of a choice."""


def form_problem(fields: Sequence[SchemaField]) -> str:
    """Return what is missing in a form, as a sentence; empty if the form is complete."""
    names = [field.name for field in fields]
    if not fields or not all(names):
        return tr("Give every field a name.")
    if len(set(names)) < len(names):
        return tr("Two fields have the same name.")
    if any(field.kind == "choice" and not field.words for field in fields):
        return tr("Enter the words of every choice.")
    return ""


def to_schema(fields: Sequence[SchemaField]) -> dict[str, Any]:
    """Return the JSON schema of an object with exactly these fields, in this order."""
    return {
        "type": "object",
        "properties": {field.name: _field_schema(field) for field in fields},
        "required": [field.name for field in fields if field.is_required],
        "additionalProperties": False,
    }


def from_schema(schema: object) -> tuple[SchemaField, ...] | None:
    """Return the fields of a schema that `to_schema` could have created; None for any other."""
    if not isinstance(schema, Mapping) or not isinstance(schema.get("properties"), Mapping):
        return None
    required = schema.get("required")
    found = tuple(_field(name, value, required) for name, value in schema["properties"].items())
    fields = tuple(field for field in found if field is not None)
    return fields if len(fields) == len(found) and to_schema(fields) == schema else None


def _field_schema(field: SchemaField) -> dict[str, Any]:
    if field.kind == "choice":
        return {"enum": list(field.words)}
    if field.kind == "string" and field.max_length:
        return {"type": "string", "maxLength": field.max_length}
    return {"type": field.kind}


def _field(name: str, value: object, required: object) -> SchemaField | None:
    if not isinstance(value, Mapping) or not isinstance(required, list):
        return None
    words, kind, longest = value.get("enum"), value.get("type"), value.get("maxLength", 0)
    if isinstance(words, list) and all(isinstance(word, str) for word in words):
        return SchemaField(name, "choice", name in required, words=tuple(words))
    if kind not in ("string", "number", "boolean") or not isinstance(longest, int):
        return None
    return SchemaField(name, kind, name in required, longest)
