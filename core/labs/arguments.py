"""Type checks of the arguments of the labs' public functions. Imports no torch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, replace
from typing import TYPE_CHECKING, TypeVar

from decodescope.core.checks.arguments import check_kind, checked_list
from decodescope.core.common.setting_values import to_plain_value
from decodescope.core.errors import ParameterError
from decodescope.resources.language import tr

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T")
Settings = TypeVar("Settings", bound="DataclassInstance")


def check_lab_object(name: str, value: object, kind: type) -> None:
    """Raise ParameterError unless the value is an instance of this class of the lab."""
    check_kind(name, value, kind, tr("Pass a {kind}.").format(kind=_public_name(kind)))


def lab_object_list(name: str, value: Iterable[T], kind: type[T]) -> list[T]:
    """Return the items as a list. Raises ParameterError unless all are instances of this class of the lab."""
    return checked_list(name, value, kind, tr("Pass a list of {kind}.").format(kind=_public_name(kind)))


def with_plain_fields(settings: Settings) -> Settings:
    """Return a copy with plain Python numbers instead of NumPy's and torch's, so that it can be serialized."""
    return replace(
        settings, **{field.name: to_plain_value(getattr(settings, field.name)) for field in fields(settings)}
    )


def _public_name(kind: type) -> str:
    """Return the public name, such as `core.labs.scale.Shape`, whichever module defines the class."""
    return ".".join(("decodescope", *kind.__module__.split(".")[2:4], kind.__name__))


def positive_integer(name: str, value: object) -> int:
    """Return `value` as a count; 7.5e9 is accepted. Raises ParameterError unless it is a whole number of at least 1."""
    if isinstance(value, int | float) and not isinstance(value, bool) and 1 <= value < float("inf"):
        count = int(value)
        if count == value:
            return count
    raise ParameterError(tr("{name} must be a whole number of at least 1.").format(name=name), parameter=name)
