"""Chats as text, examples, error reports, shortcuts, the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from decodescope.app.panels.commands import SHORTCUTS, key_of
from decodescope.app.start import cli
from decodescope.app.state import conversation
from decodescope.app.state.worker_messages import make_error_report
from decodescope.app.storage import examples
from decodescope.core import strategies
from decodescope.core.errors import ParameterError, PromptTooLongError


def test_parse_chat_splits_turns() -> None:
    text = "Hello\nthere\nassistant: Hi.\nUser:  What now?\n\nsystem:\n"
    assert conversation.parse(text) == (
        {"role": "user", "content": "Hello\nthere"},
        {"role": "assistant", "content": "Hi."},
        {"role": "user", "content": "What now?"},
    )
    assert conversation.parse("") == ()


def test_chat_turns_survive_round_trip() -> None:
    turns = ({"role": "system", "content": "Be brief."}, {"role": "user", "content": "two\nlines"})
    assert conversation.parse(conversation.format_turns(turns)) == turns


def test_shipped_examples_fit_their_strategies() -> None:
    usable = examples.load_examples(known_strategies=strategies.registry)
    assert len({example.id for example in usable}) == len(usable)
    for example in usable:
        assert example.title
        assert example.text or example.media
        assert set(example.params) <= set(strategies.registry[example.strategy].parameter_names), example.id


def test_example_files_may_have_unknown_fields_and_strategies(tmp_path: Path) -> None:
    path = tmp_path / "examples.json"
    entries = [
        {"id": "a", "title": "A", "messages": [{"role": "user", "content": "hi"}], "news": 1},
        {"id": "b", "title": "B", "prompt": "x", "strategy": "unheard_of"},
    ]
    path.write_text(json.dumps(entries), encoding="utf-8")
    first, second = examples.load_examples(path)
    assert (first.is_chat, first.text, second.text) == (True, "user: hi", "x")
    assert [example.id for example in examples.load_examples(path, {""})] == ["a"]
    assert examples.load_examples(tmp_path / "none.json") == []


def test_error_report_of_core_error_keeps_its_text() -> None:
    words = make_error_report(PromptTooLongError(600, 512), "trace")
    assert (words.title, words.kind, words.details) == ("The prompt cannot be used", "PromptTooLongError", "trace")
    assert "88 more" in words.cause
    assert "Shorten" in words.remedy
    assert make_error_report(ParameterError("x", "y", "top_p")).parameter == "top_p"


@pytest.mark.parametrize(
    ("error", "cause", "remedy"),
    [
        (MemoryError(), "MemoryError", "smaller model"),
        (FileNotFoundError("gone"), "gone", "folder"),
        (ValueError("odd"), "odd", "Try again."),
    ],
)
def test_error_report_of_other_error_has_cause_and_remedy(error: BaseException, cause: str, remedy: str) -> None:
    words = make_error_report(error)
    assert words.cause == cause
    assert remedy in words.remedy


def test_shortcut_keys_are_unique() -> None:
    """Keys are unique during a presentation and outside it; a presentation hides the other commands."""
    for on_stage in (False, True):
        keys = [key for one in SHORTCUTS for key in one.keys if (one.group == "Presenting") == on_stage]
        assert len(keys) == len(set(keys))
    assert key_of("run") == "Ctrl+Return"
    assert key_of("nothing") == ""
    assert next(s.label for s in SHORTCUTS if s.action == "enlarge_text") == "Ctrl++"


def test_command_line_options_are_parsed() -> None:
    options = cli.parse(
        ["--model", "m", "--param", "temperature=0.8", "--param", "stop_strings=a=b", "--size", "1280x800",
         "--seed", "7", "--run", "--font-scale", "1.5", "--theme", "dark", "--screenshot", "x.png"]
    )  # fmt: skip
    assert options.params == (("temperature", "0.8"), ("stop_strings", "a=b"))
    assert (options.size, options.seed, options.run, options.font_scale) == ((1280, 800), 7, True, 1.5)
    assert (options.prompt, options.screenshot) == (None, Path("x.png"))


@pytest.mark.parametrize(
    "arguments",
    [["--param", "x"], ["--size", "big"], ["--seed", "-1"], ["--font-scale", "9"], ["--theme", "pink"], ["--mod", "x"]],
)
def test_invalid_command_line_option_is_rejected(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        cli.parse(arguments)
    assert end.value.code == 2
    assert arguments[0] in capsys.readouterr().err
