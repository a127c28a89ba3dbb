"""The commands as they are typed, up to the point where the environment is ready."""

import importlib.util
import os
import subprocess
import sys
import tomllib

import pytest
from bootstrap_parts.errors import SetupError
from bootstrap_parts.qt_libraries import check

SPREAD = ("--dist", "loadfile", "--no-loadscope-reorder")


@pytest.fixture
def bootstrap(root):
    spec = importlib.util.spec_from_file_location("bootstrap", root / "packaging" / "bootstrap.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def started(bootstrap, monkeypatch):
    """Record what would have been started: (command, variables)."""
    calls = []
    monkeypatch.setattr(bootstrap, "start", lambda command, variables=None: calls.append((command, variables)) or 0)
    monkeypatch.setattr(bootstrap.Environment, "prepare", lambda self, wanted: calls.append((self.folder.name, wanted)))
    monkeypatch.setattr(bootstrap, "compile_catalogs", lambda environment: None)
    monkeypatch.setattr(bootstrap, "build_native_code", lambda environment: None)
    monkeypatch.setattr(bootstrap.qt_libraries, "check", lambda *_: None)
    monkeypatch.setattr(bootstrap.signal, "signal", lambda *_: None)
    monkeypatch.setattr(os, "chdir", lambda _: None)
    return calls


def test_run_passes_its_arguments_to_the_program(bootstrap, started):
    assert bootstrap.main(["run", "--theme", "dark"]) == 0
    (folder, wanted), (command, _) = started
    assert (folder, wanted.extras) == (".venv", ("grammar", "server", "translations"))
    assert command[1:] == ["-P", "-m", "decodescope", "--theme", "dark"]


def test_test_runs_pytest_with_all_extras(bootstrap, started):
    assert bootstrap.main(["test", "-k", "greedy"]) == 0
    (_, wanted), (command, variables) = started
    assert wanted.extras == ("dev", "grammar", "quant")
    assert command[1:] == ["-m", "pytest", "-k", "greedy"]
    assert variables["QT_QPA_PLATFORM"] == "offscreen"


@pytest.mark.parametrize(("processors", "expected"), [(1, []), (2, ["-n", "2", *SPREAD]), (64, "4")])
def test_complete_suite_is_distributed_over_the_processors(bootstrap, monkeypatch, processors, expected):
    monkeypatch.setattr(os, "cpu_count", lambda: processors)
    chosen = bootstrap.workers([])
    assert chosen == expected if isinstance(expected, list) else chosen[1] == expected
    assert bootstrap.workers(["-k", "greedy"]) == []


@pytest.mark.parametrize(
    "arguments", [["--durations=60"], ["-q", "-x"], ["-m", "slow"], ["--tb", "short"], ["--no-header", "-ra"]]
)
def test_options_alone_leave_the_suite_spread_over_processes(bootstrap, started, monkeypatch, arguments):
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    bootstrap.main(["test", *arguments])
    assert started[-1][0][1:] == ["-m", "pytest", "-n", "2", *SPREAD, *arguments]


@pytest.mark.parametrize(
    "arguments",
    [
        ["-q", "tests/core"],
        ["tests/core/test_sampling.py::test_greedy[x]", "--durations=3"],
        ["-n", "3"],
        ["-n0", "-q"],
        ["--numprocesses=3"],
        ["--dist", "load"],
        ["-p", "no:xdist"],
        ["--pdb"],
    ],
)
def test_choice_of_files_or_processes_is_passed_on_unchanged(bootstrap, started, monkeypatch, arguments):
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    bootstrap.main(["test", *arguments])
    assert started[-1][0][1:] == ["-m", "pytest", *arguments]


def test_complete_suite_runs_in_several_processes(bootstrap, started, monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    bootstrap.main(["test"])
    assert started[-1][0][1:] == ["-m", "pytest", "-n", "4", *SPREAD]


def test_core_is_tested_in_an_environment_without_qt(bootstrap, started):
    assert bootstrap.main(["test-core"]) == 0
    (folder, wanted), (command, _) = started
    assert (folder, wanted.qt) == (".venv-core", False)
    assert command[1:] == ["-m", "pytest", "tests/core", *bootstrap.workers([])]


@pytest.mark.parametrize("command", ["run", "test", "test-core"])
@pytest.mark.parametrize(
    ("arguments", "torch", "rest"),
    [
        (["-k", "x"], "auto", ["-k", "x"]),
        (["--torch", "cpu", "-k", "x"], "cpu", ["-k", "x"]),
        (["-k", "x", "--torch=cuda"], "cuda", ["-k", "x"]),
        (["--", "--torch", "cpu"], "auto", ["--", "--torch", "cpu"]),
    ],
)
def test_torch_option_is_not_passed_to_the_program(bootstrap, started, command, arguments, torch, rest):
    assert bootstrap.main([command, *arguments]) == 0
    (_, wanted), (started_command, _) = started
    assert wanted.torch == torch
    assert started_command[-len(rest) :] == rest
    assert ("--torch" in started_command) == ("--" in rest)


@pytest.mark.parametrize(
    "arguments", [["--yes", "test", "-k", "x"], ["test", "-y", "-k", "x"], ["test", "-k", "x", "--yes"]]
)
def test_yes_is_not_passed_on(bootstrap, started, arguments):
    bootstrap.main(arguments)
    (_, wanted), (command, _) = started
    assert wanted.agreed
    assert command[-2:] == ["-k", "x"]
    assert not {"-y", "--yes"} & set(command)


def test_torch_option_is_accepted_before_the_command(bootstrap, started):
    assert bootstrap.main(["--torch", "cpu", "run"]) == 0
    assert started[0][1].torch == "cpu"


@pytest.fixture
def headless(bootstrap, started, monkeypatch):
    """A Linux without a screen, with the real check of it, and nothing installed."""
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(bootstrap.qt_libraries.sys, "platform", "linux")
    monkeypatch.setattr(bootstrap.qt_libraries._shared, "missing_when_loaded", lambda _: set())
    monkeypatch.setattr(bootstrap.qt_libraries, "check", check)
    monkeypatch.setattr(bootstrap.qt_libraries, "is_installed", lambda _: False)
    monkeypatch.setattr(bootstrap.Environment, "is_ready", lambda *_: False)
    return started


@pytest.mark.parametrize(
    "arguments", [["--screenshot", "a.png"], ["--export=a.csv"], ["--record-demo", "a.gif"], ["--pictures=a.toml"]]
)
def test_files_are_written_without_a_screen(bootstrap, headless, arguments):
    assert bootstrap.main(["run", *arguments]) == 0
    assert headless[-1][1]["QT_QPA_PLATFORM"] == "offscreen"


@pytest.mark.parametrize("arguments", [["generate", "a.jsonl"], ["show", "a"], ["watch", "a.py"]])
def test_commands_need_no_screen(bootstrap, headless, arguments):
    assert bootstrap.main(["run", *arguments]) == 0
    command, variables = headless[-1]
    assert command[-2:] == arguments
    assert "QT_QPA_PLATFORM" not in variables


def test_missing_screen_is_reported_before_anything_is_installed(bootstrap, headless, capsys):
    assert bootstrap.main(["run"]) == 1
    assert headless == []
    assert "there is no screen" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["run", "test"])
def test_missing_library_is_reported_before_anything_is_installed(bootstrap, headless, capsys, monkeypatch, command):
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr(bootstrap.qt_libraries._shared, "missing_when_loaded", lambda name: {name} & {"libEGL.so.1"})
    assert bootstrap.main([command]) == 1
    assert headless == []
    assert "libEGL.so.1" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["--version"], ["run", "--version"]])
