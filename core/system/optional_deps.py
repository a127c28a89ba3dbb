"""Packages that a setting needs and that not every installation has."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Literal

from core.errors import ParameterError
from resources.language import tr

Extra = Literal["grammar"]
PACKAGES: dict[Extra, str] = {"grammar": "llguidance"}
"""What each extra of pyproject.toml brings."""


def why_missing(extra: Extra | None) -> str:
    """Why what needs the extra cannot be used here, and how to get it; empty where it can. Imports nothing.
    Raises ParameterError for an extra that is not there."""
    if extra is not None and extra not in tuple(PACKAGES):
        raise ParameterError(
            tr("There is no extra “{name}”.").format(name=_quoted(extra)),
            tr("There are: {names}.").format(names=", ".join(PACKAGES)), "extra",
        )  # fmt: skip
    if extra is None or find_spec(PACKAGES[extra]) is not None:
        return ""
    return tr("The package {package} is not installed; {command} brings it.").format(
        package=PACKAGES[extra], command=f"pip install {PACKAGES[extra]}"
    )


def _quoted(name: object) -> str:
    return name if isinstance(name, str) else type(name).__name__
