"""What ships beside the code: bundled models, icons, themes and example prompts."""

from importlib.resources import files
from pathlib import Path


def path(*parts: str) -> Path:
    """Where the file or folder ``parts`` of this package lies, whether or not it exists."""
    return Path(str(files(__name__))).joinpath(*parts)
