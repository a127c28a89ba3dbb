"""What a plain `pip install .` brings along."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ASK_SETUPTOOLS = """
import warnings
warnings.simplefilter("ignore")
from setuptools import Distribution
distribution = Distribution()
distribution.parse_config_files()
build = distribution.get_command_obj("build_py")
build.ensure_finalized()
for package, folder, _, names in build.get_data_files_without_manifest():
    for name in names:
        print(folder + "/" + name)
print(*("package " + name for name in distribution.packages), sep="\\n")
"""
PARTS = ("core", "app", "resources", "decodescope.py", "pyproject.toml", "packaging", "README.md", "LICENSE")
RUN_BUNDLED = """
import core, decodescope, sys
from transformers import GenerationConfig
assert core.__file__.startswith(sys.argv[1]), core.__file__
model = core.load("storyteller")
print(decodescope.run(model, decodescope.Request("Once upon a time", GenerationConfig(max_new_tokens=3))).texts)
"""


@pytest.fixture(scope="module")
def packed() -> set[str]:
    """The data files and packages that setuptools finds, by its own rules."""
    root = Path(__file__).resolve().parents[2]
    answer = subprocess.run([sys.executable, "-c", ASK_SETUPTOOLS], cwd=root, capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr
    return {Path(line).as_posix() for line in answer.stdout.splitlines()}


def shipped(folder: Path) -> set[str]:
    """Everything in a folder that is neither code, nor source of translations, nor left over from tools."""
    files = {path.relative_to(folder.parent) for path in folder.rglob("*") if path.is_file()}
    hidden = {path for path in files if any(part.startswith(".") for part in path.parts)}
    return {path.as_posix() for path in files - hidden if path.suffix not in {".py", ".pyc", ".po"}}


@pytest.mark.parametrize("part", ["resources", "app", "core"])
def test_every_data_file_is_packed(root, packed, part):
    assert shipped(root / part) <= packed


def test_bundled_models_are_packed_whole(packed):
    for name in ("storyteller", "summarizer"):
        assert {
            f"resources/models/{name}/{file}" for file in ("config.json", "model.safetensors", "tokenizer.json")
        } <= packed


def test_every_package_is_packed_and_nothing_else(root, packed):
    found = {line.removeprefix("package ") for line in packed if line.startswith("package ")}
    inits = [init for part in ("core", "app", "resources") for init in (root / part).rglob("__init__.py")]
    assert found == {".".join(init.parent.relative_to(root).parts) for init in inits}


def test_no_module_lies_outside_a_package(root):
    for part in ("core", "app", "resources"):
        modules = [path for path in (root / part).rglob("*.py") if not (path.parent / "__init__.py").exists()]
        assert modules == []


def test_packaging_is_no_package(root):
    assert not (root / "packaging" / "__init__.py").exists(), "it would shadow the library of that name"


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory) -> Path:
    """A real wheel, built from a copy and unpacked."""
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("unpacked")
    root = Path(__file__).resolve().parents[2]
    for part in PARTS:
        copy = shutil.copytree if (root / part).is_dir() else shutil.copy
        copy(root / part, source / part)
    for compiled in (source / "resources").rglob("*.mo"):
        compiled.unlink()  # as in a bare checkout
    build = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(target), "."]
    answer = subprocess.run(build, cwd=source, capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr
    zipfile.ZipFile(next(target.glob("decodescope-*.whl"))).extractall(target / "here")
    return target / "here"


@pytest.mark.slow
def test_wheel_holds_no_leftovers(unpacked):
    tops = {path.name for path in unpacked.iterdir() if not path.name.endswith(".dist-info")}
    assert tops == {"core", "app", "resources", "decodescope.py"}
    assert not list(unpacked.rglob("__pycache__"))
    assert any(unpacked.glob("*.dist-info/licenses/LICENSE"))


@pytest.mark.slow
def test_wheel_holds_compiled_translations_and_not_their_source(root, unpacked):
    sources = {path.relative_to(root).with_suffix(".mo") for path in (root / "resources").rglob("*.po")}
    assert sources
    assert {path.relative_to(unpacked) for path in unpacked.rglob("*.mo")} == sources
    assert not list(unpacked.rglob("*.po"))


@pytest.mark.slow
def test_wheel_gives_a_working_core(unpacked, tmp_path):
    variables = {**os.environ, "PYTHONPATH": str(unpacked)}
    answer = subprocess.run(
        [sys.executable, "-c", RUN_BUNDLED, str(unpacked)], cwd=tmp_path, env=variables, capture_output=True, text=True
    )
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.strip() not in ("", "[]", "['']")
