"""Behaviour of the installed transformers that differs between supported releases."""

from __future__ import annotations

from typing import Any

import pytest
import transformers
from packaging.version import Version

SORTS_DRAWS = Version(transformers.__version__) >= Version("5.24")
"""`generate` puts what beam sampling has drawn in the order of scores; before, it left it in the order of drawing, by
which other texts end."""
_WHY = "this transformers draws beams in another order"

draws_alike = pytest.mark.skipif(not SORTS_DRAWS, reason=_WHY)


def skip_other_draws(settings: dict[str, Any]) -> None:
    """Leave a test out where these settings draw beams and `generate` does it otherwise."""
    if settings.get("do_sample") and settings.get("num_beams", 1) > 1 and not SORTS_DRAWS:
        pytest.skip(_WHY)
