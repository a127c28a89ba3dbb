"""What ships beside the code: bundled models, icons, themes and example prompts."""

from pathlib import Path

_HERE = Path(__file__).resolve().parent


def path(*parts: str) -> Path:
    """Where the file or folder ``parts`` of this package lies, whether or not it exists."""
    return _HERE.joinpath(*parts)
