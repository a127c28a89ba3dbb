"""What the core's public functions are handed besides settings, checked for its kind before anything begins. Knows no
torch."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from os import PathLike
from typing import Protocol, runtime_checkable

from core.errors import ParameterError
from core.parameter import shortened
from resources.language import tr


@runtime_checkable
class Cancel(Protocol):
    """A `threading.Event`, or one of other processes."""

    def is_set(self) -> bool:
        """Whether what is under way is to end."""

    def wait(self, timeout: float | None = None) -> bool:
        """Until it is, or so many seconds."""


def refused(name: str, value: object, remedy: str) -> ParameterError:
    """The error that names an argument."""
    return ParameterError(tr("{field} is {value}.").format(field=name, value=shortened(value)), remedy, name)


def check_kind(name: str, value: object, kind: type | tuple[type, ...], remedy: str) -> None:
    """Raises ParameterError unless it is of the kind; a class is none of its own instances."""
    if not isinstance(value, kind) or isinstance(value, type):
        raise refused(name, value, remedy)


def check_cancel(value: object) -> None:
    """Raises ParameterError."""
    if value is not None:
        check_kind("cancel", value, Cancel, tr("Give a threading.Event, or None."))


def cancel_of(value: threading.Event | None) -> threading.Event:
    """It, or one that nobody sets. Raises ParameterError."""
    check_cancel(value)
    return threading.Event() if value is None else value


def check_path(name: str, value: object) -> None:
    """Raises ParameterError."""
    check_kind(name, value, (str, PathLike), tr("Give the path of a file."))


def check_several(name: str, value: object, remedy: str) -> None:
    """Raises ParameterError for what nobody can go through, and for a text, which is one thing."""
    check_kind(name, value, Iterable, remedy)
    if isinstance(value, str | bytes):
        raise refused(name, value, remedy)


def check_events(value: object) -> None:
    """Raises ParameterError."""
    check_several("events", value, tr("Give the events that core.stream or core.replay yields."))


def check_drafters(value: object) -> None:
    """Raises ParameterError for what is no list; of what it holds, whoever asks them."""
    check_several("drafters", value, tr("Give a list of loaded models."))


def check_bytes(name: str, value: object) -> None:
    """Raises ParameterError unless it is a count of bytes."""
    remedy = tr("Give a whole number of bytes, 0 or more.")
    check_kind(name, value, int, remedy)
    if isinstance(value, bool) or (isinstance(value, int) and value < 0):
        raise refused(name, value, remedy)
