"""The program's name, and what is named after it: the suffix of recordings and the user's folders."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

NAME = "decodescope"
RUN_SUFFIX = f".{NAME}"
"""Suffix of recorded runs."""


def user_folder(kind: Literal["config", "data"]) -> Path:
    """Return the user's folder for settings ("config") or for other data ("data"), whether it exists or not."""
    import platformdirs

    find = platformdirs.user_config_dir if kind == "config" else platformdirs.user_data_dir
    return Path(find(NAME, appauthor=False))
