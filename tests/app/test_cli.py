"""The command line: what is accepted, error messages, and the platform that is chosen."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from decodescope.app.start import display
from decodescope.app.start.cli import CommandLineOptions, parse, parser
from decodescope.app.state.suggestions import unknown_name_message
from decodescope.core import strategies
from decodescope.resources.language import set_language, tr

ROOT = Path(__file__).parents[2]


def test_help_lists_every_name(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse(["--help"])
    reported = capsys.readouterr().out
    for name in ("tokens", "compare", "diverse_beam_search", "offloaded_static", "dark", "--still", "--scale"):
        assert name in reported


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--veiw", "tree"], "Did you mean “--view”?"),
        (["--size", "9999999x9999999"], "the maximum is 10,000 pixels per side"),
        (["--size", "1" * 5000 + "x1"], "not of the form 1280x800"),
        (["--size", "1280×"], "not of the form 1280x800"),
        (["--size", "9000x9000"], "too large: the maximum is 64,000,000"),
        (["--scale", "4", "--size", "3000x3000"], "too large: the maximum is 64,000,000"),
        (["--scale", "nan"], "not a number from 0.5 to 4.0"),
        (["--font-scale", "9" * 5000], "not a number from 0.8 to 2.0"),
        (["--demo-speed", "1e400"], "not a number from 0.1 to 25.0"),
        (["--record-demo", "run.mp4"], "use the extension .apng, .gif, .webm or .png"),
        (["--tour", "../heat"], "Did you mean “heat”?"),
        (["--seed", "²"], "not a whole number"),
        (["--seed", "9" * 5000], "not a whole number"),
        (["--screenshot", "out.gif"], "“.gif” is not a supported image format"),
        (
            ["--export", "out.pdf"],
            "“.pdf” is not a supported export format: use the extension .html, .svg, .png, .csv or .json",
        ),
        (["--screenshot", "out"], "has no file extension"),
        (["--param", "temperature"], "not of the form name=value"),
        (["--theme", "pink"], "choose from"),
        (["--still"], "add --screenshot, --export, --record-demo or --pictures"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_invalid_argument_exits_with_explanation(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        parse(words)
    reported = capsys.readouterr().err
    assert (caught.value.code, message in reported) == (2, True)
    assert len(reported.splitlines()[-1]) < 200


class Chinese:
    """Translate into Chinese, and record the messages that argparse itself looks up."""

    def __init__(self) -> None:
        self.asked: set[str] = set()

    def tr(self, text: str) -> str:
        if sys._getframe(1).f_globals["__name__"] == "argparse":
            self.asked.add(text)
        return tr(text)


@pytest.fixture
def chinese(monkeypatch: pytest.MonkeyPatch) -> Iterator[Chinese]:
    spy = Chinese()
    monkeypatch.setattr(parser, "tr", spy.tr)
    set_language("zh_CN")
    yield spy
    set_language("en")


def test_argparse_messages_are_translated(chinese: Chinese, capsys: pytest.CaptureFixture[str]) -> None:
    reported = []
    for line in ("--help", "--seed", "--run=5", "--theme pink", "--seed x", "--sead=4"):
        with pytest.raises(SystemExit):
            parse(line.split())
        reported.append("".join(capsys.readouterr()))
    since_3_13 = {"%(heading)s:"}
    assert chinese.asked <= set(parser.ARGPARSE_MESSAGES) <= chinese.asked | since_3_13
    assert all(tr(words) != words for words in parser.ARGPARSE_MESSAGES)
    assert [text.splitlines()[-1] for text in reported[1:]] == [
        "decodescope：错误：参数 --seed：需要一个值",
        "decodescope：错误：参数 --run：不接受值 '5'",
        reported[3].splitlines()[-1],  # how choices are written differs between Pythons
        "decodescope：错误：参数 --seed：“x”不是 0 到 2147483647 之间的整数",
        "decodescope：错误：无法识别的参数：--sead=4。你是不是想输入“--seed”？",
    ]
    assert argparse.ArgumentParser(prog="other").format_usage() == "usage: other [-h]\n"  # others are left alone


def test_chinese_help_wraps_at_terminal_width(
    chinese: Chinese, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "82")  # argparse leaves two free
    with pytest.raises(SystemExit):
        parse(["--help"])
    lines = capsys.readouterr().out.split("--pictures 的")[0].splitlines()
    assert any("然后退出" in line for line in lines)
    assert [line for line in lines if parser.display_width(line) > 82] == []
    assert [line for line in lines if line.lstrip().startswith(tuple("，。；：、）”"))] == []


def test_unknown_name_message_shortens_name_and_suggests_similar() -> None:
    assert (
        unknown_name_message("view", "x" * 500, ("tokens", "tree"))
        == f"Unknown view “{'x' * 59}…”. Available: tokens, tree."
    )
    assert "Did you mean “Tokens”?" in unknown_name_message("view", "TOKEN", ("Tokens", "Tree"))


@pytest.fixture
def headless(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(display.sys, "platform", "linux")
    monkeypatch.setenv("QT_SCALE_FACTOR", "")
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"):
        monkeypatch.delenv(name, raising=False)


def test_screenshot_without_display_uses_offscreen_platform(headless: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISPLAY", ":77")
    assert display.choose_platform(CommandLineOptions(screenshot=Path("out.png"), scale=2.0)) == ""
    assert (os.environ["QT_QPA_PLATFORM"], os.environ["QT_SCALE_FACTOR"]) == ("offscreen", "2")
    monkeypatch.delenv("QT_QPA_PLATFORM")  # monkeypatch restores only variables that it has set


def test_window_without_display_is_refused(headless: None, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "neither DISPLAY nor WAYLAND_DISPLAY" in display.choose_platform(CommandLineOptions())
    monkeypatch.setenv("DISPLAY", ":0")
    assert display.choose_platform(CommandLineOptions()) == ""


def test_program_without_display_exits_with_message(tmp_path: Path) -> None:
    bare = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")}
    command = [sys.executable, "-m", "app", "--config-dir", str(tmp_path)]
    ended = subprocess.run(command, env=bare, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert (ended.returncode, "there is no screen" in ended.stderr) == (1, True)


def test_media_option_can_be_repeated() -> None:
    read = parse(["--media", "a.png", "--media=b.png"])
    assert read.media == (Path("a.png"), Path("b.png"))
    assert read.sets_more_than_appearance


def test_file_options_require_matching_output_file() -> None:
    for arguments in (["--plain-csv"], ["--plain-csv", "--export", "x.png"], ["--allow-outside"]):
        with pytest.raises(SystemExit):
            parse(arguments)
    assert parse(["--export", "x.csv", "--plain-csv"]).plain_csv
    assert parse(["--pictures", "x.toml", "--allow-outside"]).allow_outside


WITHOUT_QT = """
import sys
class Refusal:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("PySide6", "shiboken6", "pyqtgraph"):
            raise ImportError("libEGL.so.1: cannot open shared object file: No such file or directory")
