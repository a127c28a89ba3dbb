"""Contents of a plain `pip install .`."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from distribution_files import arrange_package

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
ROOT = Path(__file__).resolve().parents[2]
PARTS = ("core", "app", "resources")
RUN_BUNDLED = """
import decodescope, sys
from transformers import GenerationConfig
assert decodescope.__file__.startswith(sys.argv[1]), decodescope.__file__
model = decodescope.load("storyteller")
print(decodescope.run(model, decodescope.Request("Once upon a time", GenerationConfig(max_new_tokens=3))).texts)
"""


@pytest.fixture(scope="module")
def packed(tmp_path_factory) -> set[str]:
    """The data files and packages that setuptools finds, by its own rules."""
    folder = tmp_path_factory.mktemp("arranged")
    arrange_package(ROOT, folder, link)
    (folder / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text("utf-8"), "utf-8")
    for name in ("README.md", "LICENSE"):
        (folder / name).touch()
    answer = subprocess.run([sys.executable, "-c", ASK_SETUPTOOLS], cwd=folder, capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr
    return {Path(line).as_posix().removeprefix("decodescope/") for line in answer.stdout.splitlines()}


def link(source: Path, target: Path) -> None:
    target.symlink_to(source, target_is_directory=source.is_dir())


def shipped(folder: Path) -> set[str]:
    """Everything in a folder that is neither code, nor source of translations, nor left over from tools."""
    files = {path.relative_to(folder.parent) for path in folder.rglob("*") if path.is_file()}
    hidden = {path for path in files if any(part.startswith(".") for part in path.parts)}
    return {path.as_posix() for path in files - hidden if path.suffix not in {".py", ".pyc", ".po"}}


@pytest.mark.parametrize("part", PARTS)
def test_every_data_file_is_packed(part, packed):
    assert shipped(ROOT / part) <= packed


def test_bundled_models_are_packed_whole(packed):
    for name in ("storyteller", "summarizer"):
        files = ("config.json", "model.safetensors", "tokenizer.json")
        assert {f"resources/models/{name}/{file}" for file in files} <= packed


def test_every_package_and_no_other_is_packed(packed):
    found = {line.removeprefix("package ") for line in packed if line.startswith("package ")}
    inits = [init for part in PARTS for init in (ROOT / part).rglob("__init__.py")]
    packages = [".".join(("decodescope", *init.parent.relative_to(ROOT).parts)) for init in inits]
    assert found == {"decodescope", *packages}


def test_every_module_belongs_to_a_package():
    for part in PARTS:
        modules = [path for path in (ROOT / part).rglob("*.py") if not (path.parent / "__init__.py").exists()]
        assert modules == []


def test_packaging_folder_is_not_a_package():
    assert not (ROOT / "packaging" / "__init__.py").exists(), "it would shadow the library of that name"


@pytest.fixture(scope="module")
def unpacked(wheel, tmp_path_factory) -> Path:
    """The wheel, unpacked."""
    folder = tmp_path_factory.mktemp("unpacked")
    zipfile.ZipFile(wheel).extractall(folder)
    return folder


@pytest.mark.slow
def test_wheel_holds_no_leftovers(unpacked):
    tops = {path.name for path in unpacked.iterdir() if not path.name.endswith(".dist-info")}
    assert tops == {"decodescope"}
    (info,) = unpacked.glob("*.dist-info")
    assert (info / "top_level.txt").read_text().split() == ["decodescope"]
    assert not list(unpacked.rglob("__pycache__"))
    assert any(unpacked.glob("*.dist-info/licenses/LICENSE"))


@pytest.mark.slow
def test_wheel_contains_compiled_translations_without_source(unpacked):
    sources = {path.relative_to(ROOT).with_suffix(".mo") for path in (ROOT / "resources").rglob("*.po")}
    assert sources
    assert {path.relative_to(unpacked / "decodescope") for path in unpacked.rglob("*.mo")} == sources
    assert not list(unpacked.rglob("*.po"))


@pytest.mark.slow
def test_wheel_gives_a_working_core(unpacked, tmp_path):
    variables = {**os.environ, "PYTHONPATH": str(unpacked)}
    answer = subprocess.run(
        [sys.executable, "-c", RUN_BUNDLED, str(unpacked)], cwd=tmp_path, env=variables, capture_output=True, text=True
    )
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.strip() not in ("", "[]", "['']")
