"""Change single keys of a study's TOML text. Comments and everything else stay as they are. Imports no torch."""

from __future__ import annotations

import copy
import json
import math
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

Value: TypeAlias = Any
"""A value of TOML."""
MAX_LINE = 96
"""Length from which a list is written with an item per line."""
_KEY_PART = r"""(?:[A-Za-z0-9_-]+|"(?:[^"\\]|\\.)*"|'[^']*')"""
_KEY = re.compile(rf"\s*({_KEY_PART}(?:\s*\.\s*{_KEY_PART})*)\s*=")
_HEADER = re.compile(rf"\s*(\[{{1,2}})\s*({_KEY_PART}(?:\s*\.\s*{_KEY_PART})*)\s*\]{{1,2}}\s*(?:#.*)?$")
_BARE = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True)
class _Statement:
    """An assignment or the header of a table."""

    path: tuple[str, ...]
    first: int
    end: int
    """Lines from `first` up to, without, `end`."""
    is_header: bool = False
    is_in_list: bool = False
    """Whether it belongs to a table in a list (`[[cells]]`)."""
    key: str = ""
    """The key as it is written."""


def set_value(text: str, path: Sequence[str], value: object) -> str:
    """Return a TOML text in which the key at `path` has a value; None removes the key. Raises ValueError if the text is
    no valid TOML.

    Only the lines of that key change. If that is not possible, for example because a table has the name of the value,
    the whole text is written again, without its comments.
    """
    wanted = tomllib.loads(text)
    before = copy.deepcopy(wanted)
    _assign(wanted, path, value)
    if wanted == before:
        return text
    for edit in (_edit_lines, _append_table):
        try:
            edited = edit(text, tuple(path), wanted)
            if tomllib.loads(edited) == wanted:
                return edited
        except (ValueError, KeyError, IndexError):
            continue
    return format_toml(wanted)


def format_toml(table: Mapping[str, Value]) -> str:
    """Return a table as TOML: plain values first, then tables with headers."""
    lines = [f"{_format_key(name)} = {toml_value(one)}" for name, one in table.items() if not isinstance(one, dict)]
    for name, one in table.items():
        if isinstance(one, dict):
            lines += ["", f"[{_format_key(name)}]"]
            lines += [f"{_format_key(key)} = {toml_value(value)}" for key, value in one.items()]
    return "\n".join(lines).lstrip("\n") + "\n"


