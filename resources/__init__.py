"""Resources shipped with the code: bundled models, icons, themes and example prompts."""

import importlib
import sys
from pathlib import Path

if __name__ != "decodescope.resources":  # imported by the name of its folder in a checkout
    sys.modules[__name__] = importlib.import_module("decodescope.resources")

_HERE = Path(__file__).resolve().parent


def path(*parts: str) -> Path:
    """Return the path of a file or folder of this package, whether or not it exists."""
    return _HERE.joinpath(*parts)
