"""The rooms stay apart: import contracts, and no torch before the first paint."""

import subprocess
import sys

import pytest

LIGHT = "import sys, {module}; print(*sorted({{'torch', 'transformers', 'PySide6', 'app'}} & set(sys.modules)))"


def loaded_by(module: str, root) -> list[str]:
    command = [sys.executable, "-c", LIGHT.format(module=module)]
    answer = subprocess.run(command, cwd=root, capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr
    return answer.stdout.split()


def test_importing_the_core_loads_neither_torch_nor_qt(root):
    assert loaded_by("core", root) == []


def test_importing_the_window_loads_no_torch(root):
    pytest.importorskip("PySide6")
    assert loaded_by("app.window.main_window", root) == ["PySide6", "app"]


def test_import_contracts_hold(root):
    pytest.importorskip("importlinter")
    script = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    answer = subprocess.run([sys.executable, "-c", script, "--no-cache"], cwd=root, capture_output=True, text=True)
    assert answer.returncode == 0, answer.stdout
    assert "0 broken" in answer.stdout
