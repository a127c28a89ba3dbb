"""Why pip or venv failed, in words, and what helps."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

from bootstrap_parts.errors import SetupError

LOG = "set-up.log"
KEPT_LINES = 15
KILLED = -9

NETWORK = re.compile(
    r"NewConnectionError|NameResolutionError|ConnectionError|ConnectTimeout|ReadTimeout|ProxyError|SSLError|"
    r"getaddrinfo failed|name resolution|Name or service not known|nodename nor servname|Network is unreachable|"
    r"Connection (refused|reset|aborted|timed out)|IncompleteRead|Could not fetch URL|Read timed out",
    re.IGNORECASE,
)
DISK = re.compile(r"No space left on device|Errno 28|WinError 112|not enough space|Disk quota exceeded", re.IGNORECASE)
PERMISSION = re.compile(r"Permission denied|Access is denied|Read-only file system", re.IGNORECASE)
ANOTHER = "try another Python from 3.11 to 3.13; Macs with Intel processors have no current torch"
NOTHING_THERE = re.compile(r"\(from versions: none\)")
NO_WHEEL = re.compile(r"No matching distribution found for (\S+)")


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
            "make about 4 GB free, 10 GB for PyTorch's CUDA build, or set TMPDIR to a folder on a larger disk, and run "
            "the same command again.",
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
    if missing and NOTHING_THERE.search(text):
        yield (
            f"the package index that pip uses has nothing at all for {missing.group(1)}, or could not be read.",
            f"check the connection and pip's settings (pip config list, PIP_INDEX_URL, PIP_NO_INDEX); else {ANOTHER}.",
        )
    elif missing:
        yield (
            f"there is no {missing.group(1)} for this system and Python {sys.version.split()[0]}.",
            f"{ANOTHER}.",
        )
    if code == KILLED or "MemoryError" in text:
        yield ("the system stopped pip, most likely because memory ran out.", "close other programs and try again.")
