"""Terminal output: control characters of untrusted text are escaped."""

from __future__ import annotations

import io
import json
import logging
import os
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from decodescope import resources
from decodescope.core.common.text import EscapingStream, escape_streams, printable
from decodescope.core.errors import ModelError

HOSTILE = "\x1b]0;PWNED\x07\x1b[2J\x9b31m\x08\x7f\u202eevil\u2066\u2028\x00"
FORBIDDEN = set(HOSTILE) - set("]0;PWNED[2J31mevil")


@pytest.mark.parametrize(
    ("text", "shown"),
    [("plain", "plain"), ("日本語 é 👩\u200d👩", "日本語 é 👩\u200d👩"), ("a\tb\nc", "a\tb\nc"),
     ("\x1b[2J", "\\x1b[2J"), ("a\rb\x08", "a\\x0db\\x08"), ("\x9b", "\\x9b"),
     ("\u202e", "\\u202e"), ("\ud800", "\\ud800"), ("\U000e0041", "\\U000e0041")],
)  # fmt: skip
def test_control_characters_are_escaped(text: str, shown: str) -> None:
    assert printable(text) == shown
    assert printable(shown) == shown


def test_errors_contain_no_control_characters() -> None:
    error = ModelError(HOSTILE, HOSTILE, HOSTILE)
    for text in (str(error), error.cause, error.remedy, error.details):
        assert not FORBIDDEN & set(text)


def test_prints_warnings_and_logs_go_through_one_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    out, errors = io.StringIO(), io.StringIO()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", errors)
    with escape_streams():
        print(HOSTILE)
        print(HOSTILE, file=sys.stderr)
        sys.stderr.write(warnings.formatwarning(UserWarning(HOSTILE), UserWarning, "x.py", 1))
        handler = logging.StreamHandler()
        handler.emit(logging.LogRecord("x", logging.WARNING, "x.py", 1, HOSTILE, None, None))
        sys.stderr.writelines([HOSTILE, "\n"])
    assert sys.stdout is out
    assert "\\x1b" in out.getvalue()
    assert errors.getvalue().count("\\x1b]0;") == 4
    assert not FORBIDDEN & set(out.getvalue() + errors.getvalue())


def test_carriage_return_of_a_progress_bar_is_kept() -> None:
    raw = io.StringIO(newline="")
    stream = EscapingStream(raw)
    assert stream.write("\r 50 %\r") == 7
    stream.write("done\r\n")
    assert raw.getvalue() == "\r 50 %\\x0ddone\n"
    assert stream.getvalue() == raw.getvalue()


def test_program_without_standard_streams_is_supported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    monkeypatch.setattr(sys, "stderr", None)
    with escape_streams():
        assert sys.stdout is None


@pytest.mark.slow
def test_hostile_model_output_is_escaped_in_the_terminal(tmp_path: Path) -> None:
    folder = tmp_path / "m"
    shutil.copytree(str(resources.path("models", "storyteller-draft")), folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "model_type": HOSTILE, "torch_dtype": HOSTILE}))
    variables = {**os.environ, "QT_QPA_PLATFORM": "offscreen", "HOME": str(tmp_path), "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "-m", "app", "--model", str(folder), "--run", "--screenshot", str(tmp_path / "x.png"),
               "--view", HOSTILE.replace("\0", "")]  # fmt: skip
    for arguments in (command, command[:-2]):
        ended = subprocess.run(arguments, capture_output=True, env=variables, check=False)
        reported = (ended.stdout + ended.stderr).decode()
        assert ended.returncode != 0
        assert "\\x1b" in reported
        assert not FORBIDDEN & set(reported)
