"""One set-up at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows, which refuses to remove files in use and so needs no lock
    fcntl = None


@contextmanager
def one_at_a_time(root: Path) -> Iterator[None]:
    """Wait for any other set-up in this folder.

    The lock belongs to the open folder, and pip inherits that: it holds even while the pip of a killed set-up works on.
    """
    if fcntl is None:
        yield
        return
    folder = os.open(str(root), os.O_RDONLY)
    try:
        os.set_inheritable(folder, True)
        _wait(folder)
        yield
    finally:
        os.close(folder)


def _wait(folder: int) -> None:
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print("Another set-up is at work in this folder; waiting for it to end.", flush=True)
        fcntl.flock(folder, fcntl.LOCK_EX)
