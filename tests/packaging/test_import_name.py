"""`import decodescope`: the public names, the names of the folders in a checkout, and other packages of these names."""

import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOREIGN = {"core/__init__.py": "", "core/errors.py": "OTHER = 1\n", "app/__init__.py": "", "resources.py": ""}
"""Files of another distribution."""


def run_python(code: str, folder: Path, *path: Path) -> subprocess.CompletedProcess[str]:
    """Run `code` as a script of `folder`, which comes first on sys.path, before `path`."""
    script = folder / "script.py"
    script.write_text(code)
    places = [folder, *path]
    head = f"import sys; sys.path[:0] = {[str(place) for place in places]!r}; exec(open({str(script)!r}).read())"
    return subprocess.run([sys.executable, "-I", "-c", head], capture_output=True, text=True, cwd=folder)


def test_public_names_are_loaded_on_first_use(tmp_path):
    answer = run_python(
        "import sys, decodescope\n"
        "assert not {'torch', 'decodescope.core'} & set(sys.modules)\n"
        "from decodescope import core\n"
        "assert 'decodescope.core.generation' not in sys.modules\n"
        "assert set(core.__all__) == set(dir(decodescope))\n"
        "assert decodescope.Request is core.Request\n",
        tmp_path, ROOT,
    )  # fmt: skip
    assert answer.returncode == 0, answer.stderr


@pytest.mark.parametrize(("options", "is_refused"), [(["-OO"], True), (["-O"], False)])
def test_removed_docstrings_are_refused_by_name(options, is_refused):
    command = [sys.executable, *options, "-c", f"import sys; sys.path.insert(0, {str(ROOT)!r}); import decodescope"]
    answer = subprocess.run(command, capture_output=True, text=True)
    assert (answer.returncode != 0) == is_refused
    assert ("transformers reads" in answer.stderr) == is_refused


def test_public_modules_are_those_of_the_core(tmp_path):
    answer = run_python(
        "import decodescope.events, decodescope.core.events\n"
        "from decodescope.errors import DecodescopeError\n"
        "import decodescope.caches.dynamic\n"
        "assert decodescope.events is decodescope.core.events\n"
        "assert decodescope.events.__spec__.name == 'decodescope.core.events'\n"
        "assert decodescope.caches.dynamic is decodescope.core.caches.dynamic\n"
        "assert DecodescopeError is decodescope.core.errors.DecodescopeError\n"
        "try:\n    import decodescope.nothing\nexcept ModuleNotFoundError:\n    pass\nelse:\n    raise SystemExit(1)\n",
        tmp_path, ROOT,
    )  # fmt: skip
    assert answer.returncode == 0, answer.stderr


@pytest.mark.parametrize("first", ["core.errors", "decodescope.core.errors"])
def test_folder_names_in_a_checkout_give_the_same_modules(first, tmp_path):
    answer = run_python(
        f"import {first}\n"
        "import core.errors, core.explain.words, app.state.run, resources.language, decodescope, sys\n"
        "from core import Request\n"
        "from decodescope import app as own_app, core as own_core, resources as own_resources\n"
        "from decodescope.core import errors\n"
        "import decodescope.app.state.run\n"
        "assert (core, app, resources) == (own_core, own_app, own_resources)\n"
        "assert core.errors is errors and Request is decodescope.Request\n"
        "assert core.explain.words is own_core.explain.words and app.state.run is own_app.state.run\n"
        "assert errors.__spec__.name == 'decodescope.core.errors'\n"
        "for name, module in list(sys.modules.items()):\n"
        "    own = 'decodescope.' + name\n"
        "    assert name.split('.')[0] not in ('core', 'app', 'resources') or sys.modules[own] is module, name\n"
        "try:\n    import core.nothing\nexcept ModuleNotFoundError:\n    pass\nelse:\n    raise SystemExit(1)\n",
        tmp_path, ROOT,
    )  # fmt: skip
    assert answer.returncode == 0, answer.stderr


