"""A pytest plugin for tests that need optional tools: a font, a browser, a compiler or another program of the system.

Such a test uses a fixture whose name begins with `needs_`, directly or by another fixture. The fixture skips it, with
the reason, on a machine without the tool. `--files-needing-tools` selects the files with such tests; `.ci/run` runs
them with all tools hidden.

`.ci/run` also installs all tools and runs the suite with DECODESCOPE_REQUIRE_TOOLS=1. Then a skipped test fails, so
that a test that never runs is noticed. The only reason that is accepted is a missing graphics card.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator

import pytest

from tests import native_level
from tests.fonts import TestFont

SWITCH = "DECODESCOPE_REQUIRE_TOOLS"
NEEDS_CARD = "needs a card"
"""How the reason of a skip begins that no package can prevent."""
OPTION = "--files-needing-tools"
PREFIX = "needs_"
"""How the name of a fixture begins that skips a test whose tool is missing."""


def add_option(parser: pytest.Parser) -> None:
    """Add the option that selects files by the tools that they need."""
    parser.addoption(OPTION, action="store_true", help="run only the files with tests that need an optional tool")


def keep_files_needing_tools(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With the option, deselect all tests of a file in which no test uses a fixture `needs_…`."""
    if not config.getoption(OPTION):
        return
    files = {item.path for item in items if any(name.startswith(PREFIX) for name in item.fixturenames)}
    others = [item for item in items if item.path not in files]
    config.hook.pytest_deselected(items=others)
    items[:] = [item for item in items if item.path in files]


@pytest.fixture(scope="session")
def needs_compiler() -> None:
    """Skip without a C++ compiler, unless the tests use a library that needs none."""
    from decodescope.core.native.library_choice import find_compiler

    if native_level.is_compiled() and find_compiler() is None:
        pytest.skip("no C++ compiler")


@pytest.fixture(scope="session")
def needs_chromium() -> str:
    """The path of Chromium or Chrome."""
    from tests.page.browser import chromium

    path = chromium()
    if path is None:
        pytest.skip("Chromium is not installed")
    return path


@pytest.fixture(scope="session")
def needs_font() -> Callable[[TestFont], None]:
    """A function that skips the test if the machine lacks the given font."""

    def need(font: TestFont) -> None:
        if not font.found():
            pytest.skip(f"{font.family} is not installed; .ci/run installs it")

    return need


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