def toml_value(value: object, is_inline: bool = False) -> str:
    """Return a value as TOML; long lists take a line for each item, unless `is_inline`."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else ("nan" if math.isnan(value) else f"{value}")
    if isinstance(value, Mapping):
        items = ", ".join(f"{_format_key(str(name))} = {toml_value(one, True)}" for name, one in value.items())
        return f"{{ {items} }}" if items else "{}"
    if isinstance(value, list | tuple):
        line = "[" + ", ".join(toml_value(one, True) for one in value) + "]"
        if is_inline or len(line) <= MAX_LINE:
            return line
        return "[\n" + "".join(f"  {toml_value(one, True)},\n" for one in value) + "]"
    return str(value) if isinstance(value, int) else str(getattr(value, "isoformat", value.__str__)())


def _format_key(name: str) -> str:
    return name if _BARE.fullmatch(name) else toml_value(name)


def _assign(table: dict[str, Value], path: Sequence[str], value: object) -> None:
    """Set or remove a value; a table that becomes empty is removed."""
    *parents, last = path
    inner = table
    for name in parents:
        known = inner.get(name)
        if not isinstance(known, dict):
            if value is None:
                return
            known = inner[name] = {}
        inner = known
    if value is not None:
        inner[last] = list(value) if isinstance(value, tuple) else value
        return
    inner.pop(last, None)
    if parents and not inner:
        _assign(table, parents, None)


def _value_at(table: Mapping[str, Value], path: Sequence[str]) -> Value:
    found: Value = table
    for name in path:
        if not isinstance(found, dict) or name not in found:
            return None
        found = found[name]
    return found


def _statements(lines: Sequence[str]) -> Iterator[_Statement]:
    """Yield the assignments and headers of a valid TOML text."""
    table: tuple[str, ...] = ()
    is_in_list, place = False, 0
    while place < len(lines):
        if header := _HEADER.match(lines[place]):
            table, is_in_list = _key_path(header[2]), header[1] == "[["
            yield _Statement(table, place, place + 1, True, is_in_list)
        elif key := _KEY.match(lines[place]):
            end = place + 1
            while not _is_toml("\n".join(lines[place:end])):
                end += 1
                if end > len(lines):
                    raise ValueError(lines[place])
            yield _Statement((*table, *_key_path(key[1])), place, end, False, is_in_list, key[1])
            place = end
            continue
        place += 1


def _is_toml(text: str) -> bool:
    try:
        tomllib.loads(text)
    except ValueError:
        return False
    return True


def _key_path(key: str) -> tuple[str, ...]:
    """Return the parts of a key as it is written."""
    found: Value = tomllib.loads(f"{key} = 0")
    path: list[str] = []
    while isinstance(found, dict):
        ((name, found),) = found.items()
        path.append(name)
    return tuple(path)


def _edit_lines(text: str, path: tuple[str, ...], wanted: Mapping[str, Value]) -> str:
    """Replace, remove or insert the lines of one key."""
    lines = text.split("\n")
    statements = list(_statements(lines))
    holder = next(
        (
            one for one in statements
            if not one.is_header and not one.is_in_list and one.path == path[: len(one.path)]
        ),
        None,
    )  # fmt: skip
    value = _value_at(wanted, holder.path if holder is not None else path)
    if holder is not None:
        new = [] if value is None else [f"{_written_key(holder)} = {toml_value(value)}{_comment(lines, holder)}"]
        lines[holder.first : holder.end] = new
        return _without_empty_header("\n".join(lines), path, wanted)
    headers = [one for one in statements if one.is_header and one.path[: len(path)] == path]
    if headers:  # tables with this name, which the value replaces
        starts = [one.first for one in statements if one.is_header]
        for one in reversed(headers):
            end = min((start for start in starts if start > one.first), default=len(lines))
            del lines[one.first : end]
        if value is None:
            return "\n".join(lines)
        statements = list(_statements(lines))
    new_line = f"{_format_key(path[-1])} = {toml_value(value)}"
    parent = path[:-1]
    if not parent:
        first_header = next((one.first for one in statements if one.is_header), None)
        own = [one for one in statements if not one.is_header and (first_header is None or one.end <= first_header)]
        at = own[-1].end if own else 0
        lines.insert(at, new_line if own or first_header != 0 else f"{new_line}\n")
        return "\n".join(lines)
    parents = [one for one in statements if one.is_header and not one.is_in_list and one.path == parent]
    if not parents:
        raise KeyError(parent)
    header = parents[0]
    after = next((one.first for one in statements if one.is_header and one.first > header.first), len(lines))
    ends = [one.end for one in statements if header.first <= one.first < after]
    lines.insert(max(ends), new_line)
    return "\n".join(lines)


def _written_key(statement: _Statement) -> str:
    return statement.key.strip()


def _comment(lines: Sequence[str], statement: _Statement) -> str:
    """Return the comment at the end of an assignment of one line."""
    line = lines[statement.first]
    if statement.end - statement.first > 1:
        return ""
    for found in re.finditer("#", line):
        if _is_toml(line[: found.start()]) and line[: found.start()].strip():
            before = line[: found.start()]
            return before[len(before.rstrip()) :] + line[found.start() :].rstrip()
    return ""


def _without_empty_header(text: str, path: tuple[str, ...], wanted: Mapping[str, Value]) -> str:
    """Remove the header of a table that has become empty."""
    if len(path) < 2 or _value_at(wanted, path[:-1]) is not None:
        return text
    lines = text.split("\n")
    header = next((one for one in _statements(lines) if one.is_header and one.path == path[:-1]), None)
    if header is not None:
        del lines[header.first]
    return "\n".join(lines)


def _append_table(text: str, path: tuple[str, ...], wanted: Mapping[str, Value]) -> str:
    """Add a table with the key at the end."""
    name = ".".join(map(_format_key, path[:-1]))
    line = f"{_format_key(path[-1])} = {toml_value(_value_at(wanted, path))}"
    return f"{text.rstrip()}\n\n[{name}]\n{line}\n".lstrip("\n")
