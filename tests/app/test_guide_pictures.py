"""Ten of the guide's pictures are what the program draws, pixel for pixel; `.ci/deep pictures` looks at all.

In a process of its own, as that is: what hundreds of tests leave in a process (styles, caches) is no part of it. The
program has its own fonts, so a picture is the same on every machine with this version of Qt. After a wanted change,
`python -m tests.guide --write` makes the stored pictures again.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.long import slow

NINE = ("zh_CN/window", "greedy", "beam_search", "assisted", "dynamic", "tokens", "chat", "speculation", "zh_CN/tokens")


@pytest.mark.parametrize("names", [("window",), slow((NINE,))], ids=["one", "nine"])
def test_pictures_of_the_guide_are_drawn_pixel_for_pixel(names: tuple[str, ...]) -> None:
    made = subprocess.run(
        [sys.executable, "-m", "tests.guide", *names], cwd=Path(__file__).parents[2], check=False,
        capture_output=True, text=True,
    )  # fmt: skip
    assert made.returncode == 0, made.stdout + made.stderr
    assert "all of them match" in made.stdout
