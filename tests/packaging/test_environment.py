"""Ready, incomplete and broken environments, and their repair; pip itself is faked."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from bootstrap_parts import environment, pip, torch_build
from bootstrap_parts.environment import Environment, Wanted
from bootstrap_parts.errors import SetupError

pytestmark = pytest.mark.skipif(os.name == "nt", reason="builds environments as POSIX systems lay them out")

PYPROJECT = """
[project]
dependencies = ["PySide6-Essentials>=6.8", "torch", "qasync"]
[project.optional-dependencies]
dev = ["pytest>=8", "pytest_qt"]
quant = ["hqq"]
"""
HERE = "{}.{}".format(*sys.version_info[:2])


class PlayedPip:
    """Replacement for `pip.install` that records its calls and creates a package, or fails."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []
        self.fails = False

    def __call__(self, python: Path, requirements: list[str], folder: Path, bar: str = "raw") -> None:
        if self.fails:
            raise SetupError("the package index could not be reached.", "try again")
        self.asked.append(requirements)
        package = folder / "lib" / f"python{HERE}" / "site-packages" / "torch"
        package.mkdir(parents=True, exist_ok=True)
        (package / "__init__.py").touch()
        (package / "nn.py").touch()
        (package / "lib" / "deep").mkdir(parents=True, exist_ok=True)
        (package / "lib" / "deep" / "libtorch_cpu.so.2").write_bytes(b"machine code")

    @property
    def main_calls(self) -> list[list[str]]:
        return [requirements for requirements in self.asked if requirements != ["pip>=24.1"]]


@pytest.fixture
def played(monkeypatch):
    player = PlayedPip()
    monkeypatch.setattr(pip, "install", player)
    return player


@pytest.fixture
def made(tmp_path, monkeypatch, played):
    """An environment whose creation is faked too, so that no test waits for a real one."""
    (tmp_path / "pyproject.toml").write_text(PYPROJECT)
    made = Environment(tmp_path, ".venv")
    made.reasons, made.builds, made.agreed = [], [], []

    def make(reason: str) -> None:
        made.reasons.append(reason)
        made.remove()
        (made.site_packages / "pip").mkdir(parents=True)
        made.python.parent.mkdir()
        made.python.symlink_to(sys.executable)
        (made.folder / "pyvenv.cfg").write_text("home = /usr/bin\n")

    monkeypatch.setattr(made, "make", make)

    def install(python, requirement, build, folder, agreed) -> None:
        made.builds.append((requirement, build))
        made.agreed.append(agreed)

    monkeypatch.setattr(torch_build, "install", install)
    return made


@pytest.fixture
def ready(made, played):
    made.prepare(Wanted())
    made.reasons.clear()
    played.asked.clear()
    return made


def test_first_call_makes_and_installs(made, played):
    made.prepare(Wanted())
    assert made.reasons == ["does not exist yet"]
    assert played.main_calls == [["--editable", str(made.root)]]


def test_second_call_does_nothing(ready, played):
    ready.prepare(Wanted())
    assert ready.reasons == []
    assert played.asked == []


def test_build_of_torch_is_chosen_before_the_rest_is_installed(made, played, monkeypatch):
    monkeypatch.setattr(torch_build, "has_nvidia_driver", lambda: False)
    monkeypatch.setattr(torch_build.sys, "platform", "linux")
    made.prepare(Wanted())
    assert made.builds == [("torch", "cpu")]
    made.prepare(Wanted(torch="auto"))
    made.prepare(Wanted(torch="cpu"))
    assert made.reasons == ["does not exist yet"]
    made.prepare(Wanted(torch="cuda"))
    assert made.reasons[1:] == ["was made with the CPU build of PyTorch"]
    assert made.builds[1:] == [("torch", "cuda")]


@pytest.mark.parametrize(
    ("choices", "agreed"), [({}, False), ({"agreed": True}, True), ({"torch": "cuda"}, True), ({"torch": "cpu"}, False)]
)
def test_named_cuda_build_or_yes_agrees_to_a_large_download(made, monkeypatch, choices, agreed):
    monkeypatch.setattr(torch_build.sys, "platform", "linux")
    made.prepare(Wanted(**choices))
    assert made.agreed == [agreed]


def test_size_and_time_are_printed_before_the_first_installation(made, capsys, monkeypatch):
    monkeypatch.setattr(torch_build.sys, "platform", "linux")
    made.prepare(Wanted(torch="cpu"))
    assert "About 0.4 GB are downloaded and 2 GB of the disk are used: about 3 minutes" in capsys.readouterr().out
    assert made.is_ready(Wanted())
    assert not made.is_ready(Wanted(("dev",)))
    made.prepare(Wanted(("dev",)))
    assert "GB of the disk" not in capsys.readouterr().out, "a small addition"


