"""Nothing leaves this machine unless the user asks: a session that uses the window makes no connection.

The session runs in a process of its own, without the switches that keep the suite offline, so that the program itself
has to refrain. Python's audit events see all of Python; strace, where it may be used, also sees native code.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from decodescope.app.views import VIEWS
from tests.ui import offline_session

ROOT = Path(__file__).resolve().parents[2]
_INTERNET = re.compile(r"\b(connect|bind|sendto|sendmsg|sendmmsg)\(.*sa_family=AF_(?!UNIX\b|NETLINK\b|UNSPEC\b)\w+")
"""A call that names an address which is not within this machine's kernel."""
_OFFLINE_SWITCHES = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_DATASETS_OFFLINE", "HF_HUB_DISABLE_TELEMETRY")


EVERYTHING = {
    "run sampling", "branch", "guess", "stop", "chat", "run greedy of tale.gguf", "plug-in: run sampling", "appearance",
    "history", "live run", "captured 1", "command get_model", "command open_scale", "command open_preference_lab",
}  # fmt: skip
"""Some of what the long session does, besides what the short one does."""


def run_session(folder: Path, *options: str, prefix: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    variables = {name: value for name, value in os.environ.items() if name not in _OFFLINE_SWITCHES}
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "HF_HOME"):
        variables[name] = str(folder / "home" / name.lower())
    command = [*prefix, sys.executable, "-m", "tests.ui.offline_session", str(folder), *options]
    return subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True)


@pytest.mark.slow
def test_a_session_makes_no_connection(tmp_path: Path) -> None:
    answer = run_session(tmp_path)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    told = json.loads(answer.stdout.splitlines()[-1])
    assert told["attempts"] == []
    assert not told["qt_network"], "Qt's own network module would not be seen by Python's audit events"
    assert {f"view {view.name}" for view in VIEWS} <= set(told["done"])
    assert {"replay", "score", "script", "command about", "export run.html"} <= set(told["done"])


def test_audit_hook_detects_connection_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a process of its own, for an audit hook cannot be removed."""
    script = (
        "import sys, urllib.request\n"
        "from tests.ui.offline_session import ATTEMPTS, forbid\n"
        "sys.addaudithook(forbid)\n"
        "try: urllib.request.urlopen('http://127.0.0.1:9/')\n"
        "except OSError: pass\n"
        "print(len(ATTEMPTS))\n"
    )
    answer = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True)
    assert int(answer.stdout) >= 1, answer.stderr
    assert offline_session.ATTEMPTS == []
    assert _INTERNET.search("connect(3, {sa_family=AF_INET, sin_port=htons(443)}, 16) = 0")
    assert not _INTERNET.search('connect(3, {sa_family=AF_UNIX, sun_path="/run/x"}, 110) = 0')


@pytest.fixture
def needs_strace() -> str:
    """The path of strace."""
    strace = shutil.which("strace")
    if strace is None or subprocess.run([strace, "-f", "true"], capture_output=True).returncode:
        pytest.skip("strace is not installed or may not trace here")
    return strace


@pytest.mark.slow
def test_native_code_makes_no_connection_either(tmp_path: Path, needs_strace: str) -> None:
    log = tmp_path / "trace.txt"
    prefix = (needs_strace, "-f", "--seccomp-bpf", "-e", "trace=%network", "-o", str(log))
    (tmp_path / "session").mkdir()
    answer = run_session(tmp_path / "session", "everything", prefix=prefix)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    told = json.loads(answer.stdout.splitlines()[-1])
    assert told["attempts"] == []
    assert not told["qt_network"]
    assert EVERYTHING <= set(told["done"])
    assert "+++ exited with 0 +++" in log.read_text(), "strace wrote its log"
    assert "sa_family=AF_UNIX" in log.read_text(), "the live run's own socket was seen"
    assert [line for line in log.read_text().splitlines() if _INTERNET.search(line)] == []
