"""The processes of a lab: started, listened to, ended. None outlives the `with` it is started in."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from queue import Empty, Queue
from typing import BinaryIO, Generic, NamedTuple, TypeVar

import msgspec

from core.errors import ScaleError
from core.labs.processes.json_lines import JsonLines
from resources.language import tr

M = TypeVar("M")

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
