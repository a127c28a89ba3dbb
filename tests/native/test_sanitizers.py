"""The native functions under sanitizers, with the checks of their arguments."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.native import compilers

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("needs_compiler")]
FLAGS = ("-O1", "-g", "-fno-omit-frame-pointer", "-pthread", "-DDECODESCOPE_CHECKS")
_UNLIMITED = 'ulimit -S -d "$(ulimit -H -d)"; exec setarch -R "$0" "$@"'
"""A script that runs a program whose sanitizers reserve memory: without the limit of the tests, and without random
addresses, beside which the shadow memory of older compilers' sanitizers does not fit.
"""


def run_under(sanitizers: str, level: str, cases: Path, folder: Path) -> None:
    """Compile the host with the library under the sanitizers, and run it if the processor has the level."""
    compiler = compilers.own_compilers()[-1]
    flags = [*FLAGS, f"-fsanitize={sanitizers}", *compilers.level_flags(compiler, level)]
    if sanitizers != "thread":
        flags.append("-fno-sanitize-recover=undefined")
    host = compilers.compile_host([compiler], folder / "host", *flags, linked=True)
    if compilers.runs_here(level):
        compilers.run(
            ["sh", "-c", _UNLIMITED, str(host), str(cases)],
            ASAN_OPTIONS="detect_leaks=1",
            TSAN_OPTIONS="halt_on_error=1",
        )


@pytest.mark.parametrize("level", compilers.X86_LEVELS)
def test_functions_have_no_undefined_behavior(level: str, cases: Path, tmp_path: Path) -> None:
    """No access outside of an array, no overflow, no leak; every check of the arguments holds."""
    run_under("address,undefined", level, cases, tmp_path)


@pytest.mark.parametrize("level", ["v3"])
def test_threads_have_no_data_race(level: str, cases: Path, tmp_path: Path) -> None:
    run_under("thread", level, cases, tmp_path)
