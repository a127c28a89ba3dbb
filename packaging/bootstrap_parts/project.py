"""Read the requirements in pyproject.toml, and report a file that cannot be read."""

from __future__ import annotations

import re
from pathlib import Path

from bootstrap_parts.errors import SetupError


def check_project(project: Path) -> None:
    """Raises SetupError for a pyproject.toml that pip would end over, with a traceback of its own."""
    requirements_in(project, ())


def version_in(project: Path) -> str:
    """Return the program's version, also under a Python without tomllib; "unknown" where the file has none."""
    try:
        found = re.search(r'^version = "([^"]+)"', project.read_text(encoding="utf-8"), re.MULTILINE)
    except OSError:
        found = None
    return found.group(1) if found else "unknown"


def requirements_in(project: Path, extras: tuple[str, ...]) -> list[str]:
    """Its requirements, those of `extras` included. Raises SetupError."""
    import tomllib

    try:
        table = tomllib.loads(project.read_text(encoding="utf-8"))["project"]
        chosen = [table["dependencies"], *(table["optional-dependencies"][extra] for extra in extras)]
        lines = [line for some in chosen for line in some]
    except OSError as error:
        raise unusable(project, error.strerror) from error
    except KeyError as error:
        raise unusable(project, f"it has no {error}") from error
    except (ValueError, TypeError) as error:
        raise unusable(project, str(error)) from error
    if not all(isinstance(line, str) for line in lines):
        raise unusable(project, "its dependencies are no texts")
    return lines


def unusable(project: Path, why: str) -> SetupError:
    return SetupError(
        f"{project} cannot be used: {why}.",
        "put it back as it came, with git checkout pyproject.toml, or by downloading Decodescope again.",
    )
