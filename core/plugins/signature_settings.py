"""Turn the parameters of a plug-in's function or class into settings: annotations and defaults become controls."""

from __future__ import annotations

import inspect
import re
import types
import typing
from collections.abc import Callable, Iterator, Sequence
from typing import Literal, NamedTuple, cast

from decodescope.core.parameter import Parameter, ParameterKind
from decodescope.resources.language import tr

MAX_HELP = 600
"""Characters of a help text."""
_LIMIT = 1e6
"""Range of numbers without one of their own."""


class UnsupportedSignatureError(ValueError):
    """Raised for a function that cannot be called with values from controls."""


def doc_text(doc: object) -> str:
    """Return a docstring without its indentation; empty if it is no text."""
    return inspect.cleandoc(doc) if isinstance(doc, str) else ""


def docstring_summary(doc: object) -> str:
    """Return a docstring up to its list of arguments, as one paragraph."""
    before = re.split(r"^\s*(?:Args|Arguments|Parameters|Examples?|Returns)\s*:?\s*$", doc_text(doc), flags=re.M)[0]
    return " ".join(before.split())[:MAX_HELP]


def describe_arguments(*docs: object) -> dict[str, str]:
    """Return the descriptions in the `Args` sections of docstrings."""
    found: dict[str, str] = {}
    for doc in docs:
        section = re.search(r"^(?:Args|Arguments|Parameters):[ ]*\n((?:(?:[ \t]+.*)?\n?)*)", doc_text(doc), re.M)
        text = inspect.cleandoc(section[1]) if section else ""
        for match in re.finditer(r"^(\w+)(?: *\([^\n]*?\))? *: *((?:.*\n?)(?:[ \t]+.*\n?)*)", text, re.M):
            found[match[1]] = " ".join(match[2].split())[:MAX_HELP]
    return found


def named_arguments(function: Callable[..., object], name: str) -> Iterator[inspect.Parameter]:
    """Yield the parameters of a function besides `*args` and `**kwargs`, with their annotations resolved. `name` is the
    function's name in errors. Raises UnsupportedSignatureError.
    """
    try:
        hints = typing.get_type_hints(function, include_extras=True)
        signature = inspect.signature(function)
    except Exception as error:
        raise UnsupportedSignatureError(
            tr("the annotations of {name} cannot be read ({error})").format(name=name, error=type(error).__name__)
        ) from error
    for argument in signature.parameters.values():
        if argument.kind not in (argument.VAR_POSITIONAL, argument.VAR_KEYWORD):
            yield argument.replace(annotation=hints.get(argument.name, inspect.Parameter.empty))


class _Range(NamedTuple):
    low: float | None = None
    high: float | None = None
    is_exclusive: bool = False
    step: float | None = None
    help: str = ""


def _range_of(metadata: tuple[object, ...]) -> _Range:
    """Read (low, high), (low, high, step), a range, a help text, or the attributes ge, gt, le, lt of
    annotated-types.
    """
    found = _Range()
    for item in metadata:
        if isinstance(item, str):
            found = found._replace(help=" ".join(item.split())[:MAX_HELP])
        elif isinstance(item, range) and item:
            found = found._replace(low=min(item), high=max(item), step=abs(item.step))
        elif isinstance(item, tuple) and len(item) in (2, 3) and all(_is_number(value) for value in item):
            found = found._replace(low=item[0], high=item[1], step=item[2] if len(item) == 3 else found.step)
        else:
            for name, field in (("ge", "low"), ("gt", "low"), ("le", "high"), ("lt", "high"), ("multiple_of", "step")):
                if _is_number(value := getattr(item, name, None)):
                    low, high, step = (
                        value if field == own else getattr(found, own) for own in ("low", "high", "step")
                    )
                    found = _Range(low, high, found.is_exclusive or name == "gt", step, found.help)
    return found


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < float("inf")


def argument_setting(owner: str, argument: inspect.Parameter, described: str, function: str) -> Parameter | None:
    """Return the setting of a parameter, called `owner_parameter`; None if the parameter keeps its default.

    `described` is its help, `function` the name of its function in errors. Raises UnsupportedSignatureError.
    """
    hint, metadata = argument.annotation, ()
    if typing.get_origin(hint) is typing.Annotated:
        hint, metadata = hint.__origin__, hint.__metadata__
    required = argument.default is inspect.Parameter.empty
    default = None if required else argument.default
    hint = _without_none(hint)
    if hint is inspect.Parameter.empty:
        hint = type(default) if default is not None else inspect.Parameter.empty
    allowed = _range_of(metadata)
    words = (
        allowed.help or described or tr("Argument {name} of {function}.").format(name=argument.name, function=function)
    )
    name, title = f"{owner}_{argument.name}", argument.name.replace("_", " ").capitalize()

    def setting(kind: ParameterKind, value: object, choices: tuple[object, ...] = ()) -> Parameter:
        return Parameter(name, title, kind, value, words, choices=choices, option=True)

    if hint is bool:
        return setting("bool", bool(default))
    if hint is int or hint is float:
        return _number_setting(name, title, words, hint is int, default, allowed)
    if hint is str:
        return setting("text", default if isinstance(default, str) else "" if required else None)
    if typing.get_origin(hint) is Literal:
        choices = typing.get_args(hint)
        return setting("choice", default if default in choices else choices[0], choices=choices)
    if typing.get_origin(hint) in (list, tuple, set, Sequence) or hint in (list, tuple):
        of = next(iter(typing.get_args(hint)), str)
        if of is str:
            return setting("lines", list(default) if default else [] if required else None)
        if of is int:
            return setting("tokens", list(default) if default else [] if required else None)
    if not required:
        return None
    raise UnsupportedSignatureError(
        tr(
            "the parameter {name} of {function} has no default and no supported annotation; use int, float, bool, str, "
            "Literal, list[int] or list[str], or add a default"
        ).format(name=argument.name, function=function)
    )


def _without_none(hint: object) -> object:
    """Return T for `T | None`."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        others = [one for one in typing.get_args(hint) if one is not type(None)]
        return others[0] if len(others) == 1 else hint
    return hint


def _number_setting(name: str, title: str, words: str, is_whole: bool, default: object, allowed: _Range) -> Parameter:
    """Return a numeric setting whose range comes from the annotation, otherwise from the default."""
    convert = int if is_whole else float
    start = default if _is_number(default) else None
    low, high = allowed.low, allowed.high
    if start is None and (low is not None or high is not None):
        start = low if low is not None else high
    value: float = convert(cast("float", start)) if start is not None else convert(0)
    is_fraction = not is_whole and 0 <= value <= 1
    soft_low = min(0.0, 2 * value) if low is None else low
    soft_high = (1.0 if is_fraction else max(10.0, 2 * value)) if high is None else high
    step = allowed.step or (1 if is_whole else 0.01 if soft_high - soft_low <= 2 else 0.1)
    return Parameter(
        name,
        title,
        "int" if is_whole else "float",
        value,
        words,
        option=True,
        minimum=-_LIMIT if low is None else low,
        maximum=_LIMIT if high is None else high,
        soft_minimum=soft_low if low is None else None,
        soft_maximum=soft_high if high is None else None,
        exclusive=allowed.is_exclusive,
        step=step,
    )
