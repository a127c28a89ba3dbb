"""Setting values as text: command lines, free text fields and one-line summaries."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeGuard

from decodescope import core
from decodescope.app.state.text_formats import parse_grammar, read_lines, unescape, write_lines
from decodescope.core import cut_short
from decodescope.resources.language import join_names, mark, tr

if TYPE_CHECKING:
    from decodescope.core.strategies import Parameter


def is_number(value: object) -> TypeGuard[int | float]:
    """Return whether the value is an int or a float."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_integer(value: object) -> TypeGuard[int]:
    """Return whether the value is an int."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_count(value: object) -> TypeGuard[int]:
    """Return whether the value is an int ≥ 0, like a token id."""
    return is_integer(value) and value >= 0


_TRUE = {"1", "true", "yes", "on"}
_FALSE = {"0", "false", "no", "off"}
_UNSET = {"none", "null", "auto", "unset"}
LARGEST_INT = 2**31 - 1
"""Largest value of an integer editor."""
_MAX_DEPTH = 4
"""Deepest nesting of lists: token ids, phrases of ids, groups of phrases."""


class InvalidValueError(ValueError):
    """A typed value that is invalid for its setting; the message says why."""


def parse(parameter: Parameter, text: str) -> Any:
    """Parse `text` as a value of `parameter`, as on a command line.

    Words such as `none` and `off` unset a setting, except for text settings, which only an empty text unsets. Raises
    InvalidValueError.
    """
    if is_text_parameter(parameter):
        if not text:
            return None if parameter.default is None else _PARSERS[parameter.kind](parameter, text)
        return (
            [text] if parameter.kind == "lines" and not text.strip("\n") else _PARSERS[parameter.kind](parameter, text)
        )
    text = text.strip()
    if parameter.default is None and text.lower() in {*_UNSET, "off", ""}:
        return None
    return check_range(parameter, _PARSERS[parameter.kind](parameter, text))


def is_text_parameter(parameter: Parameter) -> bool:
    """Return whether any text is a valid value: stop strings, banned words, a text."""
    if parameter.kind == "tokens":
        return parameter.form in ("phrases", "alternatives")
    return parameter.kind in ("text", "lines", "words")


def check_range(parameter: Parameter, value: Any) -> Any:
    """Return `value` if it is in the parameter's range.

    Raises InvalidValueError.
    """
    if not is_number(value):
        return value
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidValueError(tr("{name} must be a finite number.").format(name=parameter.name))
    low, high = parameter.minimum, LARGEST_INT if parameter.maximum is None else parameter.maximum
    if low is not None and (value < low or (parameter.exclusive and value == low)):
        template = (
            tr("{name} must be greater than {low:.10g}.")
            if parameter.exclusive
            else tr("{name} must be at least {low:.10g}.")
        )
        raise InvalidValueError(template.format(name=parameter.name, low=low))
    if value > high:
        raise InvalidValueError(tr("{name} must be at most {high:.10g}.").format(name=parameter.name, high=high))
    if low is None and value < -LARGEST_INT:
        raise InvalidValueError(tr("{name} must be at least {low:.10g}.").format(name=parameter.name, low=-LARGEST_INT))
    return value


def invalid_reason(parameter: Parameter, value: Any) -> str:
    """Return why no editor for `parameter` can show `value` from a file; empty if one can."""
    if value is None:
        return "" if parameter.default is None else tr("{name} is required.").format(name=parameter.name)
    if not _TYPE_CHECKS[parameter.kind](parameter, value):
        return tr("{name} cannot be {value}.").format(name=parameter.name, value=short_text(value))
    try:
        check_range(parameter, value)
    except InvalidValueError as problem:
        return str(problem)
    return ""


def parse_lines(text: str) -> list[str] | None:
    r"""Parse one string per line, with escapes such as `\n`, or a JSON list of strings; None if there are none."""
    return read_lines(text) or None


def parse_tokens(text: str) -> Any:
    """Parse a JSON value (ids, lists of ids), or one phrase per line; None if empty.

    Raises InvalidValueError.
    """
    if not text.strip():
        return parse_lines(text)
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        if text.lstrip()[0] in "[{":
            raise InvalidValueError(
                tr("This list is not valid JSON: {problem} at character {place}.").format(
                    problem=error.msg, place=error.pos + 1
                )
            ) from None
    except ValueError:
        raise InvalidValueError(tr("A number in this list has too many digits.")) from None
    except RecursionError:
        raise InvalidValueError(tr("This list is nested too deeply.")) from None
    return parse_lines(text)


def parse_names(parameter: Parameter, text: str) -> list[str] | None:
    """Parse names separated by commas, arrows, spaces or line breaks, or a JSON list; None if there are none.

    Raises InvalidValueError.
    """
    names = [name.strip("\"'") for name in text.strip().strip("[]").translate(_SEPARATORS).split()]
    if unknown := next((name for name in names if name not in parameter.choices), None):
        raise InvalidValueError(
            tr("{name} accepts {names}, not “{text}”.").format(
                name=parameter.name, names=join_names(map(str, parameter.choices)), text=short_text(unknown)
            )
        )
    if twice := next((name for place, name in enumerate(names) if name in names[:place]), None):
        raise InvalidValueError(tr("{name} contains “{text}” twice.").format(name=parameter.name, text=twice))
    return names or None


_SEPARATORS = str.maketrans(",;>→，、", " " * 6)


def format_text(value: Any) -> str:
    """Return the text that `parse_lines` or `parse_tokens` parses back to `value`."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple) and value and all(isinstance(item, str) for item in value):
        lines = write_lines(value)
        return lines if _is_round_trip(lines, list(value)) else json.dumps(list(value), ensure_ascii=False)
    return json.dumps(value)