def test_unknown_name_gets_a_suggestion(tmp_path):
    answer = run_python("import decodescope\ndecodescope.strem", tmp_path, ROOT)
    assert "module 'decodescope' has no attribute 'strem'. Did you mean 'stream'?" in answer.stderr


def test_script_beside_folders_of_the_same_names_runs(tmp_path):
    for name, text in FOREIGN.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    answer = run_python(
        "import decodescope\n"
        "from decodescope.core.errors import DecodescopeError\n"
        "import decodescope.app, core, core.errors, app, resources\n"
        "assert decodescope.Request('a').prompt == 'a' and decodescope.core is not core\n"
        "assert core.errors.OTHER == 1 and not hasattr(decodescope.errors, 'OTHER')\n"
        "assert decodescope.caches.registry and decodescope.strategies.registry\n",
        tmp_path, ROOT,
    )  # fmt: skip
    assert answer.returncode == 0, answer.stderr


def test_module_starts_the_program():
    for module in ("decodescope", "app"):
        answer = subprocess.run([sys.executable, "-m", module, "--help"], capture_output=True, text=True, cwd=ROOT)
        assert answer.returncode == 0, answer.stderr
        assert answer.stdout.startswith("usage: decodescope")


@pytest.fixture(scope="module")
def foreign_wheel(tmp_path_factory) -> Path:
    """A wheel of another distribution that installs `core`, `app` and `resources`."""
    path = tmp_path_factory.mktemp("foreign") / "foreign-1.0-py3-none-any.whl"
    info = "foreign-1.0.dist-info"
    files = FOREIGN | {
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: foreign\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    files[f"{info}/RECORD"] = "".join(f"{name},,\n" for name in [*files, f"{info}/RECORD"])
    with zipfile.ZipFile(path, "w") as wheel:
        for name, text in files.items():
            wheel.writestr(name, text)
    return path


@pytest.mark.slow
@pytest.mark.parametrize("first", ["ours", "foreign"])
def test_wheel_beside_another_distribution_with_these_names_stays_whole(first, wheel, foreign_wheel, tmp_path):
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True)
    scripts = "Scripts" if sys.platform == "win32" else "bin"
    python = str(tmp_path / "venv" / scripts / "python")
    site = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        check=True, capture_output=True, text=True,
    ).stdout.strip()  # fmt: skip
    # What the program depends on comes from the environment of the tests, after the packages of the new one.
    Path(site, "tests.pth").write_text(sysconfig.get_path("purelib"))

    def pip(*arguments: str) -> None:
        answer = subprocess.run([python, "-m", "pip", "--no-input", *arguments], capture_output=True, text=True)
        assert answer.returncode == 0, answer.stderr

    def check(code: str) -> None:
        answer = subprocess.run([python, "-c", code], capture_output=True, text=True, cwd=tmp_path)
        assert answer.returncode == 0, answer.stderr

    ours = (
        f"import decodescope, decodescope.app, pathlib; place = pathlib.Path(decodescope.__file__)\n"
        f"assert place.is_relative_to({site!r}), place\n"
        "assert decodescope.core.__file__ == str(place.parent / 'core' / '__init__.py')\n"
        "assert decodescope.strategies.registry and decodescope.catalog.available()\n"
    )
    foreign = "import core.errors, app, resources; assert core.errors.OTHER == 1\n"
    wheels = [wheel, foreign_wheel] if first == "ours" else [foreign_wheel, wheel]
    for each in wheels:
        pip("install", "--no-deps", "--no-index", str(each))
    tops = {path.name for path in Path(site).iterdir() if path.suffix not in (".pth", ".dist-info")}
    assert tops - {"pip", "setuptools", "pkg_resources", "_distutils_hack", "wheel", "__pycache__"} == {
        "decodescope", "core", "app", "resources.py"
    }  # fmt: skip
    check(ours + foreign)
    if first == "ours":
        pip("uninstall", "-y", "foreign")
        check(ours)
    else:
        pip("uninstall", "-y", "decodescope")
        check(foreign + "import importlib.util, pathlib\n"
              f"assert not pathlib.Path({site!r}, 'decodescope').exists()\n")  # fmt: skip
