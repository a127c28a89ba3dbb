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
from decodescope.core.native.native_library import (
    FLAGS,
    MAIN_SOURCE,
    find_compiler,
    is_switched_on,
    library,
    library_folder,
    library_path,
)
from decodescope.resources.language import tr

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


def build_kernels(cancel: threading.Event | None = None) -> BuildResult:
    """Build the native kernels for this computer unless they exist; they are used from the next run on.

    The library is stored in the user's cache, so later starts find it. `cancel` stops the compiler. Raises
    ParameterError for an invalid `cancel`, nothing else.
    """
    check_cancel(cancel)
    standing, path, found = kernel_status(), library_path(), find_compiler()
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
    return BuildResult("built", tr("The native code was compiled in {seconds:.0f} s.").format(seconds=seconds), seconds)


def kernel_status() -> BuildResult:
    """Return whether the native kernels exist (`ready`), could be built (`missing`), or why not; builds nothing."""
    if library_path() is None or not is_switched_on():
        return BuildResult("off", tr("Native code is turned off."))
    if library() is not None:
        return BuildResult("ready", tr("Native code is ready."))
    if find_compiler() is None:
        return BuildResult("no_compiler", tr("No native code: this computer has no C++ compiler (g++ or clang++)."))
    return BuildResult("missing", tr("The native code has not been compiled yet."))


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
