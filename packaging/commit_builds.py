"""Build sdist and wheel from a commit, without influence of uncommitted and ignored files."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from distribution_files import OLDEST

ROOT = Path(__file__).resolve().parent.parent
_BUILD = """
import sys
sys.path.insert(0, "packaging")
import build_backend, native_libraries
target, *names = sys.argv[1:]  # setuptools replaces sys.argv
build_backend.build_sdist(target)
try:
    build_backend.build_wheels(target, names)
except native_libraries.NativeLibraryError as error:
    sys.exit(str(error))
"""
UMASKS = (0o022, 0o077)
"""File permissions of the first and the second build: they must not matter."""


class ReleaseError(Exception):
    """A release that cannot be made, with cause and remedy."""


def commit_date(commit: str) -> int:
    """Return the date of a commit in seconds since 1970. Raises ReleaseError outside a repository."""
    answer = subprocess.run(
        ["git", "-C", str(ROOT), "log", "-1", "--format=%ct", commit], capture_output=True, text=True
    )
    if answer.returncode:
        raise ReleaseError(f"{commit} is no commit of this repository. Run it in a checkout. {answer.stderr.strip()}")
    return max(OLDEST, int(answer.stdout))


def export(commit: str, folder: Path) -> Path:
    """Write the files of a commit into a new folder and return it."""
    folder.mkdir(parents=True)
    packed = subprocess.run(["git", "-C", str(ROOT), "archive", commit], check=True, capture_output=True).stdout
    subprocess.run(["tar", "-x", "-C", str(folder)], input=packed, check=True)
    return folder


def build(
    source: Path, target: Path, epoch: int, umask: int = UMASKS[0], zig: Path | None = None, names: Iterable[str] = ()
) -> list[Path]:
    """Build sdist and wheels of an exported commit and return their paths. Raises ReleaseError.

    `zig`: the compiler's program; `names`: targets of native libraries, for each of which there is a wheel beside the
    one without.
    """
    target.mkdir(parents=True)
    variables = {**os.environ, "SOURCE_DATE_EPOCH": str(epoch), "PYTHONDONTWRITEBYTECODE": "1"}
    variables.pop("PYTHONPATH", None)
    if zig is not None:
        variables["PYTHONPATH"] = str(zig.parent.parent)
    command = [sys.executable, "-c", _BUILD, str(target.resolve()), *names]
    options = {"umask": umask} if os.name == "posix" else {}
    answer = subprocess.run(command, cwd=source, env=variables, capture_output=True, text=True, **options)
    if answer.returncode:
        raise ReleaseError(f"The build failed. Install the extra `dev`.\n{answer.stderr[-2000:]}")
    return sorted(target.iterdir())