def test_environment_of_an_earlier_version_is_kept_unless_a_build_is_named(ready):
    stamp = json.loads(ready.stamp_file.read_text())
    del stamp["torch"]
    ready.stamp_file.write_text(json.dumps(stamp))
    ready.prepare(Wanted())
    assert ready.reasons == []
    ready.prepare(Wanted(torch="cpu"))
    assert ready.reasons == ["was made with the usual build of PyTorch"]


def test_test_extras_are_added_without_recreating(ready, played):
    ready.prepare(Wanted(("dev", "quant")))
    assert ready.reasons == []
    assert played.main_calls == [["--editable", f"{ready.root}[dev,quant]"]]
    ready.prepare(Wanted())
    assert len(played.main_calls) == 1, "what only runs the program is content with more"


def test_extras_stay_when_the_project_changes(ready, played):
    ready.prepare(Wanted(("dev",)))
    ready.project.write_text(PYPROJECT + "# changed\n")
    ready.prepare(Wanted())
    assert ready.reasons == []
    assert played.main_calls[-1] == ["--editable", f"{ready.root}[dev]"]


def damage_config(made: Environment) -> None:
    (made.folder / "pyvenv.cfg").unlink()


def damage_python(made: Environment) -> None:
    made.python.unlink()
    made.python.symlink_to("/nowhere/python3")


def damage_start(made: Environment) -> None:
    made.python.unlink()
    made.python.write_text("#!/bin/sh\nexit 1\n")
    made.python.chmod(0o755)


def damage_stamp(made: Environment) -> None:
    made.stamp_file.write_text("{")


def damage_package(made: Environment) -> None:
    shutil.rmtree(made.site_packages / "torch")


def damage_module(made: Environment) -> None:
    (made.site_packages / "torch" / "nn.py").unlink()


def damage_library(made: Environment) -> None:
    (made.site_packages / "torch" / "lib" / "deep" / "libtorch_cpu.so.2").unlink()


def cut_library(made: Environment) -> None:
    (made.site_packages / "torch" / "lib" / "deep" / "libtorch_cpu.so.2").write_bytes(b"machine")


def damage_pip(made: Environment) -> None:
    (made.site_packages / "pip").rmdir()


def damage_all(made: Environment) -> None:
    shutil.rmtree(made.folder / "lib")


def damage_into_file(made: Environment) -> None:
    shutil.rmtree(made.folder)
    made.folder.touch()


def damage_into_dead_link(made: Environment) -> None:
    shutil.rmtree(made.folder)
    made.folder.symlink_to("/nowhere")


def change_version(made: Environment) -> None:
    stamp = json.loads(made.stamp_file.read_text())
    made.stamp_file.write_text(json.dumps({**stamp, "python": "3.2"}))


def change_folder(made: Environment) -> None:
    stamp = json.loads(made.stamp_file.read_text())
    made.stamp_file.write_text(json.dumps({**stamp, "root": "/elsewhere"}))


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (damage_config, "no pyvenv.cfg"),
        (damage_python, "no Python in it"),
        (damage_start, "does not start"),
        (damage_stamp, "half-made"),
        (damage_package, "torch/__init__.py, torch/lib, torch/nn.py missing"),
        (damage_library, "torch/lib/deep/libtorch_cpu.so.2 not whole"),
        (cut_library, "torch/lib/deep/libtorch_cpu.so.2 not whole"),
        (damage_module, "torch/nn.py missing"),
        (damage_pip, "has no pip"),
        (damage_all, "has no pip"),
        (damage_into_file, "no pyvenv.cfg"),
        (damage_into_dead_link, "no pyvenv.cfg"),
        (change_version, f"was made by Python 3.2, and this is Python {HERE}"),
        (change_folder, "made in another folder, /elsewhere"),
    ],
)
def test_damaged_environment_is_named_and_repaired(ready, played, damage, reason):
    damage(ready)
    ready.prepare(Wanted())
    assert len(ready.reasons) == 1
    assert reason in ready.reasons[0]
    assert ready.why_broken() is None
    assert ready.why_incomplete(Wanted()) is None


@pytest.mark.parametrize(
    "change",
    [
        {"python": 3.11}, {"root": None}, {"root": ["/"]}, {"extras": "dev"}, {"extras": 5}, {"extras": [["dev"]]},
        {"contents": {"torch": 1}}, {"contents": [None]}, {"contents": [["torch"]]}, {"libraries": []},
        {"libraries": {"torch": "large"}}, {"project": 0},
    ],
    ids=str,
)  # fmt: skip
def test_stamp_with_wrong_types_means_half_made(ready, change):
    stamp = json.loads(ready.stamp_file.read_text())
    ready.stamp_file.write_text(json.dumps({**stamp, **change}))
    ready.prepare(Wanted(("dev",)))
    assert "half-made" in ready.reasons[0]


