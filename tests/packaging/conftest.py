"""The set-up's modules are found through their folder: `packaging` is no package."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT / "packaging") not in sys.path:
    sys.path.append(str(ROOT / "packaging"))


@pytest.fixture
def root() -> Path:
    """The project's folder."""
    return ROOT
