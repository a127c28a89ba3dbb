"""Resources shipped with the code: bundled models, icons, themes and example prompts."""

from pathlib import Path

_HERE = Path(__file__).resolve().parent


def path(*parts: str) -> Path:
    """Return the path of a file or folder of this package, whether or not it exists."""
    return _HERE.joinpath(*parts)
