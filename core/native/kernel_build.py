"""Compile the native library with the computer's compiler, at the lowest priority, and move it into place
atomically.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from decodescope.core.checks.arguments import check_cancel
from decodescope.core.native.library_choice import (
    FLAGS,
    LEVEL_VARIABLE,
    MAIN_SOURCE,
    OFF,
    LibraryChoice,
    find_compiler,
    library_folder,
    shipped_levels,
)
from decodescope.core.native.native_library import is_switched_on, library, library_choice
from decodescope.resources.language import join_names, tr

State = Literal["ready", "missing", "built", "off", "no_compiler", "failed", "cancelled"]
_MAX_LIBRARIES = 4
"""Number of libraries kept on disk: the latest, of this and earlier versions."""
_POLL_INTERVAL = 0.1
_TIMEOUT = 600.0
"""Timeout of the compiler in seconds."""


@dataclass(frozen=True, slots=True)
class BuildResult:
    """Result of a build. `seconds`: compilation time; `sentence`: the result in words."""

    state: State
    sentence: str
    seconds: float = 0.0
    details: str = ""
    """Output of the compiler."""
    level: str = ""
    """The level of the library that is used, such as `v4`; `compiled` for one that this computer compiled; empty if
    there is none.
    """


def build_kernels(cancel: threading.Event | None = None) -> BuildResult:
    """Build the native kernels for this computer unless they exist; they are used from the next run on.

    Nothing is compiled if the program came with a library for this processor. A compiled library is stored in the
    user's cache, so later starts find it. `cancel` stops the compiler. Raises ParameterError for an invalid `cancel`,
    and as `kernel_status` does.
    """
    check_cancel(cancel)
    standing, path, found = kernel_status(), library_choice().path, find_compiler()
    if standing.state != "missing" or path is None or found is None:
        return standing
    begun = time.monotonic()
    try:
        with _build_folder() as shop:
            built = _build(found, shop, path, cancel or threading.Event())
    except OSError as error:
        built = BuildResult("failed", tr("The native code could not be compiled."), details=str(error))
    if built is not None:
        return built
    seconds = time.monotonic() - begun
    if library() is None:
        return BuildResult("failed", tr("The native code was compiled, but cannot be used here."), seconds)
    sentence = tr("The native code was compiled in {seconds:.0f} s.").format(seconds=seconds)
    return BuildResult("built", sentence, seconds, level=library_choice().level)


def kernel_status() -> BuildResult:
    """Return whether the native kernels exist (`ready`), could be built (`missing`), or why not; builds nothing.

    Raises ParameterError if DECODESCOPE_NATIVE_LEVEL is set to a level that is unknown or cannot be used here.
    """
    choice = library_choice()
    if choice.level == OFF or not is_switched_on():
        return BuildResult("off", tr("Native code is turned off."))
    if library() is not None:
        choice = library_choice()
        return BuildResult("ready", _ready_sentence(choice), level=choice.level)
    if choice.path is not None and find_compiler() is not None:
        return BuildResult("missing", tr("The native code has not been compiled yet."))
    if levels := shipped_levels():
        sentence = tr(
            "No native code: this processor supports none of the levels that the program has libraries for ({levels}), "
            "and this computer has no C++ compiler (g++ or clang++)."
        ).format(levels=join_names(levels))
    else:
        sentence = tr(
            "No native code: the program came without libraries for this kind of computer, and this computer has no "
            "C++ compiler (g++ or clang++)."
        )
    return BuildResult("no_compiler", sentence)


def _ready_sentence(choice: LibraryChoice) -> str:
    """Return in words which library is used, and why."""
    if not choice.is_shipped:
        return tr("Native code is ready: compiled on this computer for its processor.")
    sentence = (
        tr("Native code is ready: the library for {title} ({level}), which {variable} chooses.")
        if choice.is_requested
        else tr("Native code is ready: the library for {title} ({level}), the best one for this processor.")
    )
    return sentence.format(title=tr(choice.title), level=choice.level, variable=LEVEL_VARIABLE)


@contextlib.contextmanager
def _build_folder() -> Iterator[Path]:
    """Create a temporary folder next to the libraries, and remove it afterwards; old ones left by killed processes are
    removed too.
    """
    home = library_folder()
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    home.chmod(0o700)
    shop = Path(tempfile.mkdtemp(prefix="building-", dir=home))
    try:
        yield shop
    finally:
        shutil.rmtree(shop, ignore_errors=True)
        _clean_up(home)


def _build(compiler_path: str, folder_path: Path, path: Path, cancel: threading.Event) -> BuildResult | None:
    """Compile to `path` and return None, or the failed result. Retry without -pthread for compilers that refuse it."""
    target, output = folder_path / path.name, ""
    for more in (("-pthread",), ()):
        code, output = _compile(
            [compiler_path, *FLAGS, *more, str(MAIN_SOURCE), "-o", str(target)], folder_path, cancel
        )
        if cancel.is_set():
            return BuildResult("cancelled", tr("Compilation was canceled and will be done another time."))
        if code == 0 and target.is_file():
            target.chmod(0o700)
            target.replace(path)
            return None
    return BuildResult("failed", tr("The native code could not be compiled."), details=output)


def _compile(command: list[str], build_folder: Path, cancel: threading.Event) -> tuple[int, str]:
    """Return the compiler's exit code and the end of its output; kill it when `cancel` is set."""
    nice = shutil.which("nice")
    with (build_folder / "said").open("w+", encoding="utf-8", errors="replace") as output_file:
        child = subprocess.Popen(
            [nice, "-n", "19", *command] if nice else command,
            stdout=output_file, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, cwd=build_folder,
            env={**os.environ, "TMPDIR": str(build_folder), "LC_ALL": "C"}, start_new_session=os.name == "posix",
        )  # fmt: skip
        code = _wait(child, cancel)
        output_file.seek(0)
        return code, output_file.read()[-4000:]


def _wait(child: subprocess.Popen[bytes], cancel: threading.Event) -> int:
    until = time.monotonic() + _TIMEOUT
    while not cancel.wait(_POLL_INTERVAL) and time.monotonic() < until:
        code = child.poll()
        if code is not None:
            return code
    _kill(child)
    return -1


def _kill(child: subprocess.Popen[bytes]) -> None:
    """Kill the compiler and its child processes."""
    if os.name == "posix":
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, 9)
    child.kill()
    child.wait()


def _clean_up(home: Path) -> None:
    """Remove all but the latest libraries, and temporary folders older than the compiler's timeout."""
    built = sorted(home.glob("step-*.so"), key=lambda file: file.stat().st_mtime)
    for file in built[:-_MAX_LIBRARIES]:
        file.unlink(missing_ok=True)
    for shop in home.glob("building-*"):
        if time.time() - shop.stat().st_mtime > 2 * _TIMEOUT:
            shutil.rmtree(shop, ignore_errors=True)
