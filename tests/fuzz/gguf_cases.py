"""Open mutated GGUF files in this process and report how each ends: read, named error, or a fault.

`python -m tests.fuzz.gguf_cases FILE FIRST COUNT [LARGE]` runs the cases from FIRST on in child processes, so that a
signal or a hang is counted and not suffered, and adds each result to FILE. `LARGE` is a large file to mutate instead.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import struct
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from contextlib import suppress
from pathlib import Path

from tests.fuzz.gguf_mutation import write_case

BUSY_SECONDS, WAITING_SECONDS = 30, 600
EXTRA_BYTES = 300 * 2**20
"""A file may take so much memory besides one and a half times its size."""


def open_case(path: Path) -> str:
    """Describe, load and run a file; return how that ended. Faults raise."""
    from decodescope import core
    from decodescope.core.errors import DecodescopeError, UnforeseenError
    from decodescope.core.models import catalog
    from decodescope.core.models.gguf.file_summary import summarize_gguf, transformers_problem, vocabulary_stamp

    summarize_gguf(path)
    transformers_problem(path)
    vocabulary_stamp(path)
    with suppress(DecodescopeError):
        catalog.inspect(path)
    try:
        model = core.load(path, device="cpu")
        core.run(model, core.Request("ab a", {"max_new_tokens": 2, "do_sample": False}))
    except UnforeseenError as error:
        raise AssertionError(error.details[-4000:]) from error
    except DecodescopeError as error:
        if not error.cause.strip() or not error.remedy.strip() or error.cause.rstrip(". ").endswith(":"):
            raise AssertionError(f"no cause or no remedy: {error}") from error
        return type(error).__name__
    return "read"


def peak_bytes() -> tuple[int, int]:
    """Return the current and the highest memory of this process since the last call, which resets the latter."""
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    found = int(lines["VmRSS"].split()[0]) * 1024, int(lines["VmHWM"].split()[0]) * 1024
    Path("/proc/self/clear_refs").write_text("5")
    return found


def serve() -> None:
    """Open the files that the input names, one a line, and write a JSON line for each."""
    warnings.simplefilter("ignore")
    import logging
    import signal
    import traceback

    import torch

    torch.set_num_threads(1)
    logging.disable(logging.CRITICAL)

    def hang(*_: object) -> None:
        raise TimeoutError

    signal.signal(signal.SIGPROF, hang)
    for line in sys.stdin:
        path = Path(line.rstrip("\n"))
        before, _ = peak_bytes()
        signal.setitimer(signal.ITIMER_PROF, BUSY_SECONDS)
        try:
            end, details = open_case(path), ""
        except BaseException as error:
            details = str(error) if isinstance(error, AssertionError) else traceback.format_exc()
            end, details = f"FAULT {type(error).__name__}", details[-4000:]
        signal.setitimer(signal.ITIMER_PROF, 0)
        _, peak = peak_bytes()
        size = sum(file.stat().st_size for file in path.parent.iterdir())
        if peak - before > 1.5 * size + EXTRA_BYTES:
            end, details = f"FAULT memory {(peak - before) >> 20} MiB of {size >> 20} MiB, {end}", details
        print(json.dumps([end, details]), flush=True)


class _CaseProcess:
    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", "from tests.fuzz.gguf_cases import serve; serve()"], text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def open(self, path: Path) -> tuple[str, str]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{path}\n")
        self.process.stdin.flush()
        if not select.select([self.process.stdout], [], [], WAITING_SECONDS)[0]:
            self.close()
            return "FAULT hang", ""
        line = self.process.stdout.readline()
        if not line:
            return f"FAULT signal {self.process.wait()}", ""
        end, details = json.loads(line)
        return end, details

    def close(self) -> None:
        self.process.kill()
        self.process.wait()


def run_cases(first: int, count: int, record: Path, large: bytes | None = None) -> Counter[str]:
    """Run cases in child processes and append their results to a file; cases that it contains are not run again."""
    known = {json.loads(line)[0] for line in record.read_text().splitlines()} if record.exists() else set()
    ends, server = Counter[str](), _CaseProcess()
    folder = Path(tempfile.mkdtemp())
    for number in range(first, first + count):
        if number in known:
            continue
        case = folder / "case"
        case.mkdir()
        path = write_case(number, case, large)
        if large is not None:
            os.truncate(path, path.stat().st_size + struct.unpack("<Q", large[-8:])[0])
        end, details = server.open(path)
        ends[end] += 1
        with record.open("a") as stream:
            stream.write(json.dumps([number, end, details]) + "\n")
        if server.process.poll() is not None:
            server = _CaseProcess()
        shutil.rmtree(case)
    server.close()
    shutil.rmtree(folder)
    return ends


def header_of(path: Path) -> bytes:
    """Return the beginning of a large file, without its weights, and with their size as the last eight bytes."""
    from decodescope.core.models.gguf.gguf_file import read_gguf

    begin = min(tensor.start for tensor in read_gguf(path).tensors.values())
    with path.open("rb") as stream:
        return stream.read(begin) + struct.pack("<Q", path.stat().st_size - begin)


if __name__ == "__main__":
    beginning = header_of(Path(sys.argv[4])) if len(sys.argv) > 4 else None
    print(run_cases(int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[1]), beginning))
