"""Select the cases of long tests for the default run; the others are marked slow and run with `-m slow`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def every(nth: int, cases: Iterable[Any]) -> list[Any]:
    """Return the cases; all but the first and each nth one are marked slow."""
    return [case if number % nth == 0 else slow(case) for number, case in enumerate(cases)]


def slow(case: Any) -> Any:
    """A case (a tuple has one value for each name) that only the long suite shows."""
    values = case if isinstance(case, tuple) else (case,)
    return pytest.param(*values, marks=pytest.mark.slow)
