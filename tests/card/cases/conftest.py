"""Tests on the pretend card, which changes torch for the whole process: they run in processes of their own.

`tests/card/test_card_cases.py` starts them; to run one by hand, set DECODESCOPE_PRETEND_CARD=1.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

SWITCH = "DECODESCOPE_PRETEND_CARD"


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave these tests out of a process that runs others."""
    return None if os.environ.get(SWITCH) == "1" else True


@pytest.fixture
def card() -> Iterator[object]:
    """One card, on which unsynchronized accesses raise."""
    from tests.card.pretend_card import PretendCard

    with PretendCard(is_strict=True) as made:
        yield made
