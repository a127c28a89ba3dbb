"""What the labs' public functions are handed, checked for its kind before anything begins. Imports no torch."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from core.arguments import check_kind, listed
from resources.language import tr

T = TypeVar("T")


def check_made(name: str, value: object, kind: type) -> None:
    """Raises ParameterError unless it is one of the lab's own objects."""
    check_kind(name, value, kind, tr("Give a {kind}.").format(kind=_public(kind)))


def all_made(name: str, value: Iterable[T], kind: type[T]) -> list[T]:
    """What it holds. Raises ParameterError unless that are the lab's own objects."""
    return listed(name, value, kind, tr("Give a list of {kind}.").format(kind=_public(kind)))


def _public(kind: type) -> str:
    """`core.labs.scale.Shape`, wherever in the lab it is written down."""
    return ".".join((*kind.__module__.split(".")[:3], kind.__name__))
