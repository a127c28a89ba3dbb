"""The command line: what is read, what is refused in words, and where the program then draws."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from app.start import screen
from app.start.cli import Options, parse
from app.state.near import unknown

ROOT = Path(__file__).parents[2]


def test_help_lists_every_name(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse(["--help"])
    said = capsys.readouterr().out
    for name in ("tokens", "compare", "diverse_beam_search", "offloaded_static", "dark", "--still", "--scale"):
        assert name in said


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--veiw", "tree"], "Did you mean “--view”?"),
        (["--size", "9999999x9999999"], "10,000 are the most"),
        (["--size", "1" * 5000 + "x1"], "not of the form 1280x800"),
        (["--size", "1280×"], "not of the form 1280x800"),
        (["--size", "9000x9000"], "too large: 64,000,000"),
        (["--scale", "4", "--size", "3000x3000"], "too large: 64,000,000"),
        (["--scale", "nan"], "not a number from 0.5 to 4.0"),
        (["--font-scale", "9" * 5000], "not a number from 0.8 to 2.0"),
        (["--seed", "²"], "not a whole number"),
        (["--seed", "9" * 5000], "not a whole number"),
        (["--screenshot", "out.gif"], "“.gif” is no kind of picture"),
        (["--export", "out.pdf"], "“.pdf” is no kind of export: end the name with .html, .svg, .png, .csv or .json"),
        (["--screenshot", "out"], "does not say which kind"),
        (["--param", "temperature"], "not of the form name=value"),
        (["--theme", "pink"], "choose from"),
        (["--still"], "say where with --screenshot, --export or --pictures"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_is_refused_is_refused_in_words(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        parse(words)
    said = capsys.readouterr().err
    assert (caught.value.code, message in said) == (2, True)
    assert len(said.splitlines()[-1]) < 200


def test_a_name_that_nothing_is_like() -> None:
    assert unknown("view", "x" * 500, ("tokens", "tree")) == f"There is no view “{'x' * 59}…”. There are: tokens, tree."
    assert "Did you mean “Tokens”?" in unknown("view", "TOKEN", ("Tokens", "Tree"))


@pytest.fixture
def headless(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(screen.sys, "platform", "linux")
    monkeypatch.setenv("QT_SCALE_FACTOR", "")
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"):
        monkeypatch.delenv(name, raising=False)


def test_a_picture_needs_no_screen(headless: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISPLAY", ":77")
    assert screen.choose_screen(Options(screenshot=Path("out.png"), scale=2.0)) == ""
    assert (os.environ["QT_QPA_PLATFORM"], os.environ["QT_SCALE_FACTOR"]) == ("offscreen", "2")
    monkeypatch.delenv("QT_QPA_PLATFORM")  # monkeypatch restores what it knows of


def test_a_window_needs_one(headless: None, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "neither DISPLAY nor WAYLAND_DISPLAY" in screen.choose_screen(Options())
    monkeypatch.setenv("DISPLAY", ":0")
    assert screen.choose_screen(Options()) == ""


def test_without_a_screen_the_program_says_so(tmp_path: Path) -> None:
    bare = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")}
    command = [sys.executable, "-m", "app", "--config-dir", str(tmp_path)]
    ended = subprocess.run(command, env=bare, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert (ended.returncode, "there is no screen" in ended.stderr) == (1, True)
