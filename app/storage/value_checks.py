"""What a value read from a file must be like to be used: one small function a kind, for the fields of `Section`s."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Collection
from typing import Any

from app.state.number_checks import is_count, is_number

ValueCheck = Callable[[Any], bool]
MAX_TEXT_LENGTH = 2**22
MAX_ENTRIES = 10_000


def is_flag(value: Any) -> bool:
    """True or false."""
    return isinstance(value, bool)


def is_name(value: Any) -> bool:
    """Text that names something on this machine, maybe in bytes that are no UTF-8; no NUL, which ends a path."""
    return isinstance(value, str) and len(value) <= MAX_TEXT_LENGTH and "\0" not in value


def is_text(value: Any) -> bool:
    """Text that can be shown, and read by a tokenizer: no half of a character."""
    return isinstance(value, str) and len(value) <= MAX_TEXT_LENGTH and is_valid_unicode(value)


def is_valid_unicode(text: str) -> bool:
    """Whether `text` has no lone surrogates."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def is_names(value: Any) -> bool:
    """A list of names."""
    return isinstance(value, list) and len(value) <= MAX_ENTRIES and all(map(is_name, value))


def is_bytes(value: Any) -> bool:
    """Bytes in base64, as text."""
    try:
        return isinstance(value, str) and base64.b64decode(value, validate=True) is not None
    except (ValueError, binascii.Error):
        return False


def is_values(value: Any) -> bool:
    """{name of a strategy or cache: {parameter: value}}."""
    return isinstance(value, dict) and all(isinstance(item, dict) for item in value.values())


def one_of(choices: Collection[Any]) -> ValueCheck:
    """One of `choices`, which are texts."""
    return lambda value: isinstance(value, str) and value in choices


def up_to(maximum: int) -> ValueCheck:
    """A whole number from 0 to `maximum`."""
    return lambda value: is_count(value) and value <= maximum


def between(minimum: float, maximum: float) -> ValueCheck:
    """A number in that range."""
    return lambda value: is_number(value) and minimum <= value <= maximum


def list_of_counts(length: int, maximum: int) -> ValueCheck:
    """So many whole numbers from 0 to `maximum`."""
    each = up_to(maximum)
    return lambda value: isinstance(value, list) and len(value) == length and all(map(each, value))


def each_up_to(maximum: int) -> ValueCheck:
    """{name: whole number from 0 to `maximum`}."""
    return lambda value: (
        isinstance(value, dict)
        and len(value) <= MAX_ENTRIES
        and all(is_name(name) and up_to(maximum)(count) for name, count in value.items())
    )


def each_one_of(choices: Collection[str]) -> ValueCheck:
    """{name: one of these}."""
    return lambda value: (
        isinstance(value, dict) and len(value) <= MAX_ENTRIES and all(choice in choices for choice in value.values())
    )
