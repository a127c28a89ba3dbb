"""Start, monitor and end the processes of a lab, run their jobs, and exchange JSON messages with them. Imports no
torch.
"""

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

from decodescope.core.common.text import escape_streams
from decodescope.core.errors import ScaleError
from decodescope.core.system.system_errors import system_error_reason
from decodescope.resources.language import tr

M = TypeVar("M")


class _JsonLine(msgspec.Struct, frozen=True):
    kind: str
    value: msgspec.Raw


class JsonLines(Generic[M]):
    """Encodes messages of these classes (msgspec structs or dataclasses) as lines, and decodes them."""

    def __init__(self, *kinds: type[Any]) -> None:
        self._kinds = {kind.__name__: kind for kind in kinds}

    def encode(self, message: M) -> bytes:
        """Return the message as one line."""
        value = msgspec.Raw(msgspec.json.encode(message))
        return msgspec.json.encode(_JsonLine(type(message).__name__, value)) + b"\n"

    def decode(self, line: bytes) -> M | None:
        """Return the message, or None if the line is not one, as when a process was ended while writing it."""
        try:
            found = msgspec.json.decode(line, type=_JsonLine)
            kind = self._kinds.get(found.kind)
            return None if kind is None else msgspec.json.decode(found.value, type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None


_MAX_STDERR_LINES = 40
"""Lines of a process's stderr that are kept."""


class ProcessMessage(NamedTuple, Generic[M]):
    """A message of a process, or None after it has ended."""

    rank: int
    message: M | None


class LabProcesses(Generic[M]):
    """Runs one process per job, and ends them all when the `with` block is left."""

    def __init__(self, module: str, jobs: Sequence[msgspec.Struct], lines: JsonLines[M]) -> None:
        """Run `module` with each job as its JSON argument; `run_job` runs in it and writes messages as `lines`."""
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
            raise ScaleError(
                tr("A process could not be started: {reason}.").format(reason=system_error_reason(error))
            ) from error
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        self._terminate()

    @property
    def ids(self) -> tuple[int, ...]:
        """Process ids, by rank."""
        return tuple(process.pid for process in self._running)

    def next_message(self, timeout: float) -> ProcessMessage[M] | None:
        """Return the next message of any process, or None after the timeout."""
        try:
            return self._messages.get(timeout=timeout)
        except Empty:
            return None

    def exit_code(self, rank: int) -> int:
        """Return the exit code of an ended process; negative for a signal."""
        return self._running[rank].wait()

    def stderr_tail(self, rank: int) -> str:
        """Return the last lines the process wrote to stderr."""
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
    """Return the environment of a process: one thread, no network access, and this copy of the program."""
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
"""Bytes that a process needs before it loads a model: Python, torch, transformers."""


def free_port(port: int) -> int:
    """Return a free port of this machine; 0 requests any. Raises ScaleError if it is in use."""
    with socket.socket() as tried:
        try:
            tried.bind(("127.0.0.1", port))
        except OSError as error:
            raise ScaleError(
                tr("Port {port} of this machine is in use: {reason}.").format(
                    port=port, reason=system_error_reason(error)
                ),
                tr("Choose another port, or 0 for any free one."),
            ) from error
        found: int = tried.getsockname()[1]
        return found


J = TypeVar("J")


def run_job(kind: type[J], lines: JsonLines[M], work: Callable[[J, Callable[[M], None]], int]) -> NoReturn:
    """Run the job on this process's command line, a JSON value of `kind`.

    `work` receives a function that sends a message, and returns the exit code. The process exits with that code, or
    when its parent ends.
    """
    _exit_with_parent()
    stream = _take_stdout()

    def send_message(message: M) -> None:
        stream.write(lines.encode(message))
        stream.flush()

    with escape_streams():
        code = work(msgspec.json.decode(sys.argv[1], type=kind), send_message)
    sys.stderr.flush()
    os._exit(code)  # exit without waiting for the backend's threads: they hold nothing to save


def _exit_with_parent() -> None:
    """Exit this process when its parent ends, for whatever reason."""
    threading.Thread(target=_exit_when_stdin_closes, daemon=True).start()


def _take_stdout() -> BinaryIO:
    """Reserve stdout for messages, and redirect everything else that is printed to stderr."""
    stream = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return stream


def _exit_when_stdin_closes() -> None:
    """Exit when stdin closes; nothing is ever written to it."""
    sys.stdin.buffer.read()
    os._exit(2)
