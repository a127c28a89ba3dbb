"""Choose the native library for this processor: one that comes with the program, or one compiled on this computer.

The program comes with a library for each level of a processor's instructions, in the folder `libraries`, written by
packaging/native_libraries.py. A checkout has none unless that was called; its libraries are compiled on first use.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import json
import os
import platform
import shutil
import sys
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from decodescope.core.errors import ParameterError
from decodescope.core.system.file_writing import cache_folder
from decodescope.resources.language import join_names, mark, tr

SOURCE = Path(__file__).parent / "source"
MAIN_SOURCE = SOURCE / "decodescope.cpp"
FEATURES_SOURCE = SOURCE / "processor_features.c"
FLAGS = (
    "-std=c++17", "-O3", "-march=native", "-ffp-contract=fast", "-fno-math-errno", "-fno-trapping-math",
    "-fvisibility=hidden", "-shared", "-fPIC",
)  # fmt: skip
SHIPPED = Path(__file__).parent / "libraries"
"""Folder of the libraries that come with the program."""
MANIFEST = "manifest.json"
LEVEL_VARIABLE = "DECODESCOPE_NATIVE_LEVEL"
"""Environment variable that chooses the library: the name of a level, `COMPILED` or `OFF`."""
COMPILED, OFF = "compiled", "off"
FEATURES = ("x86-64-v3", "AVX-VNNI", "AVX-512", "AVX-512 VNNI", "DotProd", "I8MM")
"""Groups of instructions, in the order of the bits of `source/processor_features.c`."""
_COMPILERS = ("g++", "clang++", "c++")


@dataclass(frozen=True, slots=True)
class Level:
    """A level of a processor's instructions for which a library is made. `needs`: the names in FEATURES."""

    name: str
    title: str
    needs: frozenset[str]


def _level(name: str, title: str, *needs: str) -> Level:
    return Level(name, title, frozenset(needs))


LEVELS: Mapping[str, tuple[Level, ...]] = {
    "x86_64": (
        _level("v4-vnni", mark("x86-64 with AVX-512 and VNNI"), "x86-64-v3", "AVX-512", "AVX-512 VNNI"),
        _level("v4", mark("x86-64 with AVX-512"), "x86-64-v3", "AVX-512"),
        _level("v3-vnni", mark("x86-64 with AVX2 and VNNI"), "x86-64-v3", "AVX-VNNI"),
        _level("v3", mark("x86-64 with AVX2"), "x86-64-v3"),
    ),
    "aarch64": (
        _level("i8mm", mark("ARM64 with products of 8-bit matrices (I8MM)"), "DotProd", "I8MM"),
        _level("dotprod", mark("ARM64 with products of 8-bit vectors (DotProd)"), "DotProd"),
        _level("neon", mark("ARM64 with NEON")),
    ),
}
"""Levels by machine, the fastest first."""


@dataclass(frozen=True, slots=True)
class LibraryChoice:
    """The native library to use. `level`: the name of a level, COMPILED, or OFF without a path; `title`: the
    processors that it is made for; `is_requested`: whether LEVEL_VARIABLE names it.
    """

    level: str
    path: Path | None
    title: str = ""
    is_requested: bool = False

    @property
    def is_shipped(self) -> bool:
        """Whether it comes with the program."""
        return self.level not in (COMPILED, OFF)


def machine() -> str:
    """Return the kind of processor that this Python runs on, as LEVELS names it."""
    # Windows for ARM64 runs programs for x86-64 too, and platform.machine() may name the computer's own kind.
    name = sysconfig.get_platform().removeprefix("win-") if os.name == "nt" else platform.machine()
    return {"amd64": "x86_64", "arm64": "aarch64"}.get(name.lower(), name.lower())


def choose_library(without: frozenset[str] = frozenset()) -> LibraryChoice:
    """Return the library for this processor, whether its file exists or not; never one of the levels `without`.

    The best level that comes with the program and that the processor supports is preferred. If there is none, the
    library is compiled on this computer. Raises ParameterError if LEVEL_VARIABLE is set to a value that is unknown,
    does not come with the program, or that the processor does not support.
    """
    requested = os.environ.get(LEVEL_VARIABLE, "").strip()
    if requested == OFF:
        return LibraryChoice(OFF, None, is_requested=True)
    shipped = None if requested == COMPILED else _choose_shipped(requested, SHIPPED, without)
    return shipped or _compiled(requested == COMPILED)


def shipped_levels() -> tuple[str, ...]:
    """Return the names of the levels that come with the program, the fastest first."""
    manifest = _manifest(SHIPPED)
    return () if manifest is None else tuple(manifest["libraries"])


@functools.lru_cache(maxsize=16)
def _choose_shipped(requested: str, folder: Path, without: frozenset[str]) -> LibraryChoice | None:
    """Return the best library in `folder`, or that of the requested level; None if none of them can be used."""
    manifest = _manifest(folder)
    levels = LEVELS.get(machine(), ())
    if requested:
        _check_request(requested, levels, manifest, without)
    for level in levels:
        if manifest is None or level.name not in manifest["libraries"] or level.name in without:
            continue
        if requested in ("", level.name) and level.needs <= processor_features(folder):
            path = folder / manifest["libraries"][level.name]["file"]
            return LibraryChoice(level.name, path, level.title, requested == level.name)
    return None


