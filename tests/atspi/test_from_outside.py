"""The real program over AT-SPI, as Linux screen readers use it: found, operated and read from another process."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
READER = Path(__file__).with_name("reader.py")
SYSTEM_PYTHON = "/usr/bin/python3"
SESSION = '"$@" & program=$!; "$PYTHON" "$READER"; status=$?; kill $program; wait $program; exit $status'
"""What goes on beside a bus of its own: the program, and for as long as it reads the reader."""
PROGRAM = (sys.executable, "-m", "app", "--model", "storyteller", "--strategy", "greedy", "--language", "en", "--param",
           "max_new_tokens=12", "--prompt", "Once upon a time", "--size", "1280x800")  # fmt: skip


def missing_requirements() -> str:
    """Return the missing tools; empty if there are none."""
    if not sys.platform.startswith("linux") or not Path(SYSTEM_PYTHON).exists():
        return "AT-SPI, which is Linux's"
    lacking = [name for name in ("Xvfb", "dbus-run-session") if shutil.which(name) is None]
    lacking += [] if Path("/usr/libexec/at-spi-bus-launcher").exists() else ["at-spi2-core"]
    script = "import gi; gi.require_version('Atspi', '2.0')"
    found = subprocess.run([SYSTEM_PYTHON, "-c", script], capture_output=True, check=False).returncode == 0
    return ", ".join([*lacking, *([] if found else ["python3-gi with gir1.2-atspi-2.0"])])


@contextmanager
def screen() -> Iterator[str]:
    """Yield the name of a display without a screen."""
    ours, reference = os.pipe()
    words = ["Xvfb", "-displayfd", str(reference), "-screen", "0", "1400x900x24", "-nolisten", "tcp"]
    server = subprocess.Popen(words, pass_fds=(reference,), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    os.close(reference)
    try:
        with os.fdopen(ours) as reported:
            yield f":{reported.readline().strip()}"
    finally:
        server.terminate()
        server.wait(10)


def environment(folder: Path, display: str) -> dict[str, str]:
    """Return the environment without the settings and the bus of the user who runs the tests."""
    stored = {
        key: value for key, value in os.environ.items() if not key.startswith(("QT_", "DBUS_", "AT_SPI_", "XDG_"))
    }
    folder.chmod(0o700)
    homes = dict.fromkeys(
        ("HOME", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME"), str(folder)
    )
    return {
        **stored, **homes, "DISPLAY": display, "QT_QPA_PLATFORM": "xcb", "QT_LINUX_ACCESSIBILITY_ALWAYS_ON": "1",
        "PYTHON": SYSTEM_PYTHON, "READER": str(READER), "LIBGL_ALWAYS_SOFTWARE": "1", "NO_AT_BRIDGE": "0",
    }  # fmt: skip


@pytest.fixture
def needs_accessibility_bus() -> None:
    if lacking := missing_requirements():
        pytest.skip(f"not on this machine: {lacking}; .ci/run installs it")


@pytest.mark.slow
@pytest.mark.usefixtures("needs_accessibility_bus")
def test_screen_reader_presses_run_and_reads_the_generated_text(tmp_path: Path) -> None:
    with screen() as display:
        done = subprocess.run(
            ["dbus-run-session", "--", "bash", "-c", SESSION, "session", *PROGRAM],
            cwd=ROOT, env=environment(tmp_path, display), capture_output=True, text=True, timeout=150, check=False,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["before"] == ""
    assert "Once upon a time, there was a little" in found["written"]
    assert found["word"].strip() == "upon"
    assert found["tokens"] == 12
    assert found["first"].startswith("Token 1 of 12: “")
    assert found["strategy"], "a combo box is called by what is chosen in it, not by the choice"
    assert any(found["written"].split()[-1] in words for words in found["heard"]), found["heard"]
