"""The recipe's modules are found through their folder: `packaging` is no package."""

import shutil
import sys
from collections.abc import Iterator
from ctypes.util import find_library
from pathlib import Path

import pytest

RECIPE = Path(__file__).resolve().parents[2] / "packaging" / "recipe"
if str(RECIPE) not in sys.path:
    sys.path.append(str(RECIPE))


@pytest.fixture(autouse=True, scope="session")
def _tokenizer_of_fewer_texts() -> Iterator[None]:
    """Learn the tokenizer from a fifth of the texts: enough for all its tokens, in a fifth of the time."""
    import bpe

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bpe, "TEXTS", bpe.TEXTS // 5)
        yield


@pytest.fixture(scope="session")
def needs_espeak() -> None:
    """Skip without espeak-ng and its library."""
    if find_library("espeak-ng") is None or shutil.which("espeak-ng") is None:
        pytest.skip("espeak-ng is not installed")
