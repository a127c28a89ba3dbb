"""Import contracts between packages, and no torch before the first paint."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

LIGHT = (
    "import sys, {module}; print(*sorted({{'torch', 'transformers', 'PySide6', 'decodescope.app'}} & set(sys.modules)))"
)


def loaded_by(module: str, root) -> list[str]:
    command = [sys.executable, "-c", LIGHT.format(module=module)]
    answer = subprocess.run(command, cwd=root, capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr
    return answer.stdout.split()


TOP_LEVEL = {
    "app", "core", "decodescope", "docs", "packaging", "resources", "tests", "CHANGELOG.md", "CONTRIBUTING.md",
    "LICENSE", "README.md", "SECURITY.md", "pyproject.toml",
}  # fmt: skip


def test_top_level_contains_only_the_listed_entries(root):
    """The list is fixed: other files there were added by mistake."""
    git = shutil.which("git") or "false"
    listed = subprocess.run(
        [git, "-c", "safe.directory=*", "-C", str(root), "ls-files"], capture_output=True, text=True
    )
    if listed.returncode:
        pytest.skip("no git, or no checkout that it reads")
    tops = {name.partition("/")[0] for name in listed.stdout.splitlines()}
    assert {name for name in tops if not name.startswith(".")} == TOP_LEVEL


def test_importing_the_core_loads_neither_torch_nor_qt(root):
    assert loaded_by("decodescope.core", root) == []


def test_importing_the_window_loads_no_torch(root):
    pytest.importorskip("PySide6")
    assert loaded_by("decodescope.app.window.main_window", root) == ["PySide6", "decodescope.app"]


def contracts_checked(folder, *arguments):
    """Return import-linter's report on the packages in this folder."""
    pytest.importorskip("importlinter")
    command = [sys.executable, "packaging/static_checks.py", "imports", "--no-cache", "--no-logo", *arguments]
    variables = {**os.environ, "COLUMNS": "300"}
    return subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True)


def test_import_contracts_hold(root):
    answer = contracts_checked(root)
    assert answer.returncode == 0, answer.stdout
    assert "0 broken" in answer.stdout


@pytest.fixture
def copied(root, tmp_path):
    """A copy of the sources, to add what is forbidden."""
    for package in ("app", "core", "resources", "decodescope"):
        shutil.copytree(root / package, tmp_path / package, ignore=_no_sources)
    (tmp_path / "packaging").mkdir()
    for name in ("pyproject.toml", "packaging/static_checks.py", "packaging/distribution_files.py"):
        shutil.copy(root / name, tmp_path / name)
    return tmp_path


def test_application_imports_only_the_allowed_core_modules(copied):
    """A module that no contract names is forbidden, and so are submodules of public packages and late imports."""
    (copied / "core/newcomer.py").write_text("")
    (copied / "app/sly.py").write_text(
        "from decodescope.core import events, newcomer\n"
        "def late():\n    import decodescope.core.strategies.greedy\n    from decodescope.core.labs import processes\n"
    )
    answer = contracts_checked(copied, "--contract", "app-uses-the-public-core")
    assert answer.returncode == 1
    assert re.findall(r"decodescope\.app\S* -> \S+", answer.stdout) == [
        "decodescope.app.sly -> decodescope.core.labs.processes",
        "decodescope.app.sly -> decodescope.core.newcomer",
        "decodescope.app.sly -> decodescope.core.strategies.greedy",
    ]


UPWARDS = {
    "application-layers": {
        "decodescope.app.views.base": "decodescope.app.features.media.session.media_cache",
        "decodescope.app.control.requests": "decodescope.app.features.history.controller.history",
        "decodescope.app.storage.settings": "decodescope.app.views.base",
    },
    "feature-layers": {
        "decodescope.app.features.guess.panel": "decodescope.app.features.guess.controller",
        "decodescope.app.features.labs.state": "decodescope.app.features.labs.session",
        "decodescope.app.features.tours.state.tour": "decodescope.app.features.tours.panel.tour_panel",
    },
    "independent-features": {
        "decodescope.app.features.tours.state.tour": "decodescope.app.features.guess.state",
        "decodescope.app.features.history.store.history_store": "decodescope.app.features.labs.state",
    },
}
"""Imports that each contract forbids."""


@pytest.mark.parametrize("contract", UPWARDS)
def test_upward_imports_in_features_break_the_contract(copied, contract):
    """Late imports count."""
    for module, forbidden in UPWARDS[contract].items():
        with open(
            copied / f"{module.removeprefix('decodescope.').replace('.', '/')}.py", "a", encoding="utf-8"
        ) as file:
            file.write(f"\n\ndef late():\n    import {forbidden}\n")
    answer = contracts_checked(copied, "--contract", contract)
    assert answer.returncode == 1
    found = dict(re.findall(r"(decodescope\.app\S+) -> (\S+) \(l\.\d+\)", answer.stdout))
    assert found == UPWARDS[contract]


def test_new_folder_without_a_layer_breaks_the_contracts(copied):
    """A new folder of the application, a new role of a feature and a new feature need a line in a contract."""
    newcomers = [copied / "app" / name for name in ("newcomer", "features/newcomer", "features/media/newcomer")]
    for folder in newcomers:
        folder.mkdir()
        (folder / "__init__.py").write_text("")
    answer = contracts_checked(copied)
    assert answer.stdout.count("BROKEN") == 3


def _no_sources(folder, names):
    return [name for name in names if not name.endswith(".py") and not Path(folder, name).is_dir()]
