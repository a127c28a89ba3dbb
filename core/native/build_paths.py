"""Where the built library lies: a folder that nobody else writes to, under a name that tells what it was built from."""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import shutil
import stat
import sys
from pathlib import Path

from core.former_name import read_variable

SOURCE = Path(__file__).parent / "source"
MAIN_SOURCE = SOURCE / "decodescope.cpp"
FLAGS = (
    "-std=c++17", "-O3", "-march=native", "-ffp-contract=fast", "-fno-math-errno", "-fno-trapping-math",
    "-fvisibility=hidden", "-shared", "-fPIC",
)  # fmt: skip
SWITCH_VARIABLE = "DECODESCOPE_QUICK_STEP"
"""In the environment: 0 leaves what is built unused, and builds nothing."""
_COMPILERS = ("g++", "clang++", "c++")


def library_folder() -> Path:
    """In the folder for what can be found out again."""
    base = os.environ.get("XDG_CACHE_HOME") or (os.environ.get("LOCALAPPDATA") if os.name == "nt" else None)
    return (Path(base) if base else Path.home() / ".cache") / "decodescope" / "native"


def find_compiler() -> str | None:
    """The C++ compiler of this machine that knows the vectors which the source is written with."""
    return next((found for name in _COMPILERS if (found := shutil.which(name))), None)


def library_path() -> Path | None:
    """The library for this program on this processor, whether it is there or not; None where it is switched off."""
    if read_variable(SWITCH_VARIABLE) == "0" or os.name == "nt":
        return None
    return library_folder() / f"step-{_digest()}.so"


@functools.cache
def _digest() -> str:
    digest = hashlib.sha256(" ".join((*FLAGS, platform.machine(), _processor())).encode())
    for file in sorted(SOURCE.iterdir()):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:24]


def _processor() -> str:
    """What its code may use: a home folder may be shared by machines that differ."""
    if sys.platform != "linux":
        return platform.processor()
    with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as cpuinfo:
        lines = (line.partition(":") for line in cpuinfo)
        known = {name.strip(): value.strip() for name, _, value in lines}
    return " ".join(known.get(name, "") for name in ("model name", "flags", "Features", "CPU part"))


def is_private(path: Path) -> bool:
    """Whether file and folder belong to this user and nobody else may write to them: it is going to be executed."""
    if os.name != "posix":
        return True
    kept = (path.parent.stat(), path.stat())
    return all(one.st_uid == os.getuid() and not one.st_mode & (stat.S_IWGRP | stat.S_IWOTH) for one in kept)
