"""The set-up's modules are found through their folder: `packaging` is no package."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT / "packaging") not in sys.path:
    sys.path.append(str(ROOT / "packaging"))


@pytest.fixture
def root() -> Path:
    """The project's folder."""
    return ROOT


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program's wheel, built from a copy of the checkout."""
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for part in ("core", "app", "resources", "decodescope", "packaging", "pyproject.toml", "README.md", "LICENSE"):
        copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copy
        copy(ROOT / part, source / part)
    for compiled in (source / "resources").rglob("*.mo"):
        compiled.unlink()  # as in a bare checkout
    build = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(target), "."]
    answer = subprocess.run(build, cwd=source, capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr
    return next(target.glob("decodescope-*.whl"))
