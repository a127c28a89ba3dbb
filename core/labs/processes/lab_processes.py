"""Start, monitor and end the processes of a lab, run their jobs, and exchange JSON messages with them. Imports no torch."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from queue import Empty, Queue
from typing import Any, BinaryIO, Generic, NamedTuple, NoReturn, TypeVar

import msgspec

from core.common.text import escape_streams
from core.errors import ScaleError
from resources.language import tr

M = TypeVar("M")


class _JsonLine(msgspec.Struct, frozen=True):
    kind: str
    value: msgspec.Raw


class JsonLines(Generic[M]):
    """Messages of these classes, msgspec's structs or dataclasses, as lines and back."""

    def __init__(self, *kinds: type[Any]) -> None:
        self._kinds = {kind.__name__: kind for kind in kinds}

    def encode(self, message: M) -> bytes:
        """One line."""
        value = msgspec.Raw(msgspec.json.encode(message))
        return msgspec.json.encode(_JsonLine(type(message).__name__, value)) + b"\n"

    def decode(self, line: bytes) -> M | None:
        """None for a line that is no message: a process was ended in the middle of it."""
        try:
            found = msgspec.json.decode(line, type=_JsonLine)
            kind = self._kinds.get(found.kind)
            return None if kind is None else msgspec.json.decode(found.value, type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None


_MAX_STDERR_LINES = 40
"""Of what a process writes to stderr."""


class ProcessMessage(NamedTuple, Generic[M]):
    """What a process said; None when it has said all: it has ended."""

    rank: int
    message: M | None


class LabProcesses(Generic[M]):
    """A process for each job. Ends them, whatever happens, when the `with` is left."""

    def __init__(self, module: str, jobs: Sequence[msgspec.Struct], lines: JsonLines[M]) -> None:
        """`module` is run with each job, as JSON, as its argument, and `serving` in it; it speaks in `lines`."""
        self._module, self._jobs, self._lines = module, jobs, lines
        self._running: list[subprocess.Popen[bytes]] = []
        self._messages: Queue[ProcessMessage[M]] = Queue()
        self._threads: list[threading.Thread] = []
        self._stderr_lines: list[list[str]] = [[] for _ in jobs]

    def __enter__(self) -> LabProcesses[M]:
        try:
            for rank, job in enumerate(self._jobs):
                self._start(rank, job)
        except OSError as error:
            self._terminate()
            raise ScaleError(tr("A process could not be started: {reason}.").format(reason=error.strerror)) from error
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        self._terminate()

    @property
    def ids(self) -> tuple[int, ...]:
        """Of the processes, by rank."""
        return tuple(process.pid for process in self._running)

    def next_message(self, timeout: float) -> ProcessMessage[M] | None:
        """What any of them says next; None where none does in that time."""
        try:
            return self._messages.get(timeout=timeout)
        except Empty:
            return None

    def exit_code(self, rank: int) -> int:
        """How a process that has said all has ended; negative: by that signal."""
        return self._running[rank].wait()

    def stderr_tail(self, rank: int) -> str:
        """The last of what it wrote for programmers."""
        return "\n".join(self._stderr_lines[rank][-_MAX_STDERR_LINES:])

    def _start(self, rank: int, job: msgspec.Struct) -> None:
        command = [sys.executable, "-m", self._module, msgspec.json.encode(job).decode()]
        pipe = subprocess.PIPE
        process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, env=_process_environment())
        self._running.append(process)
        assert process.stdout is not None
        assert process.stderr is not None
        for work, stream in ((self._read_messages, process.stdout), (self._collect_stderr, process.stderr)):
            thread = threading.Thread(target=work, args=(rank, stream), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _read_messages(self, rank: int, stream: BinaryIO) -> None:
        with stream:
            for line in stream:
                message = self._lines.decode(line)
                if message is not None:
                    self._messages.put(ProcessMessage(rank, message))
        self._messages.put(ProcessMessage(rank, None))

    def _collect_stderr(self, rank: int, stream: BinaryIO) -> None:
        with stream:
            for line in stream:
                self._stderr_lines[rank].append(line.decode(errors="replace").rstrip())
                del self._stderr_lines[rank][:-_MAX_STDERR_LINES]

    def _terminate(self) -> None:
        for process in self._running:
            process.kill()
        for process in self._running:
            process.wait()
            if process.stdin is not None:
                process.stdin.close()
        for thread in self._threads:
            thread.join()


def _process_environment() -> dict[str, str]:
    """One thread each, nothing asked of the network, and this very core."""
    here = str(Path(__file__).parents[3])
    others = os.environ.get("PYTHONPATH", "")
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, (here, others))),
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_VERBOSITY": "error",
    }


RUNTIME_BYTES = 450_000_000
"""Bytes that a process takes before it holds a model: Python, torch, transformers."""


def free_port(port: int) -> int:
    """A port of this machine that nobody listens on; 0 for any. Raises ScaleError where it is taken."""
    with socket.socket() as tried:
        try:
            tried.bind(("127.0.0.1", port))
        except OSError as error:
            raise ScaleError(
                tr("Port {port} of this machine is taken: {reason}.").format(port=port, reason=error.strerror),
                tr("Choose another, or 0 for any that is free."),
            ) from error
        found: int = tried.getsockname()[1]
        return found


J = TypeVar("J")


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
