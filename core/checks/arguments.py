"""What the core's public functions are handed besides settings, checked for its kind before anything begins. Knows no
torch."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable
from os import PathLike
from typing import Protocol, TypeVar, runtime_checkable

from core.common.setting_values import to_plain_value
from core.errors import ParameterError
from core.parameter import format_limit, short_repr
from resources.language import tr

T = TypeVar("T")
MAX_FLOAT = 10**300
"""A float can just hold it."""


@runtime_checkable
class CancelEvent(Protocol):
    """A `threading.Event`, or one of other processes."""

    def is_set(self) -> bool:
        """Whether what is under way is to end."""

    def wait(self, timeout: float | None = None) -> bool:
        """Until it is, or so many seconds."""


def argument_error(name: str, value: object, remedy: str) -> ParameterError:
    """The error that names an argument."""
    return ParameterError(tr("{field} is {value}.").format(field=name, value=short_repr(value)), remedy, name)


def check_kind(name: str, value: object, kind: type | tuple[type, ...], remedy: str) -> None:
    """Raises ParameterError unless it is of the kind; a class is none of its own instances."""
    if not isinstance(value, kind) or isinstance(value, type):
        raise argument_error(name, value, remedy)


def check_cancel(value: object) -> None:
    """Raises ParameterError."""
    if value is not None:
        check_kind("cancel", value, CancelEvent, tr("Give a threading.Event, or None."))


def cancel_event_or_new(value: threading.Event | None) -> threading.Event:
    """It, or one that nobody sets. Raises ParameterError."""
    check_cancel(value)
    return threading.Event() if value is None else value


def check_path(name: str, value: object) -> None:
    """Raises ParameterError."""
    check_kind(name, value, (str, PathLike), tr("Give the path of a file."))


def check_folder(name: str, value: object) -> None:
    """Raises ParameterError."""
    check_kind(name, value, (str, PathLike), tr("Give the path of a folder."))


def check_iterable(name: str, value: object, remedy: str) -> None:
    """Raises ParameterError for what nobody can go through, and for a text, which is one thing."""
    check_kind(name, value, Iterable, remedy)
    if isinstance(value, str | bytes):
        raise argument_error(name, value, remedy)
    if isinstance(value, Iterable):
        try:
            iter(value)
        except TypeError as error:  # of one number, a tensor says so only now
            raise argument_error(name, value, remedy) from error


def check_events(value: object) -> None:
    """Raises ParameterError."""
    check_iterable("events", value, tr("Give the events that decodescope.stream or decodescope.replay yields."))


def check_drafters(value: object) -> None:
    """Raises ParameterError for what is no list; of what it holds, whoever asks them."""
    check_iterable("drafters", value, tr("Give a list of loaded models."))


def check_bytes(name: str, value: object) -> None:
    """Raises ParameterError unless it is a count of bytes."""
    remedy = tr("Give a whole number of bytes, 0 or more.")
    value = to_plain_value(value)
    check_kind(name, value, int, remedy)
    if isinstance(value, bool) or (isinstance(value, int) and value < 0):
        raise argument_error(name, value, remedy)


def check_integer(name: str, value: object, low: int, high: int) -> None:
    """Raises ParameterError unless it is a whole number from `low` to `high`."""
    value = to_plain_value(value)
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        remedy = tr("It must be a whole number from {low} to {high}.")
        raise argument_error(name, value, remedy.format(low=format_limit(low), high=format_limit(high)))


def check_number(name: str, value: object, low: float = -MAX_FLOAT, high: float = MAX_FLOAT) -> None:
    """Raises ParameterError unless it is a number from `low` to `high`; what is no number (nan) is none."""
    value = to_plain_value(value)
    if not isinstance(value, int | float) or isinstance(value, bool) or not low <= value <= high:
        bounded = tr("It must be a number from {low} to {high}.").format(low=format_limit(low), high=format_limit(high))
        raise argument_error(name, value, bounded if high < MAX_FLOAT else tr("It must be a number."))


def check_bool(name: str, value: object) -> None:
    """Raises ParameterError."""
    check_kind(name, to_plain_value(value), bool, tr("Use true or false."))


def check_text(name: str, value: object) -> None:
    """Raises ParameterError, for half of a character (a lone surrogate) too, which nothing can write."""
    check_kind(name, value, str, tr("Give a text."))
    if isinstance(value, str) and _has_surrogates(value):
        raise argument_error(name, value, tr("Give a text."))


def _has_surrogates(text: str) -> bool:
    return any("\ud800" <= sign <= "\udfff" for sign in text)


def check_one_of(name: str, value: object, names: Collection[str]) -> None:
    """Raises ParameterError unless it is one of these names."""
    if not (isinstance(value, str) and value in names):
        raise argument_error(name, value, tr("Choose one of: {names}.").format(names=", ".join(names)))


def checked_list(name: str, value: Iterable[T], kind: type[T] | tuple[type[T], ...], remedy: str) -> list[T]:
    """What it holds, which is gone through once. Raises ParameterError unless all of it is of the kind."""
    check_iterable(name, value, remedy)
    found = list(value)
    for one in found:
        check_kind(name, one, kind, remedy)
    return found


def checked_texts(name: str, value: Iterable[str]) -> list[str]:
    """What it holds. Raises ParameterError unless that are texts."""
    found = checked_list(name, value, str, tr("Give a list of texts."))
    for text in found:
        check_text(name, text)
    return found
