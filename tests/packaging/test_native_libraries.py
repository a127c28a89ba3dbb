"""Native libraries that are made for other processors and systems: targets, wheels, and the set-up of a checkout."""

from __future__ import annotations

import ctypes
import hashlib
import itertools
import json
import os
import re
import subprocess
import sys
import zipfile
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import bill_of_materials
import bootstrap
import build_backend
import installer
import native_libraries
import pytest
import release
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from native_libraries import TARGETS, NativeLibraryError

from decodescope.core.native import library_choice
from tests import native_level

ROOT = Path(__file__).resolve().parents[2]
LINUX = TARGETS["linux-x86_64"]
KERNEL_TESTS = ("native_step", "native_matmul", "native_samplers", "native_draft_model", "gguf_blocks")
RUN_INSTALLED = """
import decodescope, json, sys
status = decodescope.kernel_status()
model = decodescope.load("storyteller")
request = decodescope.Request("Once upon a time", {"max_new_tokens": 8, "do_sample": False})
texts = decodescope.run(model, request).texts
print(json.dumps([decodescope.__file__, status.state, status.level, decodescope.has_native_step(model), texts]))
"""


def fake_target(zig, target, folder, cache, levels=None):
    """Write what `build_target` writes, without a compiler."""
    folder.mkdir(parents=True, exist_ok=True)
    names = {level: f"decodescope-{level}{target.suffix}" for level in target.levels}
    for name in (*names.values(), f"processor-features{target.suffix}"):
        (folder / name).write_bytes(f"{target.name} {name}".encode())
    described = native_libraries._described
    manifest = {
        "source": "x", "machine": target.machine, "target": target.triple, "compiler": "ziglang 1.2",
        "features": described(folder / f"processor-features{target.suffix}"),
        "libraries": {level: described(folder / name) for level, name in names.items()},
    }  # fmt: skip
    (folder / library_choice.MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")
    return manifest


@contextmanager
def no_compiler():
    raise NativeLibraryError("The compiler cannot be had.")
    yield


def pure_wheel(folder, *_):
    """Write a small wheel for all machines."""
    path = Path(folder, "d-1-py3-none-any.whl")
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr("decodescope/__init__.py", "")
        wheel.writestr("d-1.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n\n")
        wheel.writestr("d-1.dist-info/RECORD", "old")
    return path


@pytest.fixture
def backend(monkeypatch):
    """The build backend with a compiler that takes no time."""
    monkeypatch.delenv(native_libraries.SWITCH_VARIABLE, raising=False)
    monkeypatch.setattr(build_backend, "_build_pure_wheel", pure_wheel)
    monkeypatch.setattr(native_libraries, "build_target", fake_target)
    monkeypatch.setattr(native_libraries, "target_of_this_machine", lambda: LINUX)
    monkeypatch.setattr(native_libraries, "own_ziglang", lambda: Path("zig"))
    return build_backend


def test_every_level_has_a_target_and_compiler_features():
    levels = {level.name for levels in library_choice.LEVELS.values() for level in levels}
    assert levels == native_libraries.COMPILER_FEATURES.keys()
    assert levels == {level for target in TARGETS.values() for level in target.levels}
    assert {level.name for level in library_choice.LEVELS["x86_64"]} == set(TARGETS["windows-x86_64"].levels)
    for machine, order in library_choice.LEVELS.items():
        for better, other in itertools.pairwise(order):
            assert not better.needs <= other.needs, f"{other.name} of {machine} would never be chosen"
    assert len(set(native_libraries.HASHES)) == 6
    assert all(re.fullmatch(r"[0-9a-f]{64}", digest) for digest in native_libraries.HASHES)


def test_flags_differ_from_a_compiled_library_in_the_processor_only():
    assert set(library_choice.FLAGS) - set(native_libraries.FLAGS) == {"-march=native"}
    assert set(native_libraries.FLAGS) <= set(library_choice.FLAGS)


@pytest.mark.parametrize(
    ("system", "machine", "libc", "name"),
    [
        ("linux", "x86_64", ("glibc", "2.36"), "linux-x86_64"),
        ("linux", "aarch64", ("glibc", "2.28"), "linux-aarch64"),
        ("linux", "x86_64", ("glibc", "2.17"), None),
        ("linux", "x86_64", ("", ""), None),
        ("linux", "riscv64", ("glibc", "2.41"), None),
        ("win32", "x86_64", ("", ""), "windows-x86_64"),
        ("win32", "aarch64", ("", ""), "windows-arm64"),
        ("darwin", "aarch64", ("", ""), "macos-arm64"),
        ("darwin", "x86_64", ("", ""), "macos-x86_64"),
        ("freebsd14", "x86_64", ("", ""), None),
    ],
)
def test_target_of_a_machine_depends_on_system_processor_and_libc(system, machine, libc, name, monkeypatch):
    monkeypatch.setattr(native_libraries, "sys", SimpleNamespace(platform=system))
    monkeypatch.setattr(native_libraries.platform, "libc_ver", lambda: libc)
    monkeypatch.setattr(library_choice, "machine", lambda: machine)
    found = native_libraries.target_of_this_machine()
    assert (found and found.name) == name


def test_wheel_for_this_machine_contains_its_libraries_and_lists_them(backend, tmp_path):
    name = backend.build_wheel(str(tmp_path))
    assert name == "d-1-py3-none-manylinux_2_28_x86_64.whl"
    with zipfile.ZipFile(tmp_path / name) as wheel:
        names, metadata = set(wheel.namelist()), wheel.read("d-1.dist-info/WHEEL").decode()
        bill = wheel.read("d-1.dist-info/sboms/decodescope.cdx.json").decode()
        manifest = json.loads(wheel.read(bill_of_materials.MANIFEST_NAME))
        record = wheel.read("d-1.dist-info/RECORD").decode()
        for file in native_libraries.listed_files(manifest):
            content = wheel.read(f"{bill_of_materials.NATIVE_FOLDER}/{file['file']}")
            assert file == {**file, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    assert "Root-Is-Purelib: false\nTag: py3-none-manylinux_2_28_x86_64\n" in metadata
    assert list(manifest["libraries"]) == ["v4-vnni", "v4", "v3-vnni", "v3"]
    assert record.count("core/native/libraries/") == 6
    assert "decodescope/__init__.py" in names
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(bill) is None
    parts = {part["name"]: part for part in json.loads(bill)["components"]}
    for file in native_libraries.listed_files(manifest):
        part = parts[f"{bill_of_materials.NATIVE_FOLDER}/{file['file']}"]
        assert (part["type"], part["hashes"][0]["content"]) == ("file", file["sha256"])
    assert bill_of_materials.LLVM_LIBRARIES in parts


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ("variable", "DECODESCOPE_NATIVE_LIBRARIES=0"),
        ("target", "no native libraries for this kind of computer"),
        ("compiler", r"because ziglang==[\d.]+ is not installed"),
    ],
)
def test_wheel_without_native_libraries_is_for_all_machines_and_says_why(
    changed, sentence, backend, tmp_path, monkeypatch, capsys
):
    if changed == "variable":
        monkeypatch.setenv(native_libraries.SWITCH_VARIABLE, "0")
    elif changed == "target":
        monkeypatch.setattr(native_libraries, "target_of_this_machine", lambda: None)
    else:
        monkeypatch.setattr(native_libraries, "own_ziglang", lambda: None)
    name = backend.build_wheel(str(tmp_path))
    assert name == "d-1-py3-none-any.whl"
    assert re.search(sentence, capsys.readouterr().out)
    with zipfile.ZipFile(tmp_path / name) as wheel:
        assert bill_of_materials.MANIFEST_NAME not in wheel.namelist()


