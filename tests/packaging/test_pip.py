"""Shortened output of pip, and clear messages for its failures."""

import io
import subprocess
import sys

import pytest
from bootstrap_parts import pip
from bootstrap_parts.errors import SetupError
from bootstrap_parts.failures import LOG, diagnose


class PipTerminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("Collecting torch<2.14,>=2.6 (from decodescope==0.1.0)", "looking up torch"),
        ("  Downloading torch-2.13.0-cp311-cp311-win_amd64.whl (190.2 MB)", "downloading torch 2.13.0 (190.2 MB)"),
        (
            "  Downloading https://x.org/cpu/torch-2.13.0%2Bcpu-cp311-win.whl (1 MB)",
            "downloading torch 2.13.0+cpu (1 MB)",
        ),
        ("  Using cached idna-3.20-py3-none-any.whl.metadata (7.2 kB)", "already here: idna 3.20 (7.2 kB)"),
        ("Processing /wheels/numpy-2.4.6-cp311-cp311-linux_x86_64.whl", "taking numpy 2.4.6"),
        ("Installing collected packages: a, b, c", "installing 3 packages"),
        ("Installing collected packages: pip", "installing pip"),
        ("Requirement already satisfied: pip>=24.1 in ./lib", None),
        ("", None),
    ],
)
def test_pip_lines_are_shortened(line, told):
    assert pip.describe_line(line) == told


def test_terminal_shows_percentage_and_time_on_one_line():
    out = PipTerminal()
    progress = pip.Progress(out)
    progress.line("  Downloading torch-2.13.0-cp311.whl (190.2 MB)")
    progress.line("Progress 50 of 200")
    progress.tick()
    assert "downloading torch 2.13.0 (190.2 MB) 25 %" in out.getvalue()
    assert "\n" not in out.getvalue()


def test_log_file_gets_one_line_for_each_download():
    out = io.StringIO()
    progress = pip.Progress(out)
    for line in ("Collecting torch", "  Downloading torch-2.13.0.tar.gz (1 MB)", "Progress 1 of 2"):
        progress.line(line)
        progress.tick()
    assert out.getvalue() == "  downloading torch 2.13.0 (1 MB)\n"


def test_real_process_yields_output_and_exit_code():
    script = "import sys; print('Progress 1 of 2'); print('one'); print('two', file=sys.stderr); sys.exit(3)"
    lines, code = pip.follow([sys.executable, "-c", script], pip.Progress(io.StringIO()))
    assert (sorted(lines), code) == (["one", "two"], 3)


@pytest.mark.parametrize(
    ("lines", "cause", "remedy"),
    [
        (["ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device"], "disk", "free"),
        (
            ["WARNING: Retrying: NewConnectionError(…)", "ERROR: No matching distribution found for torch"],
            "could not be reached",
            "HTTPS_PROXY",
        ),
        (["ERROR: [Errno 13] Permission denied: '/x'"], "may not be written", "make that folder yours"),
        (["ERROR: No matching distribution found for torch<2.14"], "there is no torch<2.14", "another Python"),
        (["MemoryError"], "memory", "close other programs"),
    ],
)
def test_failures_name_cause_and_remedy(tmp_path, lines, cause, remedy):
    error = diagnose(lines, tmp_path / ".venv")
    assert cause in error.cause
    assert remedy in error.remedy


def test_killed_pip_suggests_missing_memory(tmp_path):
    assert "memory" in diagnose([], tmp_path / ".venv", code=-9).cause


def test_unknown_failure_shows_errors_and_the_log(tmp_path):
    error = diagnose(["noise", "ERROR: something new"], tmp_path / ".venv")
    assert "ERROR: something new" in str(error)
    assert "noise" not in str(error)
    assert LOG in error.remedy


def test_real_pip_without_an_index_is_diagnosed(tmp_path, monkeypatch):
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    if subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True).returncode:
        pytest.skip("this environment has no pip")
    (tmp_path / ".venv").mkdir()
    with pytest.raises(SetupError) as caught:
        pip.install(pip.Path(sys.executable), ["no-such-thing"], tmp_path / ".venv", bar="off")
    assert "nothing at all for no-such-thing, or could not be read" in caught.value.cause
    assert "PIP_NO_INDEX" in caught.value.remedy
    assert "no-such-thing" in (tmp_path / ".venv" / LOG).read_text()
