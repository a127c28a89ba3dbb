"""Values of every type, passed to every argument of a public function."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pytest
import torch

from decodescope.core.errors import DecodescopeError, UnforeseenError
from decodescope.core.parameter import short_repr

ODD: list[Any] = [
    5, -1, 2.5, float("nan"), "x", "", b"x", True, [1], ["a"], [None], {}, {"a": 1}, {1: 2}, None, object, object(), (),
    10**30, print, threading.Event,
]  # fmt: skip
ODDER: list[Any] = [
    10**5000, float("inf"), 0, "\0", "\ud800", torch.tensor(1), torch.tensor([1, 2]), [[]], [""], bytearray(b"a"), 1j,
]  # fmt: skip
"""Values without a printable form, invalid numbers, invalid texts, and values without a truth value."""
Calls = dict[str, tuple[Callable[..., Any], dict[str, Any]]]
"""Functions with arguments of the right kind."""


def consumed(found: object) -> object:
    """An iterator does nothing before it is gone through."""
    return list(found) if isinstance(found, Iterator) else found


def pass_odd_values(function: Callable[..., Any], right: Mapping[str, Any], values: Sequence[Any] = ODD) -> None:
    """Each of them is taken, or refused in words; nothing unforeseen, nothing of Python's own."""
    reported = [
        f"{argument}={short_repr(odd)}: {raw}"
        for argument in right
        for odd in values
        if (raw := _raw(function, {**right, argument: odd}))
    ]
    if reported:
        pytest.fail("\n".join(reported))


def _raw(function: Callable[..., Any], given: Mapping[str, Any]) -> str:
    """Return errors other than those of core.errors with a cause; empty if there are none."""
    try:
        consumed(function(**given))
    except UnforeseenError as error:
        return str(error)
    except DecodescopeError as error:
        return "" if error.cause else "an error without a cause"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""
