"""Turn a transformers `LogitsProcessor` class into a stage of the pipeline: its signature becomes the controls."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Literal, cast

from decodescope.core.parameter import Parameter
from decodescope.core.plugins.signature_settings import (
    UnsupportedSignatureError,
    argument_setting,
    describe_arguments,
    docstring_summary,
    named_arguments,
)
from decodescope.core.processors.base import Context, Processor
from decodescope.resources.language import tr

if TYPE_CHECKING:
    from decodescope.core.processors.base import Transform

DEFAULT_ORDER = 157
"""After transformers' own processors and before temperature and the filters, as in `generate`."""
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
    becomes a setting. The class attributes `title`, `label`, `kind` and `order` replace the derived ones: without
    `kind`, a run calls the stage a ban once it has removed a token (`core.decoding.banned_tokens`). Raises
    UnsupportedSignatureError.
    """
    name = _snake_case(cls.__name__)
    title = _own_text(cls, "title") or name.replace("_", " ").capitalize()
    described = describe_arguments(vars(cls).get("__doc__"), getattr(vars(cls).get("__init__"), "__doc__", ""))
    settings: dict[str, Parameter] = {}
    injected: list[str] = []
    constructor = f"{cls.__name__}.__init__"
    for argument in _arguments(cls):
        if argument.name in _INJECTED and argument.default is inspect.Parameter.empty:
            injected.append(argument.name)
        elif (own := argument_setting(name, argument, described.get(argument.name, ""), constructor)) is not None:
            settings[argument.name] = own

    own_kind = getattr(cls, "kind", None)
    has_kind = own_kind in ("shift", "ban", "cut")

    def make(value: object, context: Context) -> Transform:
        given = {key: _value(parameter, context) for key, parameter in settings.items()}
        return cast("Transform", cls(**given, **{key: _INJECTED[key](context) for key in injected}))

    return Processor(
        name=name,
        make=make,
        order=_own_order(cls),
        label=_escape(_own_text(cls, "label") or title.lower()),
        kind=cast('Literal["shift", "ban", "cut"]', own_kind) if has_kind else "shift",
        has_observed_kind=not has_kind,
        parameter=Parameter(name, title, "bool", False, docstring_summary(vars(cls).get("__doc__")), option=True),
        extra_parameters=tuple(settings.values()),
        panel="more",
        is_on=bool,
        drafts=False,  # it is made for the vocabulary of the model, which a draft model may not share
    )


def _value(parameter: Parameter, context: Context) -> object:
    value = context.settings.get(parameter.name)
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


def _arguments(cls: type) -> Iterator[inspect.Parameter]:
    constructor = getattr(cls, "__init__")  # noqa: B009  # mypy distrusts `cls.__init__`
    if constructor is getattr(object, "__init__"):  # noqa: B009
        return
    for argument in list(named_arguments(constructor, f"{cls.__name__}.__init__"))[1:]:
        if argument.kind is argument.POSITIONAL_ONLY:
            raise UnsupportedSignatureError(
                tr("the parameter {name} of __init__ is positional-only").format(name=argument.name)
            )
        yield argument
