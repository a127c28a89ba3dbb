"""One of the guide's pictures is what the program draws; `.ci/deep pictures` looks at all.

In a process of its own, as that is: what hundreds of tests leave in a process (fonts, styles, caches) is no part of it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fonts import FONTS, TestFont


@pytest.mark.slow
def test_guide_picture_matches_program(needs_font: Callable[[TestFont], None]) -> None:
    needs_font(FONTS["wide"])
    made = subprocess.run(
        [sys.executable, "-m", "tests.guide", "chat"], cwd=Path(__file__).parents[2], check=False,
        env=os.environ | {"DECODESCOPE_TEST_FONT": "wide"}, capture_output=True, text=True,
    )  # fmt: skip
    assert made.returncode == 0, made.stdout + made.stderr
    assert "all of them match" in made.stdout