def _is_round_trip(text: str, value: list[str]) -> bool:
    """Return whether the lines parse back to `value` where token ids are allowed too: digits alone would be an id."""
    try:
        return bool(parse_tokens(text) == value)
    except InvalidValueError:
        return False


_GRAMMAR_NAMES = {
    "json_schema": mark("JSON schema"), "regex": mark("regex"), "lark": mark("Lark"), "gbnf": "GBNF",
    "choice": mark("choice"),
}  # fmt: skip
"""Kind of grammar → its name in a summary."""


def short_text(value: Any) -> str:
    """Return a short text of a value, for summaries."""
    if value is None:
        return tr("off")
    if isinstance(value, bool):
        return tr("on") if value else tr("off")
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, Mapping) and len(value) == 1 and next(iter(value)) in _GRAMMAR_NAMES:
        ((kind, content),) = value.items()
        content = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
        return cut_short(" ".join(f"{tr(_GRAMMAR_NAMES[kind])} {content}".split()), 24)
    text = json.dumps(value, ensure_ascii=False) if isinstance(value, Mapping) else str(value)
    return text if len(text) <= 16 else text[:15] + "…"


def summary(parameters: Iterable[Parameter], values: Mapping[str, Any], max_count: int = 2) -> str:
    """Return `temperature 0.8 · top-p 0.92`: the first few of `values`, in the order of `parameters`, with the length
    last.
    """
    ordered = sorted((p for p in parameters if p.name in values), key=lambda p: p.name == "max_new_tokens")
    parts = [f"{_lower_first(tr(p.title))} {short_text(values[p.name])}" for p in ordered]
    more = len(parts) - max_count
    return " · ".join(parts[:max_count]) + (f" · +{more}" if more > 0 else "")


def _is_text(value: Any) -> bool:
    """Return whether the value is a string without unpaired surrogates, which no tokenizer can read."""
    return isinstance(value, str) and not any("\ud800" <= character <= "\udfff" for character in value)


def _is_nested_list(value: Any, depth: int = 0) -> bool:
    """Return whether the value consists of numbers and texts in lists, nested to a limited depth."""
    if isinstance(value, list | tuple):
        return depth < _MAX_DEPTH and all(_is_nested_list(item, depth + 1) for item in value)
    return _is_text(value) or (is_number(value) and -(2**63) <= value < 2**63)


def _is_choice(parameter: Parameter, value: Any) -> bool:
    ids = isinstance(value, list) and bool(value) and all(map(is_integer, value))
    return ids or any(value == choice and type(value) is type(choice) for choice in parameter.choices)


