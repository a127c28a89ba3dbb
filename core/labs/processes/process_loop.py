"""What runs in a process of a lab: its job is done, and told of, until there is no more to tell or nobody to listen."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from typing import BinaryIO, NoReturn, TypeVar

import msgspec

from core.labs.processes.json_lines import JsonLines
from core.terminal import escape_streams

J = TypeVar("J")
M = TypeVar("M")


def run_job(kind: type[J], lines: JsonLines[M], work: Callable[[J, Callable[[M], None]], int]) -> NoReturn:
    """Do the job of this process's command line, a line of `kind`; `work` is handed what tells a message at once, and
    gives back the exit code. The process ends with that, or when whoever started it does."""
    _exit_with_parent()
    stream = _take_stdout()

    def tell(message: M) -> None:
        stream.write(lines.encode(message))
        stream.flush()

    with escape_streams():
        code = work(msgspec.json.decode(sys.argv[1], type=kind), tell)
    sys.stderr.flush()
    os._exit(code)  # threads of the backend are left as they are: nothing is lost with them


def _exit_with_parent() -> None:
    """From here on this process ends when the other side does, however that came about."""
    threading.Thread(target=_exit_when_stdin_closes, daemon=True).start()


def _take_stdout() -> BinaryIO:
    """Where messages go; from here on nothing else does: whatever else is printed goes to stderr."""
    stream = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return stream


def _exit_when_stdin_closes() -> None:
    """Nothing is ever written to it."""
    sys.stdin.buffer.read()
    os._exit(2)
