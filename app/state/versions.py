"""Versions of this program and of the installed distributions that it uses."""

from __future__ import annotations

from pathlib import Path

from decodescope import resources


def version_of(distribution: str) -> str:
    """Return the version of an installed distribution, or "not installed"."""
    from importlib import metadata  # the window starts faster without it

    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return "not installed"


def own_version() -> str:
    """Return the version of this program, as installed or from the checkout."""
    if (installed := version_of("decodescope")) != "not installed":
        return installed
    import tomllib

    try:
        project = tomllib.loads((Path(resources.__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))
        return f"{project['project']['version']} (from source)"
    except (OSError, ValueError, KeyError):
        return "unknown"
