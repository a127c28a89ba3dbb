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

from bootstrap_parts.errors import SetupError

LOG = "set-up.log"
KEPT_LINES = 15
TICK_SECONDS = 0.5
KILLED = -9
LOOKING_UP = "looking up"

NETWORK = re.compile(
    r"NewConnectionError|NameResolutionError|ConnectionError|ConnectTimeout|ReadTimeout|ProxyError|SSLError|"
    r"getaddrinfo failed|name resolution|Name or service not known|nodename nor servname|Network is unreachable|"
    r"Connection (refused|reset|aborted|timed out)|IncompleteRead|Could not fetch URL|Read timed out",
    re.IGNORECASE,
)
DISK = re.compile(r"No space left on device|Errno 28|WinError 112|not enough space|Disk quota exceeded", re.IGNORECASE)
PERMISSION = re.compile(r"Permission denied|Access is denied|Read-only file system", re.IGNORECASE)
NO_WHEEL = re.compile(r"No matching distribution found for (\S+)")


class Progress:
    """One line that is rewritten on a terminal; elsewhere one line for each thing worth telling."""

    def __init__(self, out=sys.stdout) -> None:
        self.out, self.live = out, out.isatty()
        self.started, self.told = time.monotonic(), "asking the package index"
        self.share = ""

    def line(self, text: str) -> None:
        """Take in one line of pip's."""
        step = re.match(r"Progress (\d+) of (\d+)", text)
        if step:
            done, whole = map(int, step.groups())
            self.share = f" {100 * done // whole} %" if whole else ""
            return
        told = tell(text)
        if told:
            self.told, self.share = told, ""
            if not (self.live or told.startswith(LOOKING_UP)):
                print(f"  {told}", file=self.out, flush=True)

    def tick(self) -> None:
        """Show that time goes on."""
        if self.live:
            text = f"  {time.monotonic() - self.started:4.0f} s  {self.told}{self.share}"
            width = shutil.get_terminal_size().columns - 1
            print("\r" + text[:width].ljust(width), end="", file=self.out, flush=True)

    def close(self) -> None:
        if self.live:
            print("\r" + " " * (shutil.get_terminal_size().columns - 1) + "\r", end="", file=self.out, flush=True)


def tell(line: str) -> str | None:
    """What a line of pip's says to somebody waiting, or None if nothing."""
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
    name = re.split(r"[/\\]", text)[-1]
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
            arriving.put(line.decode("utf-8", errors="replace").rstrip())
    arriving.put(None)


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
    """Keep pip's words for a bug report; a full disk is told of elsewhere."""
    try:
        with open(str(folder / LOG), "a", encoding="utf-8") as log:
            log.write("\n".join(lines) + "\n")
    except OSError:
        pass


def diagnose(lines: list[str], folder: Path, code: int = 1) -> SetupError:
    """The cause that pip's words betray, and what helps against it."""
    text = "\n".join(lines)
    telling = [line for line in lines if line.startswith(("ERROR", "error:"))] or lines
    details = "\n".join(f"    {line}" for line in telling[-KEPT_LINES:])
    for cause, remedy in _causes(text, folder, code):
        return SetupError(cause, remedy, details)
    return SetupError("pip failed.", f"see the details, and {folder / LOG} for all it said.", details)


def _causes(text: str, folder: Path, code: int):
    """Every cause that fits, the most certain first."""
    if DISK.search(text):
        free = shutil.disk_usage(str(folder.parent)).free / 1e9
        yield (
            f"the disk is full ({free:.1f} GB free where {folder} is; the temporary folder may be another disk).",
            "make about 4 GB free, or set TMPDIR to a folder on a larger disk, and run the same command again.",
        )
    if NETWORK.search(text):
        yield (
            "the package index could not be reached.",
            "check the connection (behind a proxy set HTTPS_PROXY) and run the same command again; "
            "what has been downloaded is kept.",
        )
    if PERMISSION.search(text):
        yield (f"files under {folder} may not be written.", "make that folder yours, or move the project elsewhere.")
    missing = NO_WHEEL.search(text)
    if missing:
        yield (
            f"there is no {missing.group(1)} for this system and Python {sys.version.split()[0]}.",
            "try another Python from 3.11 to 3.13; Macs with Intel processors have no current torch.",
        )
    if code == KILLED or "MemoryError" in text:
        yield ("the system stopped pip, most likely for want of memory.", "close other programs and try again.")
