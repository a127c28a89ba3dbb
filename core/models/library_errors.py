"""Why a library failed on a model's files, as far as its own words are made for a reader."""

from __future__ import annotations

import re

from resources.language import tr

_PROGRAMMING_ERRORS = (
    TypeError, AttributeError, KeyError, IndexError, NameError, ZeroDivisionError, OverflowError, RecursionError,
    AssertionError, UnboundLocalError, StopIteration,
)  # fmt: skip
"""What Python itself raises says how a program went wrong, not what is wrong with a file."""
_CLASS = re.compile(r"^(?:[A-Z]\w*(?:Error|Exception)): ")
_MAX_LENGTH = 300


def readable_reason(error: BaseException) -> str:
    """A clause that says why, to stand behind a colon; the whole of `error` belongs into an error's `details`."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if isinstance(error, KeyError) and error.args:
        name = str(error.args[0])
        return name[:_MAX_LENGTH] if " " in name else tr("“{name}” is missing, or not known").format(name=name[:60])
    if isinstance(error, UnicodeDecodeError):
        return tr("it holds what is no text (UTF-8)")
    if type(error) in _PROGRAMMING_ERRORS or not lines:
        return tr("a value in it is missing, or of a kind that cannot stand there")
    return _CLASS.sub("", lines[-1])[:_MAX_LENGTH]


def full_message(error: BaseException) -> str:
    """What it says, with its kind, for those who look into the details."""
    return f"{type(error).__name__}: {error}"
