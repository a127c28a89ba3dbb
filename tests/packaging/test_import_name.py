"""`import decodescope`: the core's public names, lazily, and a clear error where another package hides ours."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def python(code: str, folder: Path, *path: Path) -> subprocess.CompletedProcess[str]:
    """Run `code` as a script of `folder`, which comes first on sys.path, before `path`."""
    script = folder / "script.py"
    script.write_text(code)
    places = [folder, *path]
    head = f"import sys; sys.path[:0] = {[str(place) for place in places]!r}; exec(open({str(script)!r}).read())"
    return subprocess.run([sys.executable, "-I", "-c", head], capture_output=True, text=True, cwd=folder)


@pytest.mark.slow
def test_public_names_come_lazily(tmp_path):
    answer = python(
        "import sys, decodescope\n"
        "assert 'torch' not in sys.modules and 'core.generation.loading' not in sys.modules\n"
        "import core\n"
        "assert all(hasattr(decodescope, name) for name in core.__all__), 'public names'\n"
        "assert decodescope.load is core.load and set(core.__all__) == set(dir(decodescope))\n",
        tmp_path, ROOT,
    )  # fmt: skip
    assert answer.returncode == 0, answer.stderr


def test_submodules_are_the_core_s_own(tmp_path):
    answer = python(
        "import decodescope.events, core.events\n"
        "from decodescope.errors import DecodescopeError\n"
        "import decodescope.caches.dynamic\n"
        "assert decodescope.events is core.events and core.events.__spec__.name == 'core.events'\n"
        "assert DecodescopeError is core.errors.DecodescopeError\n"
        "try:\n    import decodescope.nothing\nexcept ModuleNotFoundError:\n    pass\nelse:\n    raise SystemExit(1)\n",
        tmp_path, ROOT,
    )  # fmt: skip
    assert answer.returncode == 0, answer.stderr


def test_unknown_name_gets_a_suggestion(tmp_path):
    answer = python("import decodescope\ndecodescope.strem", tmp_path, ROOT)
    assert "module 'decodescope' has no attribute 'strem'. Did you mean 'stream'?" in answer.stderr


@pytest.mark.parametrize(
    ("package", "statement"),
    [
        ("core", "import decodescope"),
        ("core", "import app"),
        ("resources", "import decodescope"),
        ("resources", "import core"),
        ("resources", "import app"),
    ],
)
def test_a_package_that_hides_ours_is_named_with_the_way_out(package, statement, tmp_path):
    (tmp_path / package).mkdir()
    (tmp_path / package / "__init__.py").touch()
    answer = python(statement, tmp_path, ROOT)
    assert answer.returncode == 1
    last = answer.stderr.strip().splitlines()[-1]
    assert last.startswith("ImportError: Python finds another package named")
    assert str(tmp_path / package) in last
    assert str(ROOT / package) in last
    assert "Rename or move" in last


def test_a_module_that_hides_ours_is_named_too(tmp_path):
    (tmp_path / "core.py").write_text("")
    answer = python("import decodescope", tmp_path, ROOT)
    assert str(tmp_path / "core.py") in answer.stderr.strip().splitlines()[-1]


def test_folder_without_init_hides_nothing(tmp_path):
    (tmp_path / "core").mkdir()
    answer = python("import decodescope; decodescope.Request", tmp_path, ROOT)
    assert answer.returncode == 0, answer.stderr


def test_module_starts_the_program():
    answer = subprocess.run([sys.executable, "-m", "decodescope", "--help"], capture_output=True, text=True, cwd=ROOT)
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.startswith("usage: decodescope")
