"""The native library that tests of the native code use: `DECODESCOPE_NATIVE_LEVEL=v3 pytest …` chooses one.

Without a choice it is compiled by this machine's compiler, whether libraries lie in the checkout or not.
"""

from __future__ import annotations

import os

_VARIABLE = "DECODESCOPE_TEST_NATIVE_LEVEL"
"""Where the choice is kept: tests start with native code turned off, and pytest's workers inherit that."""


def requested() -> str:
    """Return the level with which the tests were started, or `compiled`."""
    return os.environ.get(_VARIABLE) or os.environ.get("DECODESCOPE_NATIVE_LEVEL") or "compiled"


def is_compiled() -> bool:
    """Return whether the tests use a library that this machine's compiler makes."""
    return requested() == "compiled"
