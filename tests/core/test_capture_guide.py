"""The examples of the guide's page on capturing, in both languages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from decodescope import core

GUIDE = Path(__file__).parents[2] / "docs" / "guide"


@pytest.mark.parametrize("page", ["capture.md", "zh_CN/capture.md"])
def test_examples_of_the_capture_guide_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                          capsys: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    text = (GUIDE / page).read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(blocks) == 4
    exec("\n".join(blocks), {"__name__": "guide"})
    printed = capsys.readouterr().out
    story, raw, own = printed.splitlines()[0], *re.findall(r"^(?:raw|NoComma): (\d+)", printed, re.MULTILINE)
    assert "," not in story
    assert int(own) == int(raw) - 1
    assert (tmp_path / "mine.html").stat().st_size > 50_000
    assert any(isinstance(event, core.events.Finished) for event in core.replay(tmp_path / "mine.decodescope"))
