"""Optional packages that some settings require."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Literal

from decodescope.core.errors import ParameterError
from decodescope.resources.language import join_names, tr

Extra = Literal["card", "grammar", "notebook", "spread", "study"]
PACKAGES: dict[Extra, str] = {
    "card": "torchao", "grammar": "llguidance", "notebook": "pandas", "spread": "accelerate", "study": "sacrebleu",
}  # fmt: skip
"""The package of each extra in pyproject.toml."""


def why_missing(extra: Extra | None) -> str:
    """Return why the extra's features cannot be used and how to install it; empty if they can. Imports nothing. Raises
    ParameterError for an unknown extra.
    """
    if extra is not None and extra not in tuple(PACKAGES):
        raise ParameterError(
            tr("The extra “{name}” does not exist.").format(name=_quoted(extra)),
            tr("Available: {names}.").format(names=join_names(PACKAGES)), "extra",
        )  # fmt: skip
    if extra is None or find_spec(PACKAGES[extra]) is not None:
        return ""
    return tr("The package {package} is not installed; install it with {command}.").format(
        package=PACKAGES[extra], command=f"pip install {PACKAGES[extra]}"
    )


def _quoted(name: object) -> str:
    return name if isinstance(name, str) else type(name).__name__
