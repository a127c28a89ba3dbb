"""Counts as they are given from outside: whole numbers from 1 on."""

from __future__ import annotations

from core.errors import ParameterError
from resources.language import tr


def positive_integer(name: str, value: object) -> int:
    """`value` as a count; 7.5e9 is one. Raises ParameterError for what is no whole number of at least 1."""
    if isinstance(value, int | float) and not isinstance(value, bool) and 1 <= value < float("inf"):
        count = int(value)
        if count == value:
            return count
    raise ParameterError(tr("{name} has to be a whole number of at least 1.").format(name=name), parameter=name)
