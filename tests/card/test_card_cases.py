"""Run the tests on the pretend card, which changes torch for a whole process, in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CASES = "tests/card/cases"
FILES = sorted(path.name for path in (ROOT / CASES).glob("test_*.py"))
SECONDS = 900


def test_cases_pass_in_one_process() -> None:
    finished = _run("not slow", CASES)
    assert finished.returncode == 0, finished.stdout[-8000:] + finished.stderr[-2000:]


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_slow_cases_of_a_file_pass(name: str) -> None:
    finished = _run("slow", f"{CASES}/{name}")
    has_none = finished.returncode == pytest.ExitCode.NO_TESTS_COLLECTED
    assert has_none or finished.returncode == 0, finished.stdout[-8000:] + finished.stderr[-2000:]


def _run(marker: str, tests: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", marker, tests]
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    return subprocess.run(
        command, cwd=ROOT, env={**environment, "DECODESCOPE_PRETEND_CARD": "1"}, capture_output=True, text=True,
        timeout=SECONDS, check=False,
    )  # fmt: skip
