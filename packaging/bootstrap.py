#!/usr/bin/env python3
"""Set Decodescope up and start it: `python3 packaging/bootstrap.py run`, or `test` for the whole suite.

Needs nothing but Python's standard library. The environment it makes is `.venv` beside the README; a second call
finds it ready and starts at once. What follows the command is handed on to the program, or to pytest.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))  # also under PYTHONSAFEPATH

from bootstrap_parts import interpreters, qt_libraries  # noqa: E402
from bootstrap_parts.environment import Environment, Wanted  # noqa: E402
from bootstrap_parts.errors import SetupError  # noqa: E402
from bootstrap_parts.project import version_in  # noqa: E402

ROOT = HERE.parent
USAGE = """\
python3 packaging/bootstrap.py run [ARGUMENTS OF DECODESCOPE]    set up .venv and open the window
python3 packaging/bootstrap.py test [ARGUMENTS OF PYTEST]       set up .venv and run the whole test suite
python3 packaging/bootstrap.py test-core [ARGUMENTS OF PYTEST]  set up .venv-core, which has no Qt, and test the core

python3 packaging/bootstrap.py --version                        print the version

--torch auto|cpu|cuda with any of them chooses the build of PyTorch that is installed. auto, the default, takes the
one for NVIDIA cards (CUDA), which is many times larger, only where their driver is installed. Before that build is
downloaded there is a question; --yes answers it, as --torch cuda does.
"""
PROGRAM_EXTRAS = ("grammar", "server", "translations")
TEST_EXTRAS = ("dev", "grammar", "quant")
TORCH, YES = "--torch", ("-y", "--yes")
HELP_AFTER_SET_UP = """
All options of the program are listed by the same command once the program has been set up:
python3 packaging/bootstrap.py run
"""
COMPILE_CATALOGS = "from decodescope.resources.catalogs import compile_catalogs; compile_catalogs()"
COMPILERS = ("g++", "clang++", "c++")  # those that the program itself starts
MOST_PROCESSES = 4  # each loads torch and a model


def main(arguments: list[str]) -> int:
    given = arguments
    choices, arguments = take_choices(arguments)
    if arguments in (["--version"], ["run", "--version"]):
        print(f"Decodescope {version_in(ROOT / 'pyproject.toml')}")
        return 0
    if not arguments or arguments[0] not in COMMANDS:
        print(USAGE, end="", file=sys.stdout if arguments[:1] in (["-h"], ["--help"]) else sys.stderr)
        return 0 if arguments[:1] in (["-h"], ["--help"]) else 2
    signal.signal(signal.SIGTERM, interrupt)
    try:
        other = interpreters.other_than_this()
        if other:
            return start([*other, str(HERE / "bootstrap.py"), *given])
        return COMMANDS[arguments[0]](arguments[1:], choices)
    except SetupError as error:
        print(f"\nDecodescope could not start.\n{error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"\nDecodescope could not start: {error}.", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nInterrupted. The same command goes on from here.", file=sys.stderr)
        return 130


def take_choices(arguments: list[str]) -> tuple[dict[str, object], list[str]]:
    """Return the chosen build of PyTorch with the consent to a large download, and the arguments without both."""
    torch, agreed, rest = "auto", False, []
    remaining = iter(arguments)
    for argument in remaining:
        if argument == "--":
            rest += [argument, *remaining]
        elif argument == TORCH:
            torch = next(remaining, "")
        elif argument.startswith(TORCH + "="):
            torch = argument[len(TORCH) + 1 :]
        elif argument in YES:
            agreed = True
        else:
            rest.append(argument)
    return {"torch": torch, "agreed": agreed}, rest


def interrupt(*_: object) -> None:
    """A polite request to end ends pip too, as Ctrl+C does."""
    raise KeyboardInterrupt


def run(arguments: list[str], choices: dict[str, object]) -> int:
    """Open the window, or run the command in the arguments; paths in them are relative to the caller's folder.

    The screen and the system's libraries are checked before anything is installed.
    """
    environment = Environment(ROOT, ".venv")
    wanted = Wanted(PROGRAM_EXTRAS, **choices)
    variables = clean_variables()
    need = qt_libraries.needs(arguments)
    if {"-h", "--help"} & set(arguments) and not environment.is_ready(wanted):
        print(USAGE + HELP_AFTER_SET_UP, end="")
        return 0
    if need == "offscreen" and not qt_libraries.has_screen(variables):
        variables.setdefault("QT_QPA_PLATFORM", "offscreen")
    if need != "nothing":
        qt_libraries.check(environment.site_packages, variables)
    environment.prepare(wanted)
    compile_catalogs(environment)
    if need != "nothing":
        qt_libraries.check(environment.site_packages, variables)  # now by what the installed Qt names
    if not {"--version", "-h", "--help", "show"} & set(arguments):  # what runs no model
        build_native_code(environment)
    # -P: nothing in the current folder hides the modules that the program imports.
    return start([str(environment.python), "-P", "-m", "decodescope", *arguments], variables)


def test(arguments: list[str], choices: dict[str, object]) -> int:
    """Run the whole suite, or what pytest's arguments choose of it; no screen is needed."""
    environment = Environment(ROOT, ".venv")
    variables = clean_variables()
    variables.setdefault("QT_QPA_PLATFORM", "offscreen")
    qt_libraries.check(environment.site_packages, variables)
    environment.prepare(Wanted(TEST_EXTRAS, **choices))
    compile_catalogs(environment)
    qt_libraries.check(environment.site_packages, variables)
    os.chdir(ROOT)
    return start([str(environment.python), "-m", "pytest", *workers(arguments), *arguments], variables)


