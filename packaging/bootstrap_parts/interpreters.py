"""Which Python may run Decodescope, and where on this machine one is."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

from bootstrap_parts.errors import SetupError

OLDEST, NEWEST = (3, 11), (3, 13)
PROBE = "import sys; print(*sys.version_info[:2], sys.maxsize > 2**32)"
# Not on the PATH of every shell.
EXTRA_FOLDERS = ("/opt/homebrew/bin", "/usr/local/bin")


def suits(version: tuple[int, ...], is_64_bit: bool = True) -> bool:
    """Return whether Decodescope's libraries exist for this Python."""
    return OLDEST <= tuple(version[:2]) <= NEWEST and is_64_bit


def other_than_this() -> list[str] | None:
    """None if this interpreter will do, else the command of one that does.

    Raises:
        SetupError: There is none on this machine.
    """
    if suits(sys.version_info, sys.maxsize > 2**32):
        return None
    here = f"Python {sys.version_info[0]}.{sys.version_info[1]}"
    for command in candidates():
        version = version_of(command)
        if version:
            print(f"Decodescope needs Python 3.11 to 3.13 and this is {here}; going on with {' '.join(command)}.")
            return command
    raise SetupError(
        f"Decodescope needs a 64-bit Python 3.11, 3.12 or 3.13; this is {here}, and no other was found on the PATH.",
        "install one (python.org/downloads, or your system's package manager) and run the same command with it.",
    )


def candidates() -> list[list[str]]:
    """Commands that might be a suitable Python, the newest first."""
    names = [f"{major}.{minor}" for major, minor in versions()]
    found = [[path] for path in map(which, [*(f"python{name}" for name in names), "python3", "python"]) if path]
    launcher = shutil.which("py") if os.name == "nt" else None
    return found + ([[launcher, f"-{name}"] for name in names] if launcher else [])


def versions() -> list[tuple[int, int]]:
    return [(OLDEST[0], minor) for minor in range(NEWEST[1], OLDEST[1] - 1, -1)]


def which(name: str) -> str | None:
    return shutil.which(name) or shutil.which(name, path=os.pathsep.join(EXTRA_FOLDERS))


def version_of(command: list[str]) -> tuple[int, int] | None:
    """Its version if it starts and suits; a name on the PATH may be a stub that only prints advice."""
    try:
        answer = subprocess.run([*command, "-c", PROBE], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=20)
        major, minor, is_64_bit = answer.stdout.decode().split()
        version = (int(major), int(minor))
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    return version if suits(version, is_64_bit == "True") else None