def _compiled(is_requested: bool) -> LibraryChoice:
    """Return the library that the computer's own compiler makes; none on Windows, whose compilers lack the vectors of
    the source.
    """
    path = None if os.name == "nt" else library_folder() / f"step-{_processor_digest()}.so"
    return LibraryChoice(COMPILED, path, is_requested=is_requested)


def _check_request(
    requested: str, levels: tuple[Level, ...], manifest: Mapping[str, Any] | None, without: frozenset[str]
) -> None:
    """Raise ParameterError unless the requested level is known, exists here, and is supported by the processor."""
    known = [level.name for level in levels]
    remedy = tr("Remove the variable, or use one of: {values}.")
    if requested not in known:
        cause = tr("The environment variable {variable} is “{value}”, which is not a level for this processor.")
        usable = [*known, COMPILED, OFF]
    elif manifest is None or requested not in manifest["libraries"]:
        cause = tr(
            "The environment variable {variable} is “{value}”, but the program came without a library of that level."
        )
        usable = [*(manifest["libraries"] if manifest else ()), COMPILED, OFF]
    elif not next(level.needs for level in levels if level.name == requested) <= processor_features(SHIPPED):
        cause = tr("The environment variable {variable} is “{value}”, but this processor does not support that level.")
        usable = [level.name for level in levels if level.needs <= processor_features(SHIPPED)] + [COMPILED, OFF]
    elif requested in without:
        cause = tr("The environment variable {variable} is “{value}”, but the library of that level cannot be opened.")
        usable = [*(name for name in manifest["libraries"] if name not in without), COMPILED, OFF]
    else:
        return
    raise ParameterError(
        cause.format(variable=LEVEL_VARIABLE, value=requested), remedy.format(values=join_names(usable)), LEVEL_VARIABLE
    )


def processor_features(folder: Path) -> frozenset[str]:
    """Return the names in FEATURES of what processor and system support, as the library in `folder` reports them."""
    manifest = _manifest(folder)
    return frozenset() if manifest is None else features_reported_by(folder / manifest["features"]["file"])


def features_reported_by(path: Path) -> frozenset[str]:
    """Return the names in FEATURES that a library of `source/processor_features.c` reports; none if it cannot be
    opened. It runs on the oldest processors, and no instruction is tried.
    """
    try:
        function = ctypes.CDLL(str(path)).decodescope_processor_features
    except (OSError, AttributeError):
        return frozenset()
    function.restype = ctypes.c_uint
    bits = int(function())
    return frozenset(name for place, name in enumerate(FEATURES) if bits >> place & 1)


@functools.lru_cache(maxsize=4)
def _manifest(folder: Path) -> Mapping[str, Any] | None:
    """Return the list of the libraries in `folder`; None if there are none, or they are of other sources or another
    kind of processor.
    """
    try:
        manifest: dict[str, Any] = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return manifest if (manifest["source"], manifest["machine"]) == (source_digest(), machine()) else None


def is_intact(choice: LibraryChoice) -> bool:
    """Return whether a library that comes with the program has the bytes that the manifest lists: opening a truncated
    file ends the process. On macOS, signing the frozen program changes the bytes.
    """
    if choice.path is None or (sys.platform == "darwin" and getattr(sys, "frozen", False)):
        return True
    manifest = _manifest(choice.path.parent)
    listed = manifest["libraries"][choice.level]["sha256"] if manifest else None
    return hashlib.sha256(choice.path.read_bytes()).hexdigest() == listed


def forget_choices() -> None:
    """Read the libraries that come with the program again."""
    _choose_shipped.cache_clear()
    _manifest.cache_clear()


def library_folder() -> Path:
    """Return the folder in the user's cache for compiled libraries."""
    return cache_folder() / "native"


def find_compiler() -> str | None:
    """Return the path of a C++ compiler that supports the vector extensions of the source."""
    return next((found for name in _COMPILERS if (found := shutil.which(name))), None)


@functools.cache
def source_digest() -> str:
    """Return a digest of the sources and the flags of the compiler, by which outdated libraries are noticed."""
    digest = hashlib.sha256(" ".join(FLAGS).encode())
    for file in sorted(SOURCE.iterdir()):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:24]


@functools.cache
def _processor_digest() -> str:
    """Return a digest of sources, flags and processor."""
    return hashlib.sha256(" ".join((source_digest(), platform.machine(), _processor())).encode()).hexdigest()[:24]


def _processor() -> str:
    """Return the processor model and its instruction sets: different computers may share a home folder."""
    if sys.platform != "linux":
        return platform.processor()
    with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as cpuinfo:
        lines = (line.partition(":") for line in cpuinfo)
        known = {name.strip(): value.strip() for name, _, value in lines}
    return " ".join(known.get(name, "") for name in ("model name", "flags", "Features", "CPU part"))
