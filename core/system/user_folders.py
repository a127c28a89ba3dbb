"""Folders of the user that environment variables name, read as the programs do that they belong to."""

from __future__ import annotations

import os
from pathlib import Path


def expand_path(text: str) -> str:
    """Return a path with the user's folder for `~`, then with the values of `$VAR` and `${VAR}`, as huggingface_hub."""
    return os.path.expandvars(os.path.expanduser(text))


def folder_variable(name: str) -> Path | None:
    """Return the folder that an environment variable names, expanded; None if it is empty or not set."""
    text = os.environ.get(name)
    return Path(expand_path(text)) if text else None


def user_cache() -> Path:
    """Return the folder for caches of all programs."""
    return folder_variable("XDG_CACHE_HOME") or Path.home() / ".cache"


def hub_cache() -> Path:
    """Return the folder of models from Hugging Face, as the variables of huggingface_hub define it."""
    folder = folder_variable("HF_HUB_CACHE") or folder_variable("HUGGINGFACE_HUB_CACHE")
    return folder or (folder_variable("HF_HOME") or user_cache() / "huggingface") / "hub"
