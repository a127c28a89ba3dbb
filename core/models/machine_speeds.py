"""Measurements of this machine, kept in a file of the user's cache folder."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from pathlib import Path

from decodescope.core.errors import ModelFileError
from decodescope.core.models.model_files import read_json
from decodescope.core.system.file_writing import atomic_write, cache_folder

log = logging.getLogger(__name__)


def _file() -> Path:
    return cache_folder() / "speeds.json"


def read_speeds() -> Mapping[str, bool | int]:
    """Return the results by name; empty if there are none or the file is invalid."""
    try:
        stored = read_json(_file())
    except (OSError, ModelFileError):
        return {}
    return {key: value for key, value in stored.items() if isinstance(value, (bool, int))}


def write_speed(key: str, value: bool | int) -> None:
    """Add a result; if the file cannot be written, it is measured again next time."""
    try:
        _file().parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(_file()) as part:
            part.write_text(json.dumps({**read_speeds(), key: value}), encoding="utf-8")
    except OSError:
        log.debug("the speeds of this machine cannot be kept", exc_info=True)