_TYPE_CHECKS: Mapping[str, Callable[[Parameter, Any], bool]] = {
    "int": lambda _parameter, value: is_integer(value),
    "float": lambda _parameter, value: is_number(value),
    "bool": lambda _parameter, value: isinstance(value, bool),
    "choice": _is_choice,
    "text": lambda _parameter, value: _is_text(value),
    "lines": lambda _parameter, value: _is_text(value) or (isinstance(value, list) and all(map(_is_text, value))),
    "tokens": lambda _parameter, value: _is_nested_list(value),
    "names": lambda parameter, value: isinstance(value, list | tuple) and all(n in parameter.choices for n in value),
    "grammar": lambda _parameter, value: isinstance(value, dict) and not core.grammar_problem(value),
    "words": lambda _parameter, value: (
        isinstance(value, list | tuple) and all(_is_text(word) and word for word in value)
    ),
    "word_values": lambda _parameter, value: isinstance(value, list | tuple) and all(map(_is_word_value, value)),
}


def _is_word_value(value: Any) -> bool:
    """Return whether the value is a pair of a word and a number of usual size."""
    is_pair = isinstance(value, list | tuple) and len(value) == 2
    return is_pair and _is_text(value[0]) and bool(value[0].strip()) and is_number(value[1]) and abs(value[1]) <= 10_000


def parse_word_values(text: str) -> list[list[Any]] | None:
    """Parse a JSON list of [word, number], or one `word: number` per line; None if empty.

    Raises InvalidValueError.
    """
    if text.lstrip().startswith("["):
        found = parse_tokens(text)
        if isinstance(found, list) and all(map(_is_word_value, found)):
            return [[word, value] for word, value in found] or None
        raise InvalidValueError(tr("Write a list of [word, number], or one “word: number” per line."))
    pairs: list[list[Any]] = []
    for line in filter(str.strip, text.split("\n")):
        word, colon, number = line.rpartition(":")
        try:
            value = float(number)
        except ValueError:
            value = math.nan
        pairs.append([unescape(word), int(value) if value.is_integer() else value])
        if not colon or not _is_word_value(pairs[-1]) or not math.isfinite(value):
            raise InvalidValueError(tr("“{text}” is not “word: number”.").format(text=short_text(line)))
    return pairs or None


def _lower_first(title: str) -> str:
    """Lower-case the first letter for use within a sentence, except in names with other capitals (“DRY base”,
    “SynthID”).
    """
    word = title.split(" ")[0]
    return title if any(letter.isupper() for letter in word[1:]) else title[:1].lower() + title[1:]


def _integer(parameter: Parameter, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise InvalidValueError(
            tr("{name} must be an integer, not “{text}”.").format(name=parameter.name, text=short_text(text))
        ) from None


def _number(parameter: Parameter, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InvalidValueError(
            tr("{name} must be a number, not “{text}”.").format(name=parameter.name, text=short_text(text))
        ) from None


def _boolean(parameter: Parameter, text: str) -> bool:
    if text.lower() in _TRUE | _FALSE:
        return text.lower() in _TRUE
    raise InvalidValueError(
        tr("{name} must be true or false, not “{text}”.").format(name=parameter.name, text=short_text(text))
    )


def _choice(parameter: Parameter, text: str) -> Any:
    by_text = {str(choice): choice for choice in parameter.choices}
    if text in by_text:
        return by_text[text]
    if text.startswith("["):
        return parse_tokens(text)
    raise InvalidValueError(
        tr("{name} must be one of {names}, not “{text}”.").format(
            name=parameter.name, names=join_names(by_text), text=short_text(text)
        )
    )


def _grammar(parameter: Parameter, text: str) -> dict[str, Any]:
    try:
        return parse_grammar(text)
    except ValueError as problem:
        raise InvalidValueError(f"{parameter.name}: {problem}") from None


_PARSERS: Mapping[str, Callable[[Parameter, str], Any]] = {
    "int": _integer,
    "float": _number,
    "bool": _boolean,
    "choice": _choice,
    "text": lambda _parameter, text: text,
    "lines": lambda _parameter, text: parse_lines(text),
    "tokens": lambda _parameter, text: parse_tokens(text),
    "names": parse_names,
    "grammar": _grammar,
    "words": lambda _parameter, text: parse_lines(text),
    "word_values": lambda _parameter, text: parse_word_values(text),
}