def test_version_is_printed_without_an_environment(bootstrap, headless, capsys, root, arguments):
    assert bootstrap.main(arguments) == 0
    version = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    assert capsys.readouterr().out == f"Decodescope {version}\n"
    assert headless == []


def test_help_of_run_installs_nothing(bootstrap, headless, capsys, monkeypatch):
    assert bootstrap.main(["run", "--help"]) == 0
    assert "bootstrap.py run" in capsys.readouterr().out
    assert headless == []
    monkeypatch.setattr(bootstrap.Environment, "is_ready", lambda *_: True)
    bootstrap.main(["run", "--help"])
    assert headless[-1][0][-1] == "--help"


def test_pythonpath_is_removed_from_the_environment(bootstrap, started, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "/elsewhere")
    bootstrap.main(["test"])
    assert "PYTHONPATH" not in started[-1][1]


@pytest.mark.parametrize("command", ["run", "test", "test-core"])
def test_compiled_bytecode_is_kept(bootstrap, started, monkeypatch, command):
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    bootstrap.main([command])
    assert "PYTHONDONTWRITEBYTECODE" not in started[-1][1]


@pytest.mark.parametrize("arguments", [[], ["walk"]])
def test_unknown_command_lists_the_two_commands(bootstrap, arguments, capsys):
    assert bootstrap.main(arguments) == 2
    assert "bootstrap.py run" in capsys.readouterr().err


def test_failure_is_reported_without_a_traceback(bootstrap, started, monkeypatch, capsys):
    def fail(*_: object) -> None:
        raise SetupError("the disk is full.", "make room.")

    monkeypatch.setattr(bootstrap.Environment, "prepare", fail)
    assert bootstrap.main(["run"]) == 1
    reported = capsys.readouterr().err
    assert "the disk is full." in reported
    assert "make room." in reported
    assert "Traceback" not in reported


def test_interruption_is_reported(bootstrap, started, monkeypatch, capsys):
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(bootstrap.Environment, "prepare", interrupt)
    assert bootstrap.main(["run"]) == 130
    assert "Interrupted" in capsys.readouterr().err


def test_script_starts_by_path_with_nothing_installed(root, tmp_path):
    command = [sys.executable, "-I", "-S", str(root / "packaging" / "bootstrap.py"), "--help"]
    answer = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert answer.returncode == 0
    assert "bootstrap.py test" in answer.stdout
