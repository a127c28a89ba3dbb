"""Choice of the native library by the features of the processor, the libraries of the program, and the variable."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from decodescope import core
from decodescope.core.native import kernel_build, library_choice, native_library
from decodescope.core.native.library_choice import COMPILED, LEVEL_VARIABLE, LEVELS, OFF, choose_library

V3 = {"x86-64-v3"}
V4 = V3 | {"AVX-512"}
ARM = {"DotProd"}
CPUINFO = {
    "x86-64-v3": {"avx2", "bmi1", "bmi2", "fma", "f16c", "abm", "movbe"}, "AVX-VNNI": {"avx_vnni"},
    "AVX-512": {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}, "AVX-512 VNNI": {"avx512_vnni"},
    "DotProd": {"asimddp"}, "I8MM": {"i8mm"},
}  # fmt: skip
"""How Linux names the features."""


class FakeProcessor:
    """A machine with a faked processor, and a program with the given libraries."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self._patch = folder, monkeypatch
        monkeypatch.setattr(library_choice, "SHIPPED", folder)
        monkeypatch.setattr(native_library, "_HOLDER", native_library._LibraryHolder())
        monkeypatch.setattr(kernel_build, "find_compiler", lambda: None)
        monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        monkeypatch.delenv(LEVEL_VARIABLE)
        self.is_of("x86_64", V3)

    def is_of(self, kind: str, features: set[str]) -> None:
        self._patch.setattr(library_choice, "machine", lambda: kind)
        self._patch.setattr(library_choice, "features_reported_by", lambda path: frozenset(features))
        library_choice.forget_choices()

    def has(self, *levels: str, **changes: Any) -> None:
        """Let the program have libraries of these levels, whose bytes are no libraries."""
        self.folder.mkdir(exist_ok=True)
        for level in levels:
            (self.folder / f"{level}.so").write_bytes(level.encode())
        listed = {
            level: {"file": f"{level}.so", "bytes": len(level), "sha256": hashlib.sha256(level.encode()).hexdigest()}
            for level in levels
        }
        manifest = {
            "source": library_choice.source_digest(), "machine": library_choice.machine(),
            "features": {"file": "features.so"}, "libraries": listed, **changes,
        }  # fmt: skip
        (self.folder / library_choice.MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")
        library_choice.forget_choices()

    def opens(self, *levels: str) -> None:
        """Let the system open the libraries of these levels only."""

        class Opened:
            def __init__(self, path: Path) -> None:
                if path.stem not in levels:
                    raise OSError("not opened")

        self._patch.setattr(native_library, "NativeLibrary", Opened)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    yield FakeProcessor(tmp_path / "libraries", monkeypatch)
    library_choice.forget_choices()


@pytest.mark.parametrize(
    ("kind", "features", "level"),
    [
        ("x86_64", V3, "v3"),
        ("x86_64", V3 | {"AVX-VNNI"}, "v3-vnni"),
        ("x86_64", V4, "v4"),
        ("x86_64", V4 | {"AVX-VNNI"}, "v4"),
        ("x86_64", V4 | {"AVX-512 VNNI"}, "v4-vnni"),
        ("x86_64", set(), COMPILED),
        ("x86_64", {"AVX-512 VNNI"}, COMPILED),
        ("aarch64", set(), "neon"),
        ("aarch64", ARM, "dotprod"),
        ("aarch64", ARM | {"I8MM"}, "i8mm"),
        ("riscv64", set(), COMPILED),
    ],
)
def test_best_supported_level_is_chosen(machine: FakeProcessor, kind: str, features: set[str], level: str) -> None:
    machine.is_of(kind, features)
    machine.has(*(level.name for level in LEVELS.get(kind, ())))
    assert choose_library().level == level
    assert choose_library().is_shipped == (level != COMPILED)


def test_levels_that_the_program_lacks_are_not_chosen(machine: FakeProcessor) -> None:
    assert choose_library().level == COMPILED
    machine.is_of("x86_64", V4 | {"AVX-512 VNNI"})
    machine.has("v3", "v4")
    assert choose_library().level == "v4"
    assert library_choice.shipped_levels() == ("v3", "v4")


@pytest.mark.parametrize("changes", [{"source": "older"}, {"machine": "aarch64"}])
def test_libraries_of_other_sources_or_machines_are_not_chosen(machine: FakeProcessor, changes: dict[str, str]) -> None:
    machine.has("v3")
    assert choose_library().level == "v3"
    machine.has("v3", **changes)
    assert choose_library().level == COMPILED


@pytest.mark.parametrize("value", [COMPILED, OFF, "v3"])
def test_variable_chooses_a_level(machine: FakeProcessor, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.is_of("x86_64", V4)
    machine.has("v3", "v4")
    monkeypatch.setenv(LEVEL_VARIABLE, value)
    choice = choose_library()
    assert (choice.level, choice.is_requested) == (value, True)
    assert (choice.path is None) == (value == OFF)


@pytest.mark.parametrize(
    ("value", "cause", "usable"),
    [
        ("v5", "not a level for this processor", "v4-vnni, v4, v3-vnni, v3, compiled, off"),
        ("neon", "not a level for this processor", "v4-vnni, v4, v3-vnni, v3, compiled, off"),
        ("v3-vnni", "without a library of that level", "v3, v4-vnni, compiled, off"),
        ("v4-vnni", "does not support that level", "v4, v3, compiled, off"),
    ],
)
def test_unusable_value_of_the_variable_is_refused_with_the_list(
    machine: FakeProcessor, value: str, cause: str, usable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.is_of("x86_64", V4)
    machine.has("v3", "v4-vnni")
    monkeypatch.setenv(LEVEL_VARIABLE, value)
    with pytest.raises(core.errors.ParameterError, match=cause) as refused:
        core.kernel_status()
    assert refused.value.remedy.endswith(f"one of: {usable}.")
    with pytest.raises(core.errors.ParameterError):
        native_library.library()


def test_damaged_library_is_not_opened_and_the_next_level_is_used(machine: FakeProcessor) -> None:
    machine.is_of("x86_64", V4)
    machine.has("v3", "v4")
    machine.opens("v3", "v4")
    (machine.folder / "v4.so").write_bytes(b"v")
    assert native_library.library() is not None
    assert native_library.library_choice().level == "v3"


def test_library_that_the_system_refuses_is_not_used(machine: FakeProcessor, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.has("v3")
    assert native_library.library() is None, "it is no library"
    assert native_library.library_choice().level == COMPILED
    assert core.kernel_status().state == "no_compiler"
    monkeypatch.setenv(LEVEL_VARIABLE, "v3")
    with pytest.raises(core.errors.ParameterError, match="cannot be opened"):
        core.kernel_status()


def test_status_names_the_library_and_why_it_is_used(machine: FakeProcessor, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.has("v3")
    machine.opens("v3")
    status = core.kernel_status()
    assert (status.state, status.level) == ("ready", "v3")
    assert "x86-64 with AVX2 (v3), the best one for this processor" in status.sentence
    assert core.build_kernels() == status, "nothing is compiled"
    monkeypatch.setenv(LEVEL_VARIABLE, "v3")
    monkeypatch.setattr(native_library, "_HOLDER", native_library._LibraryHolder())
    assert "which DECODESCOPE_NATIVE_LEVEL chooses" in core.kernel_status().sentence
    monkeypatch.setenv(LEVEL_VARIABLE, OFF)
    monkeypatch.setattr(native_library, "_HOLDER", native_library._LibraryHolder())
    assert core.kernel_status().state == "off"
    assert native_library.library() is None


def test_status_without_native_code_says_what_is_missing(machine: FakeProcessor) -> None:
    assert "came without libraries for this kind of computer" in core.kernel_status().sentence
    machine.is_of("x86_64", set())
    machine.has("v3", "v4")
    status = core.kernel_status()
    assert (status.state, status.level) == ("no_compiler", "")
    assert "none of the levels that the program has libraries for (v3, v4)" in status.sentence


@pytest.mark.skipif(sys.platform != "linux", reason="compares with what Linux reports")
def test_reported_features_are_those_of_the_system(needs_compiler: None, tmp_path: Path) -> None:
    compiler, target = library_choice.find_compiler(), tmp_path / "features.so"
    assert compiler is not None
    command = [compiler, "-x", "c", "-Wall", "-Wextra", "-Wconversion", "-Werror", "-shared", "-fPIC"]
    subprocess.run([*command, str(library_choice.FEATURES_SOURCE), "-o", str(target)], check=True)
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    flags = next(set(line.split()) for line in lines if line.startswith(("flags", "Features")))
    expected = {name for name, needed in CPUINFO.items() if needed <= flags}
    if "x86-64-v3" not in expected and library_choice.machine() == "x86_64":
        expected = set()
    assert library_choice.features_reported_by(target) == expected
    assert library_choice.features_reported_by(tmp_path / "missing.so") == frozenset()
