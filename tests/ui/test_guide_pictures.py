"""One of the guide's pictures is what the program draws; `.ci/run` looks at all of them: `python -m tests.guide`.

In a process of its own, as that is: what hundreds of tests leave in a process (fonts, styles, caches) is no part of it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fonts import FONTS


@pytest.mark.slow
def test_the_program_still_draws_them() -> None:
    if not FONTS["wide"].found():
        pytest.skip(f"{FONTS['wide'].family} is not installed; .ci/run installs it")
    made = subprocess.run(
        [sys.executable, "-m", "tests.guide", "chat"], cwd=Path(__file__).parents[2], check=False,
        env=os.environ | {"DECODESCOPE_TEST_FONT": "wide"}, capture_output=True, text=True,
    )  # fmt: skip
    assert made.returncode == 0, made.stdout + made.stderr
    assert "all of them match" in made.stdout
