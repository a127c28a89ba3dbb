"""`decodescope show`: a recording in the terminal, coloured or plain."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import pytest

from decodescope import core
from decodescope.app.__main__ import main
from tests.core import tiny

ROOT = Path(__file__).parents[2]


class ColourTerminal(io.StringIO):
    """A terminal that takes colours."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def recording(folder: Path, config: dict[str, object], **more: object) -> Path:
    path = folder / "run.decodescope"
    request = core.Request(tiny.prompt(), config, **more)  # type: ignore[arg-type]
    for _event in core.record(path, core.stream(tiny.shared("llama"), request), request):
        pass
    return path


def shown_in_a_terminal(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> str:
    terminal = ColourTerminal()
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr(sys, "stdout", terminal)
    assert main(["show", *arguments]) == 0
    return terminal.getvalue()


def test_show_without_terminal_prints_plain_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = recording(tmp_path, {"max_new_tokens": 6, "do_sample": True}, seed=5)
    assert main(["show", str(path)]) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    for words in ("Model: tiny-llama", "Strategy: Sampling", "Seed: 5", "6 new tokens"):
        assert words in out
    assert main(["show", str(path), "--tokens"]) == 0
    assert "Alternatives" in capsys.readouterr().out


def test_show_in_terminal_uses_colors_unless_disabled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(recording(tmp_path, {"max_new_tokens": 6}))
    out = shown_in_a_terminal(monkeypatch, path)
    assert "\x1b[" in out
    assert "90 % or more" in out
    plain = shown_in_a_terminal(monkeypatch, path, "--no-color")
    assert "\x1b[" not in plain


def test_every_sequence_and_beam_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for config in ({"do_sample": True}, {"num_beams": 3}):
        path = recording(tmp_path, {"max_new_tokens": 4, "num_return_sequences": 2, **config})
        assert main(["show", str(path)]) == 0
        out = capsys.readouterr().out
        assert "Sequence 1" in out
        assert "Sequence 2" in out


def test_control_characters_of_a_recording_do_not_reach_the_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from decodescope.core import events, trace

    started = next(core.replay(recording(tmp_path, {"max_new_tokens": 1})))
    assert isinstance(started, events.RunStarted)
    hostile = "\x1b]0;title\x07\x9b2J[bold]"
    finished = events.Finished("completed", ((1,),), (hostile,), events.Metrics())
    path = tmp_path / "hostile.decodescope"
    monkeypatch.setattr(trace, "replay", lambda _path: iter([started, finished]))
    out = shown_in_a_terminal(monkeypatch, str(path))
    assert "\x1b]" not in out
    assert "\x9b" not in out
    assert "\x07" not in out
    assert "[bold]" in out


def test_show_in_one_column_terminal_uses_minimum_width(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(recording(tmp_path, {"max_new_tokens": 6}))
    monkeypatch.setenv("COLUMNS", "1")
    assert "Model: tiny-llama" in shown_in_a_terminal(monkeypatch, path, "--no-color")


def test_show_runs_without_qt(tmp_path: Path) -> None:
    """A server without Qt's libraries can run the commands."""
    code = "import sys; sys.modules['PySide6'] = None; import decodescope; sys.exit(decodescope.main(sys.argv[1:]))"
    command = [sys.executable, "-c", code, "show", str(recording(tmp_path, {"max_new_tokens": 2}))]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    assert "tiny-llama" in done.stdout


def test_damaged_or_missing_recording_exits_with_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(tmp_path / "none.decodescope")]) == 1
    path = recording(tmp_path, {"max_new_tokens": 6})
    path.write_bytes(path.read_bytes()[:-40])
    assert main(["show", str(path)]) == 1
    (tmp_path / "text").write_text("hello")
    assert main(["show", str(tmp_path / "text")]) == 1
    assert main(["show", str(tmp_path)]) == 1
    shown = capsys.readouterr()
    assert shown.err.count("decodescope show:") == 4
    assert "is incomplete" in shown.err
    assert "is a folder" in shown.err
    assert "Model: tiny-llama" in shown.out  # the part before the damage
