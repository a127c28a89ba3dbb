"""The recipe's modules are found through their folder: `packaging` is no package."""

import shutil
import sys
from ctypes.util import find_library
from pathlib import Path

import pytest

RECIPE = Path(__file__).resolve().parents[2] / "packaging" / "recipe"
if str(RECIPE) not in sys.path:
    sys.path.append(str(RECIPE))


@pytest.fixture(scope="session")
def needs_espeak() -> None:
    """Skip without espeak-ng and its library."""
    if find_library("espeak-ng") is None or shutil.which("espeak-ng") is None:
        pytest.skip("espeak-ng is not installed")