def test_compiler_is_required_for_wheels_unless_it_cannot_be_had(backend, monkeypatch):
    found = []
    monkeypatch.setattr(build_backend, "_can_be_had", lambda requirement: found.append(requirement) or len(found) == 1)
    assert native_libraries.REQUIREMENT in backend.get_requires_for_build_wheel()
    assert native_libraries.REQUIREMENT not in backend.get_requires_for_build_wheel()
    monkeypatch.setenv(native_libraries.SWITCH_VARIABLE, "0")
    assert native_libraries.REQUIREMENT not in backend.get_requires_for_build_wheel()
    assert len(found) == 2


def test_package_that_pip_does_not_find_is_not_required(tmp_path, monkeypatch, capsys):
    for name in ("PIP_EXTRA_INDEX_URL", "PIP_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    assert not build_backend._can_be_had("a-package==1")
    assert "no native libraries, because pip does not find a-package==1" in capsys.readouterr().out


def test_release_has_a_wheel_for_each_target_and_one_for_others(backend, tmp_path, monkeypatch):
    monkeypatch.setattr(native_libraries, "ziglang", lambda: commit_builds_zig(tmp_path))
    names = backend.build_wheels(str(tmp_path), TARGETS)
    tags = [re.fullmatch(r"d-1-py3-none-(\w+)\.whl", name)[1] for name in names]
    assert tags == ["any", *(target.tag for target in TARGETS.values())]
    manifests = [release.manifest_in(tmp_path / name) for name in names]
    assert manifests[0] is None
    assert [manifest["target"] for manifest in manifests[1:]] == [target.triple for target in TARGETS.values()]
    assert installer.wheel_for_this_machine(tmp_path.iterdir()).name == "d-1-py3-none-manylinux_2_28_x86_64.whl"
    (tmp_path / "d-1-py3-none-manylinux_2_28_x86_64.whl").unlink()


@contextmanager
def commit_builds_zig(folder):
    yield Path(folder, "ziglang", "zig")


def test_installer_without_a_matching_wheel_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(installer, "target_of_this_machine", lambda: LINUX)
    with pytest.raises(installer.InstallerError, match=r"no wheel for this system"):
        installer.wheel_for_this_machine([tmp_path / "d-1-py3-none-win_amd64.whl"])
    pure = tmp_path / "d-1-py3-none-any.whl"
    assert installer.wheel_for_this_machine([pure]) == pure


def test_installer_without_the_compiler_is_an_error(tmp_path, monkeypatch):
    monkeypatch.delenv(native_libraries.SWITCH_VARIABLE, raising=False)
    monkeypatch.setattr(installer, "target_of_this_machine", lambda: LINUX)
    monkeypatch.setattr(installer, "ziglang", no_compiler)
    with pytest.raises(installer.InstallerError, match="cannot be had"):
        installer.build_wheel(0, tmp_path)


def test_compiler_that_pip_cannot_fetch_is_an_error_with_its_remedy(monkeypatch, tmp_path):
    monkeypatch.setattr(native_libraries, "own_ziglang", lambda: None)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    with pytest.raises(NativeLibraryError, match=r"cannot be had .*DECODESCOPE_NATIVE_LIBRARIES=0"):
        with native_libraries.ziglang():
            pass


def test_library_for_this_processor_is_built_into_a_checkout_once(tmp_path, monkeypatch, capsys):
    built = []
    monkeypatch.delenv(native_libraries.SWITCH_VARIABLE, raising=False)
    monkeypatch.delenv(library_choice.LEVEL_VARIABLE)
    monkeypatch.setattr(native_libraries, "SHIPPED", tmp_path / "libraries")
    monkeypatch.setattr(library_choice, "SHIPPED", tmp_path / "libraries")
    monkeypatch.setattr(library_choice, "machine", lambda: "x86_64")
    monkeypatch.setattr(library_choice, "features_reported_by", lambda path: frozenset({"x86-64-v3", "AVX-512"}))
    monkeypatch.setattr(library_choice, "source_digest", lambda: "x")
    monkeypatch.setattr(library_choice, "find_compiler", lambda: None)
    monkeypatch.setattr(native_libraries, "target_of_this_machine", lambda: LINUX)
    monkeypatch.setattr(native_libraries, "ziglang", lambda: commit_builds_zig(tmp_path))
    monkeypatch.setattr(native_libraries, "_compile_features", lambda *_: None)
    monkeypatch.setattr(native_libraries, "build_target", lambda *given: built.append(given[4]) or fake_target(*given))
    library_choice.forget_choices()
    native_libraries.build_here()
    assert built == [["v4"]], "the best level of this processor alone"
    assert "100 MB" in capsys.readouterr().out
    assert library_choice.choose_library().level == "v4"
    native_libraries.build_here()
    monkeypatch.setattr(library_choice, "source_digest", lambda: "y")
    library_choice.forget_choices()
    monkeypatch.setattr(library_choice, "find_compiler", lambda: "g++")
    native_libraries.build_here()
    assert built == [["v4"]], "a library fits, or a compiler is there"
    monkeypatch.setattr(library_choice, "find_compiler", lambda: None)
    native_libraries.build_here()
    assert len(built) == 2, "the sources have changed"
    library_choice.forget_choices()


@pytest.mark.parametrize("has_compiler", [True, False])
def test_run_makes_native_code_only_without_a_compiler(has_compiler, monkeypatch):
    started = []
    monkeypatch.setattr(bootstrap.shutil, "which", lambda name: name if has_compiler and name == "clang++" else None)
    monkeypatch.setattr(bootstrap.subprocess, "run", lambda command, **_: started.append(command))
    bootstrap.build_native_code(SimpleNamespace(python=Path("python")))
    assert [command[-1] for command in started] == ([] if has_compiler else ["--here"])
    assert set(bootstrap.COMPILERS) == set(library_choice._COMPILERS)


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """The libraries of this machine, built for real."""
    target, zig = native_libraries.target_of_this_machine(), native_libraries.own_ziglang()
    if target is None or zig is None:
        pytest.skip(f"{native_libraries.REQUIREMENT} is not installed")
    folder = tmp_path_factory.mktemp("built")
    native_libraries.build_target(zig, target, folder / "libraries", folder / "cache")
    return folder


@pytest.mark.slow
def test_two_builds_in_different_folders_are_equal(built, tmp_path):
    target, zig = native_libraries.target_of_this_machine(), native_libraries.own_ziglang()
    native_libraries.build_target(zig, target, tmp_path / "other" / "deeper", built / "cache")
    for path in (built / "libraries").iterdir():
        assert path.read_bytes() == (tmp_path / "other" / "deeper" / path.name).read_bytes(), path.name
        assert str(ROOT).encode() not in path.read_bytes()


@pytest.mark.slow
def test_libraries_need_nothing_beyond_the_system(built):
    """No newer glibc, no C++ library, and only functions of this program are exported."""
    for path in (built / "libraries").glob("*.so"):
        content = path.read_bytes()
        versions = {tuple(map(int, version.split(b"."))) for version in re.findall(rb"GLIBC_([\d.]+)", content)}
        assert max(versions, default=(2, 0)) <= native_libraries.OLDEST_GLIBC
        assert b"libstdc++" not in content
        assert b"libgomp" not in content
        assert len(content) < 1_000_000
        ctypes.CDLL(str(path))


@pytest.mark.slow
@pytest.mark.parametrize("level", [level.name for level in library_choice.LEVELS.get(library_choice.machine(), ())])
def test_each_level_passes_the_numerical_tests_of_the_kernels(level, built):
    folder = built / "libraries"
    (features,) = folder.glob("processor-features*")
    needed = next(one.needs for one in library_choice.LEVELS[library_choice.machine()] if one.name == level)
    if not needed <= library_choice.features_reported_by(features):
        pytest.skip(f"this processor does not support {level}")
    files = [f"tests/core/test_{name}.py" for name in KERNEL_TESTS]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *files]
    variables = {
        **os.environ, native_level.VARIABLE: level, native_level.FOLDER_VARIABLE: str(folder),
        "DECODESCOPE_REQUIRE_TOOLS": "0",
    }  # fmt: skip
    answer = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True)
    assert answer.returncode == 0, answer.stdout[-5000:]


