"""The complete examples of docs/architecture.md pass the tests that go over the registries, as printed.

Each is added, with its test and its line in CHANGELOG.md, to a copy of the tree. Most files of it are hard links.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

pytest.importorskip("transformers")

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("app", "core", "decodescope", "docs", "packaging", "resources", "tests")
FILES = ("CHANGELOG.md", "CONTRIBUTING.md", "README.md", "pyproject.toml")
QUICK = ("tests/core/test_new_entries.py", "tests/core/test_glossary.py", "tests/app/test_guide_pages.py")


class AddedEntry(NamedTuple):
    """An entry of a registry, and the tests that go over that registry."""

    folder: str
    tests: tuple[str, ...]


ENTRIES = {
    "runner_up": AddedEntry(
        "core/strategies",
        ("tests/core/test_strategy_selection.py", "tests/core/test_as_code.py", "tests/core/test_sentences.py",
         "tests/core/test_cache_table.py", "tests/core/test_trace.py", "tests/core/test_branch.py",
         "tests/packaging/test_registry_isolation.py", "tests/app/test_guide.py"),
    ),
    "top_a": AddedEntry(
        "core/processors",
        ("tests/core/test_processors.py", "tests/core/test_stage_order.py", "tests/core/test_explained_stages.py",
         "tests/core/test_as_code.py", "tests/packaging/test_registry_isolation.py", "tests/app/test_guide.py"),
    ),
    "own_windows": AddedEntry(
        "core/caches",
        ("tests/core/test_caches.py", "tests/core/test_cache_predictions.py", "tests/core/test_cache_table.py",
         "tests/core/test_cache_plan.py", "tests/packaging/test_registry_isolation.py", "tests/app/test_guide.py"),
    ),
}  # fmt: skip
CACHE = "own_windows"


def example(name: str) -> str:
    """Return the code block of the page that defines the entry of this name."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    (code,) = [block for block in blocks if f'    name="{name}",\n' in block]
    return code


def _link(source: str, target: str) -> None:
    """Link a file, or copy it where it may be written to or lies on another file system."""
    try:
        if source.endswith((".md", ".mo")):
            raise OSError
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the tree."""
    for name in FOLDERS:
        shutil.copytree(ROOT / name, tmp_path / name, copy_function=_link)
    for name in FILES:
        _link(str(ROOT / name), str(tmp_path / name))
    return tmp_path


def replace_file(path: Path, text: str) -> None:
    path.unlink(missing_ok=True)  # a hard link
    path.write_text(text, encoding="utf-8")


def add_entry(copy: Path, name: str) -> None:
    """Add all that CONTRIBUTING.md requires of a new entry."""
    replace_file(copy / ENTRIES[name].folder / f"{name}.py", example(name))
    replace_file(copy / "tests" / "core" / f"test_{name}.py", f'NAME = "{name}"\n')
    changes = (copy / "CHANGELOG.md").read_text(encoding="utf-8")
    replace_file(copy / "CHANGELOG.md", f"{changes}\n- New: `{name}`.\n")


def run(copy: Path, *command: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, *command], cwd=copy, capture_output=True, text=True)


def run_tests(copy: Path, tests: Sequence[str], *options: str) -> "subprocess.CompletedProcess[str]":
    return run(copy, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, *tests)


def added_files(copy: Path) -> set[str]:
    """Return the files that the copy does not share with the tree."""
    return {
        path.relative_to(copy).as_posix()
        for path in copy.rglob("*")
        if path.is_file()
        and path.suffix not in (".pyc", ".mo")
        and not ((other := ROOT / path.relative_to(copy)).is_file() and other.read_bytes() == path.read_bytes())
    }


@pytest.mark.parametrize(
    "name", [*(pytest.param(one, marks=pytest.mark.slow) for one in ENTRIES if one != CACHE), CACHE]
)
def test_every_missing_step_of_a_new_entry_is_named(name: str, copy: Path) -> None:
    code = re.sub(r"    description=.*?\n    \),\n", "", example(name), flags=re.DOTALL)
    file = f"{ENTRIES[name].folder}/{name}.py"
    replace_file(copy / file, code)
    said = run_tests(copy, QUICK[:2]).stdout
    assert f"No test names {file}. Add tests/core/test_{name}.py" in said
    assert "Give the entry of its file a description=EntryDescription(…)" in said
    replace_file(copy / file, example(name))
    assert f"Add a line to CHANGELOG.md that names {name}." in run_tests(copy, QUICK[:1]).stdout


def test_example_passes_the_quick_tests_of_the_registries(copy: Path) -> None:
    for name in ENTRIES:
        add_entry(copy, name)
    done = run_tests(copy, QUICK)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("name", ENTRIES)
def test_example_passes_all_tests_of_its_registry(name: str, copy: Path) -> None:
    add_entry(copy, name)
    done = run(copy, "packaging/cache_table.py")
    assert done.returncode == 0, done.stderr
    assert len(added_files(copy)) <= 4
    done = run_tests(copy, (*QUICK, *ENTRIES[name].tests))
    assert done.returncode == 0, done.stdout + done.stderr
    checked = run(copy, "packaging/translations.py", "check")
    assert checked.returncode == 0, checked.stdout
    assert f"not translated ({ENTRIES[name].folder}/{name}.py)" in checked.stdout
