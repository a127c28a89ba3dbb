"""The native library that tests of the native code use: `DECODESCOPE_NATIVE_LEVEL=v3 pytest …` chooses one.

Without a choice it is compiled by this machine's compiler, whether libraries lie in the checkout or not.
`DECODESCOPE_TEST_NATIVE_LIBRARIES` is a folder of libraries to use instead of those of the checkout.
"""

from __future__ import annotations

import os
from pathlib import Path

VARIABLE = "DECODESCOPE_TEST_NATIVE_LEVEL"
"""Where the choice is kept: tests start with native code turned off, and pytest's workers inherit that."""
FOLDER_VARIABLE = "DECODESCOPE_TEST_NATIVE_LIBRARIES"


def requested() -> str:
    """Return the level with which the tests were started, or `compiled`."""
    return os.environ.get(VARIABLE) or os.environ.get("DECODESCOPE_NATIVE_LEVEL") or "compiled"


def folder() -> Path:
    """Return the folder of the libraries that come with the program."""
    from decodescope.core.native.library_choice import SHIPPED

    return Path(os.environ.get(FOLDER_VARIABLE) or SHIPPED)


def is_compiled() -> bool:
    """Return whether the tests use a library that this machine's compiler makes."""
    return requested() == "compiled"
