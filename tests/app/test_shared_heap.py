"""Threads of the window allocate from the process's first heap, where the C library supports that."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

from decodescope.app.session.worker import SETTING

pytestmark = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="heaps of threads are glibc's")
CODE = """
import ctypes, threading
from decodescope.app.session.worker import share_heap
print({told})
thread = threading.Thread(target=lambda: [bytearray(100_000) for _ in range(9)])
thread.start()
thread.join()
ctypes.CDLL(None).malloc_stats()
"""


def heaps(told: str, **environment: str) -> tuple[str, int]:
    """Return the value of an expression and the number of heaps after a thread has allocated."""
    others = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    done = subprocess.run(
        [sys.executable, "-c", CODE.format(told=told)],
        capture_output=True, text=True, check=True, timeout=60, env={**others, **environment},
    )  # fmt: skip
    return done.stdout.strip(), done.stderr.count("Arena ")


def test_threads_share_heap_only_after_share_heap() -> None:
    assert heaps("None") == ("None", 2)
    assert heaps("share_heap()") == ("True", 1)


def test_user_setting_overrides_share_heap() -> None:
    assert heaps("share_heap()", **{SETTING: "4"}) == ("False", 2)
