"""One setting: what an editor, a check and an explanation of it need. Knows no torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from core.errors import ParameterError
from core.token_values import SHAPES, Form, fits, ids_in

Settings = Mapping[str, Any]
"""Values by the names of their settings; which types they have, each `Parameter` says."""
Kind = Literal["int", "float", "bool", "choice", "text", "lines", "tokens"]
"""`lines`: one string a line (stop strings); `tokens`: a list of token ids or of phrases."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One setting: enough to draw an editor for it, to check it and to explain it."""

    name: str
    """GenerationConfig's field, or the key in `Request.options` when `option` is true."""
    title: str
    kind: Kind
    default: Any
    help: str
    minimum: float | None = None
    maximum: float | None = None
    soft_minimum: float | None = None
    soft_maximum: float | None = None
    """Where a slider begins and ends; typing may go on to `minimum` and `maximum`."""
    logarithmic: bool = False
    """Equal ways on the slider are equal factors, not equal differences; it begins above 0."""
    step: float | None = None
    choices: tuple[object, ...] = ()
    form: Form | None = None
    """What it is made of where it holds token ids (`tokens`: "ids" unless said); of a choice or a text: what may stand
    there instead."""
    exclusive: bool = False
    """The minimum itself is not allowed."""
    option: bool = False
    advanced: bool = False
    """Unfolded on demand."""
    unset: object = None
    """Value that switches the setting off, where that is not the default."""


def check(parameter: Parameter, value: object) -> None:
    """Type and range of one setting. Raises ParameterError naming both."""
    wrong = _CHECKS[parameter.kind](parameter, value)
    if wrong is not None:
        shown = f"“{value}”" if isinstance(value, str) else shortened(value)
        raise ParameterError(
            f"{parameter.title} ({parameter.name}) is {shown}{wrong.more}.", f"{wrong.remedy}.", parameter.name
        )


def shortened(value: object) -> str:
    """A value as an error quotes it."""
    try:
        words = repr(value)
    except ValueError:  # Python does not write numbers of more than 4,300 digits
        return "a number of thousands of digits"
    return words if len(words) <= 60 else f"{words[:59]}…"


class _Wrong(NamedTuple):
    remedy: str
    more: str = ""


def _number(parameter: Parameter, value: object) -> _Wrong | None:
    low, high = parameter.minimum, parameter.maximum
    if isinstance(value, int if parameter.kind == "int" else (int, float)) and not isinstance(value, bool):
        below = low is not None and (value < low or (parameter.exclusive and value == low))
        if not below and not (high is not None and value > high) and value == value:
            return None
    kind = "a whole number" if parameter.kind == "int" else "a number"
    more = "above" if parameter.exclusive else "from"
    span = f" {more} {low:g} to {high:g}" if low is not None and high is not None else ""
    return _Wrong(f"It must be {kind}{span}", ", out of its range")


def _truth(parameter: Parameter, value: object) -> _Wrong | None:
    return None if isinstance(value, bool) else _Wrong("Use true or false")


def _choice(parameter: Parameter, value: object) -> _Wrong | None:
    if value in parameter.choices or (parameter.form is not None and fits(parameter.form, value)):
        return None
    return _Wrong(f"Choose one of: {', '.join(str(choice) for choice in parameter.choices)}")


def _text(parameter: Parameter, value: object) -> _Wrong | None:
    if parameter.form is not None and fits(parameter.form, value):
        return None
    return None if isinstance(value, str) and "\0" not in value else _Wrong("Give a text")


def _lines(parameter: Parameter, value: object) -> _Wrong | None:
    several = isinstance(value, (list, tuple)) and all(isinstance(line, str) for line in value)
    return None if several or isinstance(value, str) else _Wrong("Give a text, or a list of texts")


def _tokens(parameter: Parameter, value: object) -> _Wrong | None:
    form = parameter.form or "ids"
    return None if fits(form, value) else _Wrong(f"Give {SHAPES[form]}")


_CHECKS: dict[Kind, Callable[[Parameter, object], _Wrong | None]] = {
    "int": _number, "float": _number, "bool": _truth, "choice": _choice, "text": _text, "lines": _lines,
    "tokens": _tokens,
}  # fmt: skip


def check_vocabulary(parameter: Parameter, value: object, vocabulary: int) -> None:
    """The ids of a value that `check` has passed, against a model's vocabulary. Raises ParameterError."""
    outside = [i for i in ids_in(parameter.form or "ids", value) if i >= vocabulary]
    if outside:
        raise ParameterError(
            f"{parameter.title} ({parameter.name}) holds the token id {outside[0]}, and the model knows 0 to "
            f"{vocabulary - 1:,}.",
            "Use ids of this model's own tokenizer.", parameter.name,
        )  # fmt: skip
