"""What a value read from a file must be like to be used: one small function a kind, for the fields of `Section`s."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Collection
from typing import Any

from app.state.number_checks import is_count, is_number

Check = Callable[[Any], bool]
LONGEST_TEXT = 2**22
MOST_ENTRIES = 10_000


def is_flag(value: Any) -> bool:
    """True or false."""
    return isinstance(value, bool)


def is_name(value: Any) -> bool:
    """Text that names something on this machine, maybe in bytes that are no UTF-8; no NUL, which ends a path."""
    return isinstance(value, str) and len(value) <= LONGEST_TEXT and "\0" not in value


def is_text(value: Any) -> bool:
    """Text that can be shown, and read by a tokenizer: no half of a character."""
    return isinstance(value, str) and len(value) <= LONGEST_TEXT and is_whole(value)


def is_whole(text: str) -> bool:
    """Whether `text` has no lone surrogates."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def is_names(value: Any) -> bool:
    """A list of names."""
    return isinstance(value, list) and len(value) <= MOST_ENTRIES and all(map(is_name, value))


def is_bytes(value: Any) -> bool:
    """Bytes in base64, as text."""
    try:
        return isinstance(value, str) and base64.b64decode(value, validate=True) is not None
    except (ValueError, binascii.Error):
        return False


def is_values(value: Any) -> bool:
    """{name of a strategy or cache: {parameter: value}}."""
    return isinstance(value, dict) and all(isinstance(item, dict) for item in value.values())


def one_of(choices: Collection[Any]) -> Check:
    """One of `choices`, which are texts."""
    return lambda value: isinstance(value, str) and value in choices


def up_to(most: int) -> Check:
    """A whole number from 0 to `most`."""
    return lambda value: is_count(value) and value <= most


def between(least: float, most: float) -> Check:
    """A number in that range."""
    return lambda value: is_number(value) and least <= value <= most


def counts(number: int, most: int) -> Check:
    """So many whole numbers from 0 to `most`."""
    each = up_to(most)
    return lambda value: isinstance(value, list) and len(value) == number and all(map(each, value))


def each_up_to(most: int) -> Check:
    """{name: whole number from 0 to `most`}."""
    return lambda value: (
        isinstance(value, dict)
        and len(value) <= MOST_ENTRIES
        and all(is_name(name) and up_to(most)(count) for name, count in value.items())
    )


def each_one_of(choices: Collection[str]) -> Check:
    """{name: one of these}."""
    return lambda value: (
        isinstance(value, dict) and len(value) <= MOST_ENTRIES and all(choice in choices for choice in value.values())
    )