@pytest.mark.parametrize("content", [b"[]", b"5", b'"x"', b"\xff\xfe", b"[" * 100_000, b""], ids=range(6))
def test_invalid_stamp_means_half_made(ready, content):
    ready.stamp_file.write_bytes(content)
    ready.prepare(Wanted())
    assert "half-made" in ready.reasons[0]


def test_stamp_without_libraries_is_valid(ready, played):
    stamp = json.loads(ready.stamp_file.read_text())
    del stamp["libraries"]
    ready.stamp_file.write_text(json.dumps(stamp))
    ready.prepare(Wanted())
    assert (ready.reasons, played.asked) == ([], [])


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[project", "cannot be used"), ("", "it has no 'project'"), ("[project]", "it has no 'dependencies'"),
        ("[project]\ndependencies = 5", "cannot be used"), ("[project]\ndependencies = [5]", "no texts"),
        ("project = 5", "cannot be used"), ("\xff", "cannot be used"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("qt", [True, False])
def test_invalid_pyproject_is_named(made, text, why, qt):
    made.project.write_bytes(text.encode("latin-1"))
    with pytest.raises(SetupError) as caught:
        made.prepare(Wanted(qt=qt))
    assert why in caught.value.cause
    assert "git checkout pyproject.toml" in caught.value.remedy


def test_folder_written_to_during_removal_is_removed(ready):
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            with contextlib.suppress(OSError):
                (ready.folder / "late").mkdir(parents=True, exist_ok=True)
                (ready.folder / "late" / "file").touch()

    writer = threading.Thread(target=write)
    writer.start()
    timer = threading.Timer(0.3, stop.set)
    timer.start()
    ready.remove()
    writer.join()
    ready.remove()
    assert not ready.folder.exists()


@pytest.mark.slow
def test_set_up_killed_while_creating_can_restart(root, tmp_path):
    """The `python -m venv` of the killed one works on, and holds the lock until it is done."""
    (tmp_path / "pyproject.toml").write_text(PYPROJECT)
    script = (
        "import sys; sys.path.insert(0, sys.argv[1]); from pathlib import Path\n"
        "from bootstrap_parts.environment import Environment; from bootstrap_parts.lock import one_at_a_time\n"
        "root = Path(sys.argv[2])\n"
        "with one_at_a_time(root): Environment(root, '.venv').make('does not exist yet')"
    )
    command = [sys.executable, "-c", script, str(root / "packaging"), str(tmp_path)]
    first = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    while not (tmp_path / ".venv" / "pyvenv.cfg").exists():
        assert first.poll() is None
        time.sleep(0.01)
    first.kill()
    first.wait()
    second = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (second.returncode, "Another set-up is at work" in second.stdout) == (0, True), second.stderr


def test_killed_set_up_is_detected(made, monkeypatch):
    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(pip, "install", killed)
        with pytest.raises(KeyboardInterrupt):
            made.prepare(Wanted())
    assert "half-made" in made.why_broken()
    made.prepare(Wanted())
    assert made.why_broken() is None


def test_failed_addition_keeps_the_environment(ready, played):
    played.fails = True
    with pytest.raises(SetupError, match="could not be reached"):
        ready.prepare(Wanted(("dev",)))
    ready.prepare(Wanted())
    assert ready.reasons == []


def test_environment_without_qt_installs_packages_by_name(made, played):
    made.prepare(Wanted(("dev", "quant"), qt=False))
    assert played.main_calls == [["torch", "pytest>=8", "hqq"]]


def test_requirements_without_qt_contain_no_qt_packages(root):
    without_qt = Wanted(("dev", "quant"), qt=False).requirements(root / "pyproject.toml")
    names = {environment.name_of(line) for line in without_qt}
    assert {"torch", "transformers", "pytest", "mypy"} <= names
    assert not any("qt" in name or "pyside" in name or name == "qasync" for name in names)


def test_missing_venv_module_names_debians_package(monkeypatch):
    monkeypatch.setattr(environment.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(SetupError) as caught:
        environment.check_venv_module()
    assert f"apt install python{HERE}-venv" in caught.value.remedy


def test_folder_that_cannot_be_removed_raises_setup_error(ready, monkeypatch):
    def refuse(path: str) -> None:
        raise PermissionError(13, "Access is denied", path)

    monkeypatch.setattr(environment.shutil, "rmtree", refuse)
    with pytest.raises(SetupError, match="cannot be removed"):
        ready.remove()


@pytest.mark.slow
def test_real_environment_is_made_by_venv(tmp_path, capsys):
    (tmp_path / "pyproject.toml").write_text(PYPROJECT)
    real = Environment(tmp_path, ".venv")
    real.make("does not exist yet")
    assert real.python.exists()
    assert real.site_packages.is_dir()
    assert "half-made" in real.why_broken(), "nothing has been installed"
    assert f"making it with Python {HERE}" in capsys.readouterr().out
