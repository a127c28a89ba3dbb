"""Run the programs that build, pack and sign, and report their failures with cause and remedy."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

SHOWN = 2000
"""Characters of a program's output that an error shows."""


class InstallerError(Exception):
    """An installer that cannot be made, with cause and remedy."""


@dataclass(frozen=True)
class Build:
    """A built program and how it is packed."""

    folder: Path
    """The program's folder, on macOS its bundle."""
    version: str
    machine: str
    """The processor, as `platform.machine` names it."""
    root: Path
    """The checkout."""
    python: Path
    """Return the interpreter of the environment that the program was built from."""
    output: Path
    """Folder for the packages."""
    epoch: int
    """Date of all files, in seconds since 1970."""
    level: int = 6
    """Compression, 0 to 9."""


def require(program: str, package: str) -> str:
    """Return the path of a program. Raises InstallerError with the name of the package that contains it."""
    if (path := shutil.which(program)) is None:
        raise InstallerError(f"The program {program} is not installed. Install {package}.")
    return path


def run(
    command: Sequence[str | Path],
    *,
    folder: Path | None = None,
    variables: Mapping[str, str] | None = None,
    quiet: bool = False,
    text: str | None = None,
) -> str:
    """Run a program and return its output. The command is printed unless `quiet`; `text` is the program's input. Raises
    InstallerError with the end of what it printed if it fails.
    """
    if not quiet:
        print("+", shlex.join(map(str, command)), file=sys.stderr, flush=True)
    answer = subprocess.run(
        [str(part) for part in command],
        cwd=folder,
        env=variables,
        capture_output=True,
        text=True,
        errors="replace",
        input=text,
    )
    if answer.returncode:
        output = (answer.stdout + answer.stderr)[-SHOWN:]
        raise InstallerError(f"{Path(command[0]).name} failed with exit code {answer.returncode}:\n{output}")
    return answer.stdout


def command_from(template: str, file: Path) -> list[str]:
    """Return the command of a template such as `signtool sign /fd sha256 {file}`, split by the rules of a shell.

    Raises InstallerError if the template does not name the file.
    """
    parts = shlex.split(template)
    if not any("{file}" in part for part in parts):
        raise InstallerError(f"The command {template!r} does not contain {{file}}. Add it where the file belongs.")
    return [part.replace("{file}", str(file)) for part in parts]
