"""Compilers, levels of processors, and systems for which the native source is compiled and run."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

HOST_SOURCE = Path(__file__).parent / "kernel_host.cpp"
MAIN_SOURCE = Path(__file__).parents[2] / "core" / "native" / "source" / "decodescope.cpp"
BASE_FLAGS = ("-std=c++17", "-ffp-contract=fast", "-fno-math-errno", "-fno-trapping-math", "-fvisibility=hidden")
WARNINGS = ("-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror")
_V3 = ("avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "popcnt", "ssse3", "sse4.2")
_V4 = (*_V3, "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")
FEATURES = {
    "v2": ("ssse3", "sse4.2", "popcnt"), "v3": _V3, "v3-vnni": (*_V3, "avxvnni"), "v4": _V4,
    "v4-vnni": (*_V4, "avx512vnni"), "neon": (), "dotprod": ("dotprod",), "i8mm": ("dotprod", "i8mm"),
}  # fmt: skip
"""What the compiler may use at each level, by LLVM's names."""
X86_LEVELS = ("v2", "v3", "v3-vnni", "v4", "v4-vnni")
ARM_LEVELS = ("neon", "dotprod", "i8mm")
_LINUX_NAMES = {"bmi": "bmi1", "sse4.2": "sse4_2", "lzcnt": "abm", "avxvnni": "avx_vnni", "avx512vnni": "avx512_vnni"}


@dataclass(frozen=True)
class CompilerTarget:
    """A system and processor that zig compiles for. `triple`: zig's name of it."""

    triple: str
    levels: tuple[str, ...]


TARGETS = {
    "linux-arm64": CompilerTarget("aarch64-linux-musl", ARM_LEVELS),
    "windows-x86_64": CompilerTarget("x86_64-windows-gnu", ("v3", "v4-vnni")),
    "windows-arm64": CompilerTarget("aarch64-windows-gnu", ("neon", "dotprod")),
    "macos-arm64": CompilerTarget("aarch64-macos.11.0", ("dotprod", "i8mm")),
    "macos-x86_64": CompilerTarget("x86_64-macos.11.0", ("v3", "v4-vnni")),
}


def zig() -> str | None:
    """Return the path of zig's program of the package `ziglang`."""
    spec = importlib.util.find_spec("ziglang")
    folders = (spec.submodule_search_locations or ()) if spec else ()
    programs = (Path(folder) / ("zig.exe" if os.name == "nt" else "zig") for folder in folders)
    return next((str(path) for path in programs if path.is_file()), None)


def runs_here(level: str) -> bool:
    """Return whether this processor has the level; only known on Linux."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text(encoding="utf-8").splitlines() if cpuinfo.is_file() else []
    flags = next((line.partition(":")[2].split() for line in lines if line.startswith(("flags", "Features"))), [])
    return {_LINUX_NAMES.get(name, name) for name in FEATURES[level]} <= set(flags)


def own_compilers() -> list[str]:
    """Return the names of the C++ compilers of this machine."""
    return [name for name in ("g++", "clang++") if shutil.which(name)]


def level_flags(compiler: str, level: str) -> list[str]:
    """Return the options that allow the level's instructions."""
    if compiler in ("g++", "clang++"):
        return [f"-m{name}" for name in FEATURES[level]]
    # With zig's own option for it, C++'s library would be compiled again for each level.
    return [part for name in FEATURES[level] for part in ("-Xclang", "-target-feature", "-Xclang", f"+{name}")]


def run(command: Sequence[str], timeout: float = 1200, **environment: str) -> str:
    """Run a program and return its output; fail with it if the exit code is not 0."""
    answer = subprocess.run(
        command, capture_output=True, text=True, timeout=timeout, env={**os.environ, **environment}
    )  # fmt: skip
    assert answer.returncode == 0, f"{' '.join(command)}\n{answer.stdout[-4000:]}{answer.stderr[-4000:]}"
    return answer.stdout


def compile_library(compiler: Sequence[str], path: Path, *flags: str) -> Path:
    """Compile the native library, whose warnings are errors."""
    run([*compiler, *BASE_FLAGS, *WARNINGS, *flags, "-shared", "-fPIC", str(MAIN_SOURCE), "-o", str(path)])
    return path


def compile_host(compiler: Sequence[str], path: Path, *flags: str, linked: bool = False) -> Path:
    """Compile the program that calls the functions of a library; with `linked`, they are part of it."""
    sources = [str(HOST_SOURCE), *(["-DKERNEL_HOST_LINKED", str(MAIN_SOURCE)] if linked else [])]
    run([*compiler, *BASE_FLAGS, *WARNINGS, *flags, *sources, "-o", str(path)])
    return path
