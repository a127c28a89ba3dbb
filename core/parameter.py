"""One setting: what an editor, a check and an explanation of it need. Knows no torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from core.errors import ParameterError

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
    choices: tuple[Any, ...] = ()
    exclusive: bool = False
    """The minimum itself is not allowed."""
    option: bool = False
    advanced: bool = False
    """Unfolded on demand."""
    unset: Any = None
    """Value that switches the setting off, where that is not the default."""


def check(parameter: Parameter, value: Any) -> None:
    """Type and range of one setting. Raises ParameterError naming both."""
    if parameter.kind in ("int", "float"):
        _check_number(parameter, value)
    elif parameter.kind == "bool" and not isinstance(value, bool):
        raise ParameterError(
            f"{parameter.title} ({parameter.name}) is {value!r}.", "Use true or false.", parameter.name
        )
    elif parameter.kind == "choice" and isinstance(value, str) and value not in parameter.choices:
        options = ", ".join(str(choice) for choice in parameter.choices)
        raise ParameterError(
            f"{parameter.title} ({parameter.name}) is “{value}”.", f"Choose one of: {options}.", parameter.name
        )


def _check_number(parameter: Parameter, value: Any) -> None:
    wrong_type = isinstance(value, bool) or not isinstance(value, int if parameter.kind == "int" else (int, float))
    low, high = parameter.minimum, parameter.maximum
    if not wrong_type:
        below = low is not None and (value < low or (parameter.exclusive and value == low))
        if not below and not (high is not None and value > high) and value == value:
            return
    kind = "a whole number" if parameter.kind == "int" else "a number"
    more = "above" if parameter.exclusive else "from"
    span = f" {more} {low:g} to {high:g}" if low is not None and high is not None else ""
    raise ParameterError(
        f"{parameter.title} ({parameter.name}) is {value!r}, out of its range.", f"It must be {kind}{span}.",
        parameter.name,
    )  # fmt: skip
