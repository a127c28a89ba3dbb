"""Main memory of this computer. Importing this module does not import torch."""

from __future__ import annotations

import os
from pathlib import Path


def free_memory() -> int:
    """Return the bytes of memory available without swapping; a large guess if the system does not report it."""
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return 8 * 2**30