@pytest.mark.slow
def test_installed_wheel_uses_its_library_without_a_compiler(built, tmp_path):
    """The text is that of a checkout without native code."""
    names = ("core", "app", "resources", "decodescope", "packaging", "pyproject.toml", "README.md", "LICENSE")
    source = tmp_path / "source"
    source.mkdir()
    for name in names:
        (source / name).symlink_to(ROOT / name)
    variables = {**os.environ, "PATH": str(tmp_path), "ZIG_GLOBAL_CACHE_DIR": str(built / "cache")}
    for name in (library_choice.LEVEL_VARIABLE, native_libraries.SWITCH_VARIABLE):
        variables.pop(name, None)
    build = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--no-deps",
        "--no-build-isolation",
        "-w",
        str(tmp_path),
        str(source),
    ]
    subprocess.run(build, env=variables, capture_output=True, text=True, check=True)
    target = native_libraries.target_of_this_machine()
    (wheel,) = tmp_path.glob(f"decodescope-*-py3-none-{target.tag}.whl")
    zipfile.ZipFile(wheel).extractall(tmp_path / "unpacked")
    results = []
    for level in ("", "off"):
        variables |= {"PYTHONPATH": str(tmp_path / "unpacked"), library_choice.LEVEL_VARIABLE: level}
        command = [sys.executable, "-c", RUN_INSTALLED]
        answer = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True)
        assert answer.returncode == 0, answer.stderr
        results.append(json.loads(answer.stdout))
    (file, *native, texts), (_, *without, reference) = results
    assert file.startswith(str(tmp_path / "unpacked"))
    assert native[0] == "ready"
    assert native[1] in target.levels
    assert native[2] is True
    assert without == ["off", "", False]
    assert texts == reference
