"""Where threads get their memory: glibc gives each a heap of its own, whose free end it hands back to the system and
asks for again, page by page, at every step of a small model."""

from __future__ import annotations

import os
import sys

_M_ARENA_MAX = -8
"""Of glibc's malloc.h."""
SETTING = "MALLOC_ARENA_MAX"
"""The variable by which a user says the same; it goes before this."""


def share_heap() -> bool:
    """Have threads that begin from now on allocate from the process's first heap. True where that can be said (glibc).

    A run in a thread of its own has 0.96 of the speed that it has in the main one, with this 1.00.
    """
    if sys.platform != "linux" or SETTING in os.environ:
        return False
    import ctypes  # not before there is a thread

    try:
        return bool(ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 1) == 1)
    except AttributeError:  # another C library, which has one heap or has it otherwise
        return False
