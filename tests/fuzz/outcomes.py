"""Outcomes of fuzz cases: finished, clear error, or raw exception, which is a fault. All faults are reported
together.
"""

from __future__ import annotations

import os
import re
import signal
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from hypothesis import HealthCheck, given, settings
from hypothesis.strategies import SearchStrategy

from decodescope.core.errors import DecodescopeError

BUSY_SECONDS, WAITING_SECONDS = 30, 600
"""A case that computes or waits longer hangs. Waiting is counted generously: machines do other things too."""
LONG = int(os.environ.get("DECODESCOPE_FUZZ", "10000"))
"""Cases of all long forms together."""
T = TypeVar("T")
_OURS = re.compile("/(?=(?:core|app|resources)/)")
"""The folder above the program's packages."""


class Hung(BaseException):
    """No Exception: nothing on the way may take it for a failure of its own."""


def short(cases: int) -> settings:
    """The same cases each time, as many as a suite can bear."""
    return settings(
        max_examples=cases, derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck)
    )


def long(share: float) -> settings:
    """New cases each time: so much of all."""
    return settings(
        max_examples=max(1, int(LONG * share)), database=None, deadline=None, suppress_health_check=list(HealthCheck)
    )


class CaseTally:
    """Counts how cases end; `check` fails when one ended raw, with the places and an input for each."""

    def __init__(self) -> None:
        self.ends: Counter[str] = Counter()
        self.raw: dict[str, str] = {}

    def attempt(self, case: object, action: Callable[[], object]) -> bool:
        """Do it; True when it ended well."""
        try:
            with _limit():
                action()
        except DecodescopeError as error:
            self.ends["named" if error.cause and error.remedy else "named, without cause or remedy"] += 1
            return False
        except (Exception, Hung) as error:
            self.ends["raw"] += 1
            self.raw.setdefault(_place(error), f"{type(error).__name__}: {str(error)[:200]}\n    {case!r:.1500}")
            return False
        self.ends["done"] += 1
        return True

    def check(self) -> None:
        """Raises AssertionError when anything ended raw."""
        print(f"\n{sum(self.ends.values()):,} cases: {dict(self.ends)}")
        assert not self.raw, "\n".join(f"{place}\n  {what}" for place, what in self.raw.items())


def check_cases(some: settings, cases: SearchStrategy[T], action: Callable[[T], object]) -> None:
    """Give cases to `action`, as many as `short` or `long` says. Raise AssertionError when any ends raw."""
    tally = CaseTally()

    @some
    @given(cases)
    def attempt(case: T) -> None:
        tally.attempt(case, lambda: action(case))

    attempt()
    tally.check()


def _place(error: BaseException) -> str:
    """The innermost line of this program on the way to it."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if _OURS.search(frame.filename) and "site-packages" not in frame.filename]
    last = (ours or frames)[-1]
    return f"{type(error).__name__} at {_OURS.split(last.filename)[-1]}:{last.lineno} ({last.name})"


@contextmanager
def _limit() -> Iterator[None]:
    def hang(*_: object) -> None:
        raise Hung(f"more than {BUSY_SECONDS} seconds of work, or {WAITING_SECONDS} of waiting")

    clocks = ((signal.ITIMER_PROF, signal.SIGPROF, BUSY_SECONDS), (signal.ITIMER_REAL, signal.SIGALRM, WAITING_SECONDS))
    before = [signal.signal(number, hang) for _, number, _ in clocks]
    try:
        for timer, _, seconds in clocks:
            signal.setitimer(timer, seconds)
        yield
    finally:
        for (timer, number, _), handler in zip(clocks, before, strict=True):
            signal.setitimer(timer, 0)
            signal.signal(number, handler)
