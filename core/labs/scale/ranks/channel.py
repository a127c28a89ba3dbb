"""How a process of a lab speaks to whoever started it, and ends with it."""

from __future__ import annotations

import os
import sys
import threading
from typing import BinaryIO


def end_with_parent() -> None:
    """From here on this process ends when the other side does, however that came about."""
    threading.Thread(target=_wait_for_end, daemon=True).start()


def own_stdout() -> BinaryIO:
    """Where messages go; from here on nothing else does: whatever else is printed goes to stderr."""
    stream = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return stream


def _wait_for_end() -> None:
    """Nothing is ever written to it."""
    sys.stdin.buffer.read()
    os._exit(2)
