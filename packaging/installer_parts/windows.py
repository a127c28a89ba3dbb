"""Make the installer for Windows with NSIS, and sign the programs if a command for that is set.

`DECODESCOPE_SIGN_COMMAND` is a command with `{file}`, such as `signtool sign /fd sha256 /tr … {file}`, a client of
SignPath or of Azure Trusted Signing. It signs the programs, then the uninstaller, then the installer. Without it
nothing is signed, and Windows warns when the installer is started.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from installer_parts.icons import write_icon
from installer_parts.tools import Build, InstallerError, command_from, require, run

SIGN = "DECODESCOPE_SIGN_COMMAND"
SCRIPT = Path(__file__).with_name("decodescope.nsi")


def check_machine(_machine: str) -> None:
    """Raise InstallerError if NSIS is missing or the command that signs names no file."""
    require("makensis", "NSIS")
    if template := os.environ.get(SIGN):
        command_from(template, Path("file"))


def make_packages(build: Build) -> list[Path]:
    """Write the installer and return its path. Raises InstallerError."""
    folder, target = build.folder, build.output / f"decodescope-{build.version}-windows-x86_64.exe"
    for program in sorted(folder.glob("*.exe")):
        sign(program)
    icon = write_icon(build.root / "resources" / "icons" / "decodescope.svg", folder.parent / "decodescope.ico")
    run([require("makensis", "NSIS"), *definitions(folder, build.version, icon, target), SCRIPT])
    sign(target)
    return [target]


def definitions(folder: Path, version: str, icon: Path, target: Path) -> list[str]:
    """Return the arguments of makensis that describe this version."""
    values = {
        "VERSION": version,
        "NUMBERS": version_numbers(version),
        "FOLDER": folder.resolve(),
        "ICON": icon.resolve(),
        "OUTPUT": target.resolve(),
    }
    if template := os.environ.get(SIGN):
        values["SIGN"] = " ".join(f'"{part}"' if " " in part else part for part in command_from(template, Path("%1")))
    return ["-V2", "-INPUTCHARSET", "UTF8", *(f"-D{name}={value}" for name, value in values.items())]


def version_numbers(version: str) -> str:
    """Return the four numbers that Windows requires: 1.0.0rc1 is 1.0.0.0. Raises InstallerError for other texts."""
    found = re.match(r"(\d+)\.(\d+)\.(\d+)", version)
    if found is None:
        raise InstallerError(
            f"The version {version!r} does not begin with three numbers. Correct it in pyproject.toml."
        )
    return ".".join((*found.groups(), "0"))


def sign(file: Path) -> None:
    """Sign a file if a command is set. Raises InstallerError if that fails."""
    if template := os.environ.get(SIGN):
        run(command_from(template, file))
