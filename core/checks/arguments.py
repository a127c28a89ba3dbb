"""Check arguments of public functions, other than settings, before a run starts. Imports no torch."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable
from os import PathLike
from typing import Protocol, TypeVar, runtime_checkable

from decodescope.core.common.setting_values import to_plain_value
from decodescope.core.errors import ParameterError
from decodescope.core.parameter import format_limit, short_repr
from decodescope.resources.language import join_names, tr

T = TypeVar("T")
MAX_FLOAT = 10**300
"""Close to the largest float."""


@runtime_checkable
class CancelEvent(Protocol):
    """A `threading.Event`, or one of another process."""

    def is_set(self) -> bool:
        """Return whether the operation should end."""

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it should end, or for `timeout` seconds."""


def argument_error(name: str, value: object, remedy: str) -> ParameterError:
    """Return the error for an invalid argument."""
    return ParameterError(tr("{field} is {value}.").format(field=name, value=short_repr(value)), remedy, name)


def check_kind(name: str, value: object, kind: type | tuple[type, ...], remedy: str) -> None:
    """Raise ParameterError unless `value` is an instance of `kind`; classes are rejected."""
    if not isinstance(value, kind) or isinstance(value, type):
        raise argument_error(name, value, remedy)


def check_cancel(value: object) -> None:
    """Raise ParameterError unless `value` is a cancel event or None."""
    if value is not None:
        check_kind("cancel", value, CancelEvent, tr("Pass a threading.Event, or None."))


def cancel_event_or_new(value: threading.Event | None) -> threading.Event:
    """Return the event, or a new one that is never set. Raises ParameterError."""
    check_cancel(value)
    return threading.Event() if value is None else value


def check_progress(value: object) -> None:
    """Raise ParameterError unless `value` is a function or None."""
    if value is not None and not callable(value):
        raise argument_error("progress", value, tr("Pass a function, or None."))


def check_path(name: str, value: object) -> None:
    """Raise ParameterError unless `value` is a path."""
    check_kind(name, value, (str, PathLike), tr("Pass the path of a file."))


def check_folder(name: str, value: object) -> None:
    """Raise ParameterError unless `value` is a path."""
    check_kind(name, value, (str, PathLike), tr("Pass the path of a folder."))


def check_iterable(name: str, value: object, remedy: str) -> None:
    """Raise ParameterError unless `value` is iterable and not a string."""
    check_kind(name, value, Iterable, remedy)
    if isinstance(value, str | bytes):
        raise argument_error(name, value, remedy)
    if isinstance(value, Iterable):
        try:
            iter(value)
        except TypeError as error:  # a 0-d tensor only fails here
            raise argument_error(name, value, remedy) from error


def check_events(value: object) -> None:
    """Raise ParameterError unless `value` is an iterable of events."""
    check_iterable("events", value, tr("Pass the events that decodescope.stream or decodescope.replay yields."))


def check_drafters(value: object) -> None:
    """Raise ParameterError unless `value` is iterable; its items are checked elsewhere."""
    check_iterable("drafters", value, tr("Pass a list of loaded models."))


def check_bytes(name: str, value: object) -> None:
    """Raise ParameterError unless `value` is a number of bytes."""
    remedy = tr("Pass a number of bytes: an integer of at least 0.")
    value = to_plain_value(value)
    check_kind(name, value, int, remedy)
    if isinstance(value, bool) or (isinstance(value, int) and value < 0):
        raise argument_error(name, value, remedy)


def check_integer(name: str, value: object, low: int, high: int) -> None:
    """Raise ParameterError unless `value` is an integer from `low` to `high`."""
    value = to_plain_value(value)
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        remedy = tr("It must be an integer from {low} to {high}.")
        raise argument_error(name, value, remedy.format(low=format_limit(low), high=format_limit(high)))


def check_number(name: str, value: object, low: float = -MAX_FLOAT, high: float = MAX_FLOAT) -> None:
    """Raise ParameterError unless `value` is a number from `low` to `high`; NaN is rejected."""
    value = to_plain_value(value)
    if not isinstance(value, int | float) or isinstance(value, bool) or not low <= value <= high:
        bounded = tr("It must be a number from {low} to {high}.").format(low=format_limit(low), high=format_limit(high))
        raise argument_error(name, value, bounded if high < MAX_FLOAT else tr("It must be a number."))


def check_bool(name: str, value: object) -> None:
    """Raise ParameterError unless `value` is a boolean."""
    check_kind(name, to_plain_value(value), bool, tr("Use True or False."))


def check_text(name: str, value: object) -> None:
    """Raise ParameterError unless `value` is a string without lone surrogates, which cannot be encoded."""
    check_kind(name, value, str, tr("Pass a string."))
    if isinstance(value, str) and _has_surrogates(value):
        raise argument_error(name, value, tr("Pass a string."))


def _has_surrogates(text: str) -> bool:
    return any("\ud800" <= sign <= "\udfff" for sign in text)


def check_one_of(name: str, value: object, names: Collection[str]) -> None:
    """Raise ParameterError unless `value` is one of these names."""
    if not (isinstance(value, str) and value in names):
        raise argument_error(name, value, tr("Choose one of: {names}.").format(names=join_names(names)))


def checked_list(name: str, value: Iterable[T], kind: type[T] | tuple[type[T], ...], remedy: str) -> list[T]:
    """Return the items, iterated once. Raises ParameterError unless all are instances of `kind`."""
    check_iterable(name, value, remedy)
    found = list(value)
    for one in found:
        check_kind(name, one, kind, remedy)
    return found


def checked_texts(name: str, value: Iterable[str]) -> list[str]:
    """Return the items. Raises ParameterError unless all are valid strings."""
    found = checked_list(name, value, str, tr("Pass a list of strings."))
    for text in found:
        check_text(name, text)
    return found
