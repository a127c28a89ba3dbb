"""`decodescope why A B`: the first difference of two recordings."""

from __future__ import annotations

from pathlib import Path

import pytest

from decodescope import core, main


def _recording(path: Path, **settings: object) -> str:
    request = core.Request("Once upon a time", {"max_new_tokens": 8, **settings})
    list(core.record(path, core.stream(core.load("storyteller"), request), request))
    return str(path)


def test_why_prints_cause_and_every_step(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, b = _recording(tmp_path / "a.decodescope"), _recording(tmp_path / "b.decodescope", max_new_tokens=4)
    assert main(["why", a, b]) == 0
    text = capsys.readouterr().out
    assert "limit of new tokens" in text
    assert all(title in text for title in ("Prompt", "Random numbers", "Rounding"))


def test_why_with_unreadable_recording_fails_with_the_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "b").write_text("no recording")
    assert main(["why", str(tmp_path / "b"), str(tmp_path / "b")]) == 1
    assert "decodescope why:" in capsys.readouterr().err
