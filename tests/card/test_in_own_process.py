"""Run the tests on the pretend card, each file in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LONG = {"test_matrix.py"}
FILES = [
    pytest.param(path.name, marks=[pytest.mark.slow] if path.name in LONG else [])
    for path in sorted((Path(__file__).parent / "cases").glob("test_*.py"))
]
SECONDS = 900


@pytest.mark.parametrize("which", ["not slow", pytest.param("slow", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", FILES)
def test_passes_in_its_own_process(name: str, which: str) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", which, f"tests/card/cases/{name}"]
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    finished = subprocess.run(
        command, cwd=ROOT, env={**environment, "DECODESCOPE_PRETEND_CARD": "1"}, capture_output=True, text=True,
        timeout=SECONDS, check=False,
    )  # fmt: skip
    nothing_left = which == "slow" and finished.returncode == pytest.ExitCode.NO_TESTS_COLLECTED
    assert nothing_left or finished.returncode == 0, finished.stdout[-8000:] + finished.stderr[-2000:]
