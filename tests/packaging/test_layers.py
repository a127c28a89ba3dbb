"""The rooms stay apart: import contracts, and no torch before the first paint."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

LIGHT = "import sys, {module}; print(*sorted({{'torch', 'transformers', 'PySide6', 'app'}} & set(sys.modules)))"


def loaded_by(module: str, root) -> list[str]:
    command = [sys.executable, "-c", LIGHT.format(module=module)]
    answer = subprocess.run(command, cwd=root, capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr
    return answer.stdout.split()


TOP_LEVEL = {
    "app", "core", "docs", "packaging", "resources", "tests", "CHANGELOG.md", "LICENSE", "README.md",
    "decodescope.py", "pyproject.toml", "setup.py",
}  # fmt: skip


def test_the_top_level_is_the_projects_own(root):
    """It was fixed once; whatever a tool or a test wrote beside it was added by mistake."""
    git = shutil.which("git") or "false"
    listed = subprocess.run(
        [git, "-c", "safe.directory=*", "-C", str(root), "ls-files"], capture_output=True, text=True
    )
    if listed.returncode:
        pytest.skip("no git, or no checkout that it reads")
    tops = {name.partition("/")[0] for name in listed.stdout.splitlines()}
    assert {name for name in tops if not name.startswith(".")} == TOP_LEVEL


def test_importing_the_core_loads_neither_torch_nor_qt(root):
    assert loaded_by("core", root) == []


def test_importing_the_window_loads_no_torch(root):
    pytest.importorskip("PySide6")
    assert loaded_by("app.window.main_window", root) == ["PySide6", "app"]


def contracts_checked(folder, *arguments):
    """What import-linter answers of the packages in this folder."""
    pytest.importorskip("importlinter")
    script = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    command = [sys.executable, "-c", script, "--no-cache", "--no-logo", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


def test_import_contracts_hold(root):
    answer = contracts_checked(root)
    assert answer.returncode == 0, answer.stdout
    assert "0 broken" in answer.stdout


def test_what_the_application_may_know_of_the_core_is_an_allow_list(root, tmp_path):
    """A module that no contract names is out of bounds, and so is what lies within a face or is imported late."""
    for package in ("app", "core", "resources"):
        shutil.copytree(root / package, tmp_path / package, ignore=_no_sources)
    shutil.copy(root / "pyproject.toml", tmp_path)
    (tmp_path / "core/newcomer.py").write_text("")
    (tmp_path / "app/sly.py").write_text(
        "from core import events, newcomer\n"
        "def late():\n    import core.strategies.greedy\n    from core.labs import processes\n"
    )
    answer = contracts_checked(tmp_path, "--contract", "app-uses-the-public-core")
    assert answer.returncode == 1
    assert re.findall(r"app\S* -> \S+", answer.stdout) == [
        "app.sly -> core.labs.processes",
        "app.sly -> core.newcomer",
        "app.sly -> core.strategies.greedy",
    ]


def _no_sources(folder, names):
    return [name for name in names if not name.endswith(".py") and not Path(folder, name).is_dir()]
