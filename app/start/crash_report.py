"""Crash reports: files that a user may send with a bug report. The program never sends them.

A report has versions, the system, and for each exception its class and the functions that it passed through. Messages
of exceptions are left out, because they may quote a prompt, a path or a key; what remains is scrubbed as well.
"""

from __future__ import annotations

import faulthandler
import getpass
import os
import platform
import re
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Self, TextIO

from decodescope.core.system.file_writing import atomic_write

MAX_REPORTS = 10
"""Reports that are kept; the oldest are deleted."""
NATIVE_NAME = "native-crash.txt"
"""Where Python writes the stacks of all threads when native code crashes."""
_SECRETS = (
    (re.compile(r"\b(hf_|sk-|ghp_|github_pat_)[\w-]{8,}"), "<key>"),
    (re.compile(r"(?i)\b(authorization:\s*(?:bearer\s+)?|bearer\s+|(?:api[_-]?key|token)[=:]\s*)\S+"), r"\1<key>"),
    (re.compile(r"\b(https?|wss?)://\S+"), "<address>"),
    # Bounded, or a long word without @ would take the square of its length.
    (re.compile(r"[\w.+-]{1,64}@[\w-]{1,63}\.[\w.]+"), "<e-mail>"),
    (re.compile(r"\b\d{1,3}(?:\.\d{1,3}){3}\b"), "<address>"),
)


def scrub(text: str) -> str:
    """Return text without the home folder, the names of user and computer, addresses and keys."""
    for folder in {str(Path.home()), os.path.realpath(Path.home())} - {"/", ""}:
        text = text.replace(folder, "~")
    for pattern, replacement in _SECRETS:
        text = pattern.sub(replacement, text)
    for name, replacement in ((_user_name(), "<user>"), (platform.node(), "<computer>")):
        if len(name) > 2:
            text = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", replacement, text)
    return text


def report_text(error: BaseException, version: str) -> str:
    """Return the scrubbed report on an exception: versions, system, and the tracebacks of it and its causes."""
    lines = [
        "Decodescope crash report. It stays on this computer unless you send it; read it first.",
        f"Decodescope {version}, Python {platform.python_version()}",
        f"{platform.system()} {platform.release()}, {platform.machine()}",
        "",
        *_tracebacks(error),
    ]
    return scrub("\n".join(lines)) + "\n"


class CrashReporter:
    """Writes a report into `folder` for every exception that nothing handles, in any thread, and for native crashes.

    Python's hooks are replaced inside `with`; the previous ones are called after a report is written.
    """

    def __init__(self, folder: Path, version: str) -> None:
        self.folder, self._version = folder, version
        self._previous = sys.excepthook, threading.excepthook
        self._native: TextIO | None = None

    def __enter__(self) -> Self:
        self._previous = sys.excepthook, threading.excepthook
        sys.excepthook, threading.excepthook = self._on_exception, self._on_thread_exception
        if not faulthandler.is_enabled():
            with suppress(OSError):
                self.folder.mkdir(parents=True, exist_ok=True)
                # It stays open: at the time of a crash nothing can be opened.
                self._native = (self.folder / NATIVE_NAME).open("a", encoding="utf-8")
                faulthandler.enable(self._native)
        return self

    def __exit__(self, *_error: object) -> None:
        sys.excepthook, threading.excepthook = self._previous
        if self._native is not None:
            faulthandler.disable()
            self._native.close()
            path = Path(self._native.name)
            with suppress(OSError):
                if not path.stat().st_size:
                    path.unlink()
                self.folder.rmdir()  # only if it is empty

    def write(self, error: BaseException) -> Path | None:
        """Write the report on an exception and return its path; None if that is impossible."""
        name = f"crash-{datetime.now():%Y%m%d-%H%M%S-%f}.txt"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with atomic_write(self.folder / name) as partial:
                partial.write_text(report_text(error, self._version), encoding="utf-8")
            for old in sorted(self.folder.glob("crash-*.txt"))[:-MAX_REPORTS]:
                old.unlink(missing_ok=True)
        except OSError:
            return None
        return self.folder / name

    def _on_exception(self, kind: type[BaseException], error: BaseException, place: TracebackType | None) -> None:
        self._report(error)
        self._previous[0](kind, error, place)

    def _on_thread_exception(self, args: threading.ExceptHookArgs) -> None:
        if args.exc_value is not None:
            self._report(args.exc_value)
        self._previous[1](args)

    def _report(self, error: BaseException) -> None:
        if isinstance(error, KeyboardInterrupt | SystemExit):
            return
        if path := self.write(error):
            print(f"decodescope: a crash report was written to {path}; nothing was sent", file=sys.stderr)


def _tracebacks(error: BaseException) -> Iterator[str]:
    """Yield the traceback of an exception, then those of the exceptions that it was raised from."""
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        for frame in traceback.extract_tb(current.__traceback__):
            yield f'  File "{_shortened(frame.filename)}", line {frame.lineno}, in {frame.name}'
        yield f"{type(current).__module__}.{type(current).__qualname__}"
        current = current.__cause__ or current.__context__


def _shortened(name: str) -> str:
    """Return the part of a path below the program or the installed packages."""
    for marker in ("site-packages", "dist-packages"):
        if marker in name:
            return name.rpartition(f"{marker}{os.sep}")[2]
    root = str(Path(__file__).resolve().parents[2])
    return name.removeprefix(root + os.sep) if name.startswith(root) else Path(name).name


def _user_name() -> str:
    with suppress(OSError, KeyError, ImportError):
        return getpass.getuser()
    return ""
