"""Two set-ups in one folder take turns, also after one was killed and left pip at work."""

import subprocess
import sys

import pytest
from bootstrap_parts.lock import one_at_a_time

pytest.importorskip("fcntl")

CHECK = """
import fcntl, os, sys
try:
    fcntl.flock(os.open(sys.argv[1], os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError:
    sys.exit(7)
"""


def is_locked(folder) -> bool:
    return subprocess.run([sys.executable, "-c", CHECK, str(folder)]).returncode == 7


def test_lock_is_held_inside_only(tmp_path):
    with one_at_a_time(tmp_path):
        assert is_locked(tmp_path)
    assert not is_locked(tmp_path)


def test_process_started_by_set_up_keeps_the_lock(tmp_path):
    with one_at_a_time(tmp_path):
        left = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, close_fds=False)
    assert is_locked(tmp_path)
    left.communicate(b"\n")
    assert not is_locked(tmp_path)
