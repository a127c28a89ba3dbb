"""pip with visible progress, and its failures in words."""

from __future__ import annotations

import os
import queue
import re
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from urllib.parse import unquote

from bootstrap_parts.failures import LOG, diagnose

TICK_SECONDS = 0.5
LOOKING_UP = "looking up"


class Progress:
    """One line that is rewritten on a terminal; elsewhere one line for each change."""

    def __init__(self, out=sys.stdout) -> None:
        self.out, self.live = out, out.isatty()
        self.started, self.status = time.monotonic(), "querying the package index"
        self.share = ""

    def line(self, text: str) -> None:
        """Take in one line of pip's."""
        step = re.match(r"Progress (\d+) of (\d+)", text)
        if step:
            done, whole = map(int, step.groups())
            self.share = f" {100 * done // whole} %" if whole else ""
            return
        status = describe_line(text)
        if status:
            self.status, self.share = status, ""
            if not (self.live or status.startswith(LOOKING_UP)):
                print(f"  {status}", file=self.out, flush=True)

    def tick(self) -> None:
        """Show the elapsed time."""
        if self.live:
            text = f"  {time.monotonic() - self.started:4.0f} s  {self.status}{self.share}"
            width = shutil.get_terminal_size().columns - 1
            print("\r" + text[:width].ljust(width), end="", file=self.out, flush=True)

    def close(self) -> None:
        if self.live:
            print("\r" + " " * (shutil.get_terminal_size().columns - 1) + "\r", end="", file=self.out, flush=True)


def describe_line(line: str) -> str | None:
    """Return a line of pip's output as a progress message, or None if it does not matter to a waiting user."""
    fetched = re.match(r"\s*(Downloading|Using cached) (\S+)(.*?(\([\d.]+ .?B\)))?", line)
    if fetched:
        verb = "downloading" if fetched.group(1) == "Downloading" else "already here:"
        return f"{verb} {package_in(fetched.group(2))} {fetched.group(4) or ''}".rstrip()
    named = re.match(r"(Collecting|Processing|Obtaining) (\S+)", line)
    if named:
        return f"{LOOKING_UP if named.group(1) == 'Collecting' else 'taking'} {package_in(named.group(2))}"
    installing = re.match(r"Installing collected packages: (.*)", line)
    if installing:
        names = installing.group(1).split(", ")
        return f"installing {len(names)} packages" if names[1:] else f"installing {names[0]}"
    return None


def package_in(text: str) -> str:
    """ "torch-2.13.0-cp311-….whl", "torch<3,>=2" or a path of either: the name, and the version if it is a file's."""
    name = unquote(re.split(r"[/\\]", text)[-1])
    if name.endswith((".whl", ".tar.gz", ".metadata")):
        return " ".join(name.replace(".tar.gz", "").split("-")[:2])
    return re.split(r"[<>=!~;\[]", name)[0]


def install(python: Path, requirements: list[str], folder: Path, bar: str = "raw") -> None:
    """Install into the environment ``folder``. The bar called raw is for programs to read; pip has it since 24.1.

    Raises:
        SetupError: pip failed, with its cause in words.
    """
    options = ["--no-input", "--disable-pip-version-check", "--progress-bar", bar]
    command = [str(python), "-m", "pip", "install", *options, *requirements]
    progress = Progress()
    lines, code = follow(command, progress)
    progress.close()
    write_log(folder, lines)
    if code:
        raise diagnose(lines, folder, code)


def follow(command: list[str], progress: Progress) -> tuple[list[str], int]:
    """Run the command, showing its progress; all its lines, and its exit code."""
    variables = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    variables.update(PIP_USER="0", PYTHONUNBUFFERED="1", PYTHONIOENCODING="utf-8")
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=variables, close_fds=False
    )
    arriving: queue.Queue = queue.Queue()
    reader = threading.Thread(target=_read, args=(process.stdout, arriving), daemon=True)
    reader.start()
    try:
        lines = list(_shown(arriving, progress))
        return lines, process.wait()
    finally:
        process.kill()


def _read(stream, arriving: queue.Queue) -> None:
    with stream:
        for line in stream:
            arriving.put(printable(line.decode("utf-8", errors="replace").rstrip()))
    arriving.put(None)


def printable(text: str) -> str:
    """The text with control characters written out: a package's name must not reach the terminal as a command."""
    return "".join(char if char.isprintable() or char == "\t" else ascii(char)[1:-1] for char in text)


def _shown(arriving: queue.Queue, progress: Progress):
    """The lines until the end, each given to the progress, which also ticks while none comes."""
    while True:
        try:
            line = arriving.get(timeout=TICK_SECONDS)
        except queue.Empty:
            progress.tick()
            continue
        if line is None:
            return
        progress.line(line)
        progress.tick()
        if not line.startswith("Progress "):
            yield line


def write_log(folder: Path, lines: list[str]) -> None:
    """Keep pip's words for a bug report; a full disk is reported elsewhere."""
    try:
        with open(str(folder / LOG), "a", encoding="utf-8") as log:
            log.write("\n".join(lines) + "\n")
    except OSError:
        pass