sys.meta_path.insert(0, Refusal())
import decodescope
sys.exit(decodescope.main(sys.argv[1:]))
"""


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--version"], "Decodescope "),
        (["--model", "storyteller", "--help"], "--screenshot PATH"),
        (["show", "--help"], "--width N"),
        (["watch", "--help"], "--save FOLDER"),
        (["generate", "--help"], "exit codes"),
    ],
    ids=" ".join,
)
def test_help_and_version_without_qt_libraries_are_printed(words: list[str], expected: str) -> None:
    answer = subprocess.run([sys.executable, "-c", WITHOUT_QT, *words], cwd=ROOT, capture_output=True, text=True)
    assert (answer.returncode, answer.stderr) == (0, "")
    assert expected in answer.stdout


def test_unknown_name_among_many_lists_the_nearest_ones() -> None:
    names = strategies.registry["sampling"].parameter_names
    message = unknown_name_message("setting", "temprature", names)
    assert message.startswith("Unknown setting “temprature”. Did you mean “temperature”? The nearest of ")
    listed = message.partition("names: ")[2].rstrip(".").split(", ")
    assert listed[0] == "temperature"
    assert len(listed) == 5
    assert set(listed) <= set(names)


@pytest.mark.parametrize("name", ["temprature", "top_kk", "zzz", "x" * 5000])
def test_no_error_for_an_unknown_setting_lists_all_settings(name: str) -> None:
    from decodescope.core.settings import unknown_setting_error

    error = unknown_setting_error(strategies.registry["assisted"], name)
    assert len(error.remedy.split(", ")) <= 5
