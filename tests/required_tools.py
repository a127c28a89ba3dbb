"""A pytest plugin that turns skips into failures where every optional tool must be installed.

Tests that need a font, a browser, a compiler or another program of the system are skipped with that reason on a machine
without it. `.ci/run` installs them all and sets DECODESCOPE_REQUIRE_TOOLS=1. Then a skipped test fails, so that a test
that never runs is noticed. The only reason that is accepted is a missing graphics card.
"""

from __future__ import annotations

import os
from collections.abc import Generator

import pytest

SWITCH = "DECODESCOPE_REQUIRE_TOOLS"
NEEDS_CARD = "needs a card"
"""How the reason of a skip begins that no package can prevent."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail a test that skips itself, or is skipped by its fixtures or marks."""
    report = yield
    if not hasattr(report, "wasxfail"):
        _fail_if_skipped(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Fail a file that skips all its tests while it is imported."""
    report = yield
    _fail_if_skipped(report)
    return report


def _fail_if_skipped(report: pytest.TestReport | pytest.CollectReport) -> None:
    if os.environ.get(SWITCH) != "1" or report.outcome != "skipped":
        return
    reason = _reason(report)
    if not reason.startswith(NEEDS_CARD):
        report.outcome = "failed"
        report.longrepr = f"{SWITCH}=1 allows no skipped test. Install what this one needs: {reason}"


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    """Return the reason without pytest's own prefix."""
    text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return text.removeprefix("Skipped: ")
