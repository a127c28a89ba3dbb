"""Turn a transformers `LogitsProcessor` class into a stage of the pipeline: its signature becomes the controls."""

from __future__ import annotations

import inspect
import re
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, cast

from core.parameter import Parameter, ParameterKind
from core.processors.base import Context, Processor
from resources.language import tr

if TYPE_CHECKING:
    from core.processors.base import Transform

DEFAULT_ORDER = 157
"""After transformers' own processors and before temperature and the filters, as in `generate`."""
_MAX_HELP = 600
_LIMIT = 1e6
"""Range of numbers without one of their own."""
_BASES = ("LogitsProcessor", "LogitsWarper")
_INJECTED: Mapping[str, Callable[[Context], object]] = {
    "tokenizer": lambda context: getattr(context.model, "tokenizer", None),
    "model": lambda context: context.model.model,
    "device": lambda context: context.model.device,
    "vocab_size": lambda context: context.model.vocabulary,
    "vocabulary_size": lambda context: context.model.vocabulary,
    "eos_token_id": lambda context: [] if context.eos is None else context.eos.tolist(),
    "prompt_length": lambda context: context.start,
    "prompt_length_to_skip": lambda context: context.start,
    "begin_index": lambda context: context.start,
}
"""Arguments that the run provides, if the constructor has a parameter of that name without a default."""


class UnsupportedSignatureError(ValueError):
    """Raised for a class whose constructor cannot be called with values from controls."""


def is_logits_processor(value: object) -> bool:
    """Return whether `value` is a class with the interface of transformers' LogitsProcessor."""
    return (
        isinstance(value, type)
        and not inspect.isabstract(value)
        and value.__name__ not in _BASES
        and any(base.__name__ in _BASES for base in value.__mro__[1:])
        and "__call__" in {name for base in value.__mro__[:-1] if base.__name__ not in _BASES for name in vars(base)}
    )


def processor_of_class(cls: type) -> Processor:
    """Return the pipeline stage of a LogitsProcessor class.

    A switch with the class's docstring enables it; each parameter of `__init__` with a supported annotation or default
    becomes a setting. The class attributes `title`, `label`, `kind` and `order` replace the derived ones. Raises
    UnsupportedSignatureError.
    """
    name = _snake_case(cls.__name__)
    title = _own_text(cls, "title") or name.replace("_", " ").capitalize()
    described = _describe_arguments(cls)
    settings: dict[str, Parameter] = {}
    injected: list[str] = []
    for argument in _arguments(cls):
        if argument.name in _INJECTED and argument.default is inspect.Parameter.empty:
            injected.append(argument.name)
        elif (parameter := _parameter(name, argument, described.get(argument.name, ""))) is not None:
            settings[argument.name] = parameter

    def make(value: object, context: Context) -> Transform:
        given = {key: _value(parameter, context) for key, parameter in settings.items()}
        return cast("Transform", cls(**given, **{key: _INJECTED[key](context) for key in injected}))

    return Processor(
        name=name,
        make=make,
        order=_own_order(cls),
        label=_escape(_own_text(cls, "label") or title.lower()),
        kind=_kind(cls),
        parameter=Parameter(name, title, "bool", False, _summary(cls), option=True),
        extra_parameters=tuple(settings.values()),
        panel="more",
        is_on=bool,
        drafts=False,  # it is made for the vocabulary of the model, which a draft model may not share
    )


def _value(parameter: Parameter, context: Context) -> object:
    value = context.options.get(parameter.name)
    return parameter.default if value is None else value


def _snake_case(name: str) -> str:
    for suffix in _BASES:
        name = name.removesuffix(suffix) or name
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name)
    return re.sub(r"\W", "_", words).lower().strip("_")


def _own_text(cls: type, name: str) -> str:
    value = getattr(cls, name, "")
    return " ".join(value.split())[:80] if isinstance(value, str) else ""


def _own_order(cls: type) -> int:
    value = getattr(cls, "order", DEFAULT_ORDER)
    return value if isinstance(value, int) and not isinstance(value, bool) else DEFAULT_ORDER


def _escape(label: str) -> str:
    """Escape braces: labels are templates for `format`."""
    return label.replace("{", "{{").replace("}", "}}")


def _kind(cls: type) -> Literal["shift", "ban", "cut"]:
    """Return the class's own `kind`, otherwise "ban" if its code mentions infinity, which removes tokens."""
    own = getattr(cls, "kind", None)
    if own in ("shift", "ban", "cut"):
        return cast('Literal["shift", "ban", "cut"]', own)
    code = getattr(vars(cls).get("__call__"), "__code__", None)
    texts = [*getattr(code, "co_names", ()), *map(str, getattr(code, "co_consts", ()))]
    return "ban" if any("inf" in text.lower() for text in texts) else "shift"


def _summary(cls: type) -> str:
    """Return the class's own docstring up to its argument list, as one paragraph."""
    own = vars(cls).get("__doc__")
    before = re.split(r"^\s*(?:Args|Arguments|Parameters|Examples?|Returns)\s*:?\s*$", _doc_text(own), flags=re.M)[0]
    return " ".join(before.split())[:_MAX_HELP]


def _doc_text(doc: object) -> str:
    return inspect.cleandoc(doc) if isinstance(doc, str) else ""


def _describe_arguments(cls: type) -> dict[str, str]:
    """Return the descriptions in the `Args` sections of the docstrings of class and constructor."""
    found: dict[str, str] = {}
    for doc in (vars(cls).get("__doc__"), getattr(vars(cls).get("__init__"), "__doc__", "")):
        section = re.search(r"^(?:Args|Arguments|Parameters):[ ]*\n((?:(?:[ \t]+.*)?\n?)*)", _doc_text(doc), re.M)
        text = inspect.cleandoc(section[1]) if section else ""
        for match in re.finditer(r"^(\w+)(?: *\([^\n]*?\))? *: *((?:.*\n?)(?:[ \t]+.*\n?)*)", text, re.M):
            found[match[1]] = " ".join(match[2].split())[:_MAX_HELP]
    return found


def _arguments(cls: type) -> Iterator[inspect.Parameter]:
    constructor = getattr(cls, "__init__")  # noqa: B009  # mypy distrusts `cls.__init__`
    if constructor is getattr(object, "__init__"):  # noqa: B009
        return
    try:
        hints = typing.get_type_hints(constructor, include_extras=True)
        signature = inspect.signature(constructor)
    except Exception as error:
        raise UnsupportedSignatureError(
            tr("the annotations of {name}.__init__ cannot be read ({error})").format(
                name=cls.__name__, error=type(error).__name__
            )
        ) from error
    for argument in list(signature.parameters.values())[1:]:
        if argument.kind not in (argument.VAR_POSITIONAL, argument.VAR_KEYWORD):
            if argument.kind is argument.POSITIONAL_ONLY:
                raise UnsupportedSignatureError(
                    tr("the parameter {name} of __init__ is positional-only").format(name=argument.name)
                )
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
            found = found._replace(help=" ".join(item.split())[:_MAX_HELP])
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


def _parameter(owner: str, argument: inspect.Parameter, described: str) -> Parameter | None:
    """Return the setting of a constructor's parameter; None if it keeps its default. Raises
    UnsupportedSignatureError.
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
    words = allowed.help or described or tr("Argument {name} of the class.").format(name=argument.name)
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
            "the parameter {name} of __init__ has no default and no supported annotation; use int, float, bool, str, "
            "Literal, list[int] or list[str], or add a default"
        ).format(name=argument.name)
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
