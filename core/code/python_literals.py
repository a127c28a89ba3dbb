"""Values and calls as Python source, in lines of a readable length."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral, Real
from typing import Protocol, runtime_checkable

from core.errors import ParameterError
from core.parameter import short_repr
from resources.language import tr

LINE_WIDTH = 100
"""Characters of a line, where words allow it."""
_INDENT = "    "


@runtime_checkable
class ConfigObject(Protocol):
    """A small configuration class of transformers (a watermark's): its fields are its arguments."""

    def to_dict(self) -> dict[str, object]:
        """The fields."""
        ...


def literal(value: object) -> str:
    """One line of source that gives `value` back. Raises ParameterError for what cannot be written so."""
    match value:
        case None | bool():
            return repr(value)
        case str():
            return quoted(value)
        case Integral():
            return _integer_literal(int(value))
        case Real():
            return _float_literal(float(value))
        case Mapping():
            return f"{{{', '.join(f'{literal(key)}: {literal(item)}' for key, item in value.items())}}}"
        case tuple():
            return f"({', '.join(map(literal, value))}{',' if len(value) == 1 else ''})"
        case Sequence() | set() | frozenset():
            return f"[{', '.join(map(literal, value))}]"
        case ConfigObject():
            fields = ", ".join(f"{name}={literal(item)}" for name, item in value.to_dict().items())
            return f"{type(value).__name__}({fields})"
    raise _unwritable(value)


def _unwritable(value: object) -> ParameterError:
    return ParameterError(
        tr("{value} cannot be written as code.").format(value=short_repr(value)), tr("Give plain values.")
    )


def quoted(text: str) -> str:
    """A string literal of one line, in double quotes where that needs no more escapes."""
    shown = repr(text)
    return f'"{shown[1:-1]}"' if shown[0] == "'" and '"' not in shown else shown


def multiline_literal(text: str) -> str:
    """A string literal: of one line when it is short, else one literal a line, in brackets."""
    if len(text) <= LINE_WIDTH - 20 and "\n" not in text.rstrip("\n"):
        return quoted(text)
    lines = (part for line in text.splitlines(keepends=True) for part in _wrapped(line))
    return _bracketed("(", (quoted(line) for line in lines), ")", comma="")


def call_source(function: str, *arguments: str, **named: str) -> str:
    """A call of source texts; over several lines when one is too long."""
    parts = [*arguments, *(f"{name}={value}" for name, value in named.items())]
    line = f"{function}({', '.join(parts)})"
    if len(line) <= LINE_WIDTH - 15 and "\n" not in line:
        return line
    return _bracketed(f"{function}(", parts, ")")


def dict_literal(items: Mapping[str, object]) -> str:
    """A dictionary, over several lines when one is too long."""
    line = literal(items)
    if len(line) <= LINE_WIDTH - 20:
        return line
    return _bracketed("{", (f"{quoted(key)}: {literal(item)}" for key, item in items.items()), "}")


def _bracketed(opening: str, parts: Iterable[str], closing: str, comma: str = ",") -> str:
    return "\n".join((opening, *(indented(f"{part}{comma}") for part in parts), closing))


def indented(source: str) -> str:
    """Source one level deeper. No literal of here holds a line break of its own."""
    return "\n".join(f"{_INDENT}{line}" for line in source.split("\n"))


def _wrapped(line: str) -> list[str]:
    """A line in pieces that end behind a space, where it has one."""
    return re.findall(rf".{{1,{LINE_WIDTH - 24}}}(?:\s|$)|\S+\s?|\s+", line, re.DOTALL) or [line]


def _integer_literal(value: int) -> str:
    try:
        return repr(value)
    except ValueError as error:  # of more digits than Python writes
        raise _unwritable(value) from error


def _float_literal(value: float) -> str:
    return repr(value) if math.isfinite(value) else f'float("{value}")'
