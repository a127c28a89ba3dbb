"""Values of settings as people type and read them: command lines, free text fields, one-line summaries."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from core.strategies import Parameter

_TRUE = {"1", "true", "yes", "on"}
_FALSE = {"0", "false", "no", "off"}
_UNSET = {"none", "null", "auto", "unset"}


class ValueProblem(ValueError):
    """A typed value that its setting cannot take; the message says why."""


def parse(parameter: Parameter, text: str) -> Any:
    """The value of `parameter` written as `text`, as on a command line. Raises ValueProblem."""
    text = text.strip()
    if parameter.default is None and text.lower() in {*_UNSET, "off", ""}:
        return None
    return within(parameter, _READERS[parameter.kind](parameter, text))


def within(parameter: Parameter, value: Any) -> Any:
    """`value`, when it lies in the parameter's range. Raises ValueProblem."""
    if value is None or isinstance(value, bool) or not isinstance(value, int | float):
        return value
    low, high = parameter.minimum, parameter.maximum
    if low is not None and (value < low or (parameter.exclusive and value == low)):
        raise ValueProblem(f"{parameter.name} must be {'above' if parameter.exclusive else 'at least'} {low:g}.")
    if high is not None and value > high:
        raise ValueProblem(f"{parameter.name} must be at most {high:g}.")
    return value


def parse_lines(text: str) -> list[str] | None:
    """One string a line, `\\n` and `\\t` in them meaning what they say; None when there is none."""
    lines = [line.replace("\\n", "\n").replace("\\t", "\t") for line in text.splitlines() if line]
    return lines or None


def parse_tokens(text: str) -> Any:
    """A JSON value (ids, lists of ids), or one phrase a line; None when there is nothing. Raises ValueProblem."""
    text = text.strip()
    if not text:
        return None
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        if text[0] in "[{":
            raise ValueProblem(f"This list does not end well: {error.msg} at character {error.pos + 1}.") from None
    return parse_lines(text)


def format_text(value: Any) -> str:
    """The text that `parse_lines` or `parse_tokens` reads back as `value`."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple) and value and all(isinstance(item, str) for item in value):
        return "\n".join(item.replace("\n", "\\n").replace("\t", "\\t") for item in value)
    return json.dumps(value)


def short(value: Any) -> str:
    """A value in a few characters, for summaries."""
    if value is None:
        return "off"
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, float):
        return f"{value:g}"
    text = str(value)
    return text if len(text) <= 16 else text[:15] + "…"


def summary(parameters: Iterable[Parameter], values: Mapping[str, Any], most: int = 2) -> str:
    """`temperature 0.8 · top-p 0.92`: the first few of `values`, in the order of `parameters`, the length last."""
    told = sorted((p for p in parameters if p.name in values), key=lambda p: p.name == "max_new_tokens")
    parts = [f"{_lower(p.title)} {short(values[p.name])}" for p in told]
    more = len(parts) - most
    return " · ".join(parts[:most]) + (f" · +{more}" if more > 0 else "")


def _lower(title: str) -> str:
    return title[:1].lower() + title[1:]


def _integer(parameter: Parameter, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueProblem(f"{parameter.name} takes a whole number, not {text!r}.") from None


def _number(parameter: Parameter, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueProblem(f"{parameter.name} takes a number, not {text!r}.") from None


def _boolean(parameter: Parameter, text: str) -> bool:
    if text.lower() in _TRUE | _FALSE:
        return text.lower() in _TRUE
    raise ValueProblem(f"{parameter.name} is either true or false, not {text!r}.")


def _choice(parameter: Parameter, text: str) -> Any:
    by_text = {str(choice): choice for choice in parameter.choices}
    if text in by_text:
        return by_text[text]
    if text.startswith("["):
        return parse_tokens(text)
    raise ValueProblem(f"{parameter.name} is one of {', '.join(by_text)}; {text!r} is not.")


_READERS = {
    "int": _integer,
    "float": _number,
    "bool": _boolean,
    "choice": _choice,
    "text": lambda _parameter, text: text,
    "lines": lambda _parameter, text: parse_lines(text),
    "tokens": lambda _parameter, text: parse_tokens(text),
}
