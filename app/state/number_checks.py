"""Which values read from a file, or set by hand, are numbers: true and false, which Python counts as some, are none."""

from __future__ import annotations

from typing import TypeGuard


def is_number(value: object) -> TypeGuard[int | float]:
    """A whole number or any other."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_integer(value: object) -> TypeGuard[int]:
    """A whole number."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_count(value: object) -> TypeGuard[int]:
    """A whole number from 0, as token ids are."""
    return is_integer(value) and value >= 0
