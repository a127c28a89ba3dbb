"""Format values and calls as Python source, in lines of a readable length."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral, Real
from typing import Protocol, runtime_checkable

from decodescope.core.errors import ParameterError
from decodescope.core.parameter import short_repr
from decodescope.resources.language import tr

LINE_WIDTH = 100
"""Maximum line length, where words allow it."""
_INDENT = "    "


@runtime_checkable
class ConfigObject(Protocol):
    """A small configuration class of transformers (such as a watermarking config) whose fields are its arguments."""

    def to_dict(self) -> dict[str, object]:
        """Return the fields."""
        ...


def literal(value: object) -> str:
    """Return one line of source that evaluates to `value`. Raises ParameterError if that is impossible."""
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
        tr("{value} cannot be written as code.").format(value=short_repr(value)),
        tr("Use plain values such as numbers, texts and lists."),
    )


def quoted(text: str) -> str:
    """Return a one-line string literal, in double quotes unless that needs more escapes."""
    shown = repr(text)
    return f'"{shown[1:-1]}"' if shown[0] == "'" and '"' not in shown else shown


def multiline_literal(text: str) -> str:
    """Return a string literal; a long text becomes one literal per line, in brackets."""
    if len(text) <= LINE_WIDTH - 20 and "\n" not in text.rstrip("\n"):
        return quoted(text)
    lines = (part for line in text.splitlines(keepends=True) for part in _wrapped(line))
    return _bracketed("(", (quoted(line) for line in lines), ")", comma="")


def call_source(function: str, *arguments: str, **named: str) -> str:
    """Return a call with source texts as arguments, over several lines if it is long."""
    parts = [*arguments, *(f"{name}={value}" for name, value in named.items())]
    line = f"{function}({', '.join(parts)})"
    if len(line) <= LINE_WIDTH - 15 and "\n" not in line:
        return line
    return _bracketed(f"{function}(", parts, ")")


def dict_literal(items: Mapping[str, object]) -> str:
    """Return a dictionary literal, over several lines if it is long."""
    line = literal(items)
    if len(line) <= LINE_WIDTH - 20:
        return line
    return _bracketed("{", (f"{quoted(key)}: {literal(item)}" for key, item in items.items()), "}")


def _bracketed(opening: str, parts: Iterable[str], closing: str, comma: str = ",") -> str:
    return "\n".join((opening, *(indented(f"{part}{comma}") for part in parts), closing))


def indented(source: str) -> str:
    """Indent source by one level. Literals of this module contain no line breaks."""
    return "\n".join(f"{_INDENT}{line}" for line in source.split("\n"))


def _wrapped(line: str) -> list[str]:
    """Split a line into pieces that end after a space where possible."""
    return re.findall(rf".{{1,{LINE_WIDTH - 24}}}(?:\s|$)|\S+\s?|\s+", line, re.DOTALL) or [line]


def _integer_literal(value: int) -> str:
    try:
        return repr(value)
    except ValueError as error:  # more digits than Python converts
        raise _unwritable(value) from error


def _float_literal(value: float) -> str:
    return repr(value) if math.isfinite(value) else f'float("{value}")'
