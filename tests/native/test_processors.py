"""The native source on each level of processors, and on other systems: compiled without warnings, and run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.native import compilers
from tests.native.compilers import ARM_LEVELS, TARGETS, X86_LEVELS, compile_host, compile_library

pytestmark = pytest.mark.slow
TARGET_LEVELS = [(name, level) for name, target in TARGETS.items() for level in target.levels]


@pytest.mark.usefixtures("needs_compiler")
@pytest.mark.parametrize("level", X86_LEVELS)
@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_functions_equal_references_at_each_level(compiler: str, level: str, cases: Path, tmp_path: Path) -> None:
    if compiler not in compilers.own_compilers():
        pytest.skip(f"{compiler} is not installed")
    flags = compilers.level_flags(compiler, level)
    library = compile_library([compiler], tmp_path / "library.so", "-O3", "-pthread", *flags)
    if compilers.runs_here(level):
        host = compile_host([compiler], tmp_path / "host", "-O1", "-ldl")
        assert "0 of" in compilers.run([str(host), str(cases), str(library)])


@pytest.mark.parametrize("level", ARM_LEVELS)
def test_functions_equal_references_on_arm(
    level: str, cases: Path, needs_zig: list[str], needs_qemu: str, tmp_path: Path
) -> None:
    compiler = [*needs_zig, "-target", TARGETS["linux-arm64"].triple, "-mcpu=baseline"]
    flags = compilers.level_flags("zig", level)
    host = compile_host(compiler, tmp_path / "host", "-O2", "-static", *flags, linked=True)
    assert "0 of" in compilers.run([needs_qemu, "-cpu", "max", str(host), str(cases)])


@pytest.mark.parametrize("level", TARGETS["windows-x86_64"].levels)
def test_functions_equal_references_on_windows(
    level: str, cases: Path, needs_zig: list[str], needs_wine: str, tmp_path: Path
) -> None:
    compiler = [*needs_zig, "-target", TARGETS["windows-x86_64"].triple, "-mcpu=baseline"]
    library = compile_library(compiler, tmp_path / "library.dll", "-O3", *compilers.level_flags("zig", level))
    if compilers.runs_here(level):
        host = compile_host(compiler, tmp_path / "host.exe", "-O1")
        prefix = {"WINEPREFIX": str(tmp_path / "wine"), "WINEDEBUG": "-all"}
        command = [needs_wine, str(host), str(cases), str(library)]
        assert "0 of" in compilers.run(command, **prefix)


@pytest.mark.parametrize(("name", "level"), TARGET_LEVELS)
def test_source_compiles_for_each_system_without_warnings(
    name: str, level: str, needs_zig: list[str], tmp_path: Path
) -> None:
    compiler = [*needs_zig, "-target", TARGETS[name].triple, "-mcpu=baseline"]
    compile_library(compiler, tmp_path / "library", "-O1", *compilers.level_flags("zig", level))