def test_core(arguments: list[str], choices: dict[str, object]) -> int:
    """Run the core's tests in an environment of its own, in which PySide6 cannot be imported at all."""
    environment = Environment(ROOT, ".venv-core")
    environment.prepare(Wanted(TEST_EXTRAS, qt=False, **choices))
    compile_catalogs(environment)
    os.chdir(ROOT)
    command = [str(environment.python), "-m", "pytest", "tests/core", *workers(arguments), *arguments]
    return start(command, clean_variables())


def compile_catalogs(environment: Environment) -> None:
    """Compile the translations that are missing or outdated. The program starts in English if that fails."""
    command = [str(environment.python), "-P", "-c", COMPILE_CATALOGS]
    done = subprocess.run(command, cwd=str(ROOT), env={**clean_variables(), "PYTHONPATH": str(ROOT)}, check=False)
    if done.returncode:
        print("The translations could not be compiled; texts are in English.", file=sys.stderr)


def build_native_code(environment: Environment) -> None:
    """Make the native code for this processor where no C++ compiler would compile it when the program is idle. The
    program starts without it if that fails.
    """
    if any(shutil.which(name) for name in COMPILERS):
        return
    command = [str(environment.python), "-P", str(HERE / "native_libraries.py"), "--here"]
    subprocess.run(command, cwd=str(ROOT), env=clean_variables(), check=False)


def workers(arguments: list[str]) -> list[str]:
    """Spread a whole suite over the processors, file by file, whatever its options are.

    A choice of files or of names is not worth starting workers for, and `-n` is the caller's own choice. The files stay
    in their order: xdist would otherwise keep a file with one long test for the end.
    """
    count = min(os.cpu_count() or 1, MOST_PROCESSES)
    if count < 2 or any(_is_choice(argument) for argument in arguments):
        return []
    return ["-n", str(count), "--dist", "loadfile", "--no-loadscope-reorder"]


def _is_choice(argument: str) -> bool:
    """Return whether an argument of pytest chooses tests or the number of processes."""
    if argument.startswith(("-n", "-k", "-s", "--numprocesses", "--dist", "--tx", "--pdb", "--trace", "no:xdist")):
        return True
    return not argument.startswith("-") and (ROOT / argument.partition("::")[0]).exists()


def clean_variables() -> dict[str, str]:
    """Return the environment without variables that let another Python's packages in, or that make each new process
    compile the program and the tests again (container images set them)."""
    unwanted = ("PYTHONPATH", "PYTHONHOME", "PYTHONDONTWRITEBYTECODE")
    return {name: value for name, value in os.environ.items() if name not in unwanted}


def start(command: list[str], variables: dict[str, str] | None = None) -> int:
    """Become the command where the system can do that, so that signals reach it; else wait for it."""
    sys.stdout.flush()
    if os.name == "posix":
        os.execvpe(command[0], command, os.environ if variables is None else variables)
    return subprocess.call(command, env=variables)


COMMANDS = {"run": run, "test": test, "test-core": test_core}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
