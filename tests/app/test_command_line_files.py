"""Files and folders on the command line: options are enumerated from the parsers, and bad paths are refused with cause
and remedy.
"""

from __future__ import annotations

import argparse
import importlib
import io
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from decodescope import core
from decodescope.app import __main__ as program
from decodescope.app.start.cli import commands, values
from decodescope.app.start.cli.parser import make_parser
from decodescope.app.start.cli.values import OutputPath
from decodescope.core import claims
from tests.app.test_claim_command import OUTCOME

WINDOW = ""
"""In the place of a command: the options of the window."""
FOLDER, FILE = "folder", "file"
REQUIRED = {
    WINDOW: (), "generate": ("{lines}", "--out", "{folder}"), "study": ("{study}",), "atlas": ("Once",),
    "probability": ("storyteller", "Once", " a"), "infer-settings": ("storyteller", " there was"),
    "claim": ("greedy-repeats",), "watch": ("{script}",), "serve": (), "show": ("{missing}",),
    "why": ("{missing}", "{missing}"),
}  # fmt: skip
"""Words with which each command runs. An option under test comes before them."""
MORE = {"--record": ("--run",)}
"""Words without which an option is refused."""
NAMED_ELSEWHERE = {"--model", "--draft", "--adapter", "--use", "--preset", "--media", "model", "--use PATH"}
"""Options that take a name or a path, and whose message depends on what the path contains."""


class PathOption(NamedTuple):
    """An option or argument that is the path of a file or folder."""

    command: str
    action: argparse.Action

    @property
    def name(self) -> str:
        return self.action.option_strings[-1] if self.action.option_strings else self.action.dest

    @property
    def label(self) -> str:
        return f"{self.command or 'window'} {self.name}"


def parsers() -> Iterator[tuple[str, argparse.ArgumentParser]]:
    yield WINDOW, make_parser()
    for name, (module, _about) in commands.COMMANDS.items():
        yield name, importlib.import_module(module).make_parser()


def path_options() -> Iterator[PathOption]:
    """Yield all options that name a file or folder, by type, placeholder and help."""
    for command, parser in parsers():
        for action in parser._actions:
            placeholder = action.metavar if isinstance(action.metavar, str) else ""
            is_path = action.type is Path or isinstance(action.type, OutputPath)
            is_named = re.search(r"FILE|DIR|PATH|FOLDER|OUT\b", placeholder) or "@FILE" in (action.help or "")
            if action.nargs != 0 and (is_path or is_named):
                yield PathOption(command, action)


OPTIONS = list(path_options())
WRITING = [one for one in OPTIONS if isinstance(one.action.type, OutputPath) or one.action.metavar == "FOLDER"]
READING = [one for one in OPTIONS if one not in WRITING and one.name not in NAMED_ELSEWHERE]
WINDOWED = [one for one in READING if one.label == "window recorded"]
"""Read after the window is open: `tests/ui/test_launch.py`."""


def test_options_that_write_check_their_destination() -> None:
    """An option whose help says that it writes has a type that checks the place."""
    checked = {one.label for one in WRITING}
    for command, parser in parsers():
        for action in parser._actions:
            says_so = re.match(r"(save|write|record|also write|append|folder for)\b", action.help or "")
            if action.nargs != 0 and says_so:
                assert PathOption(command, action).label in checked
    assert {"claim --json", "atlas --csv", "study --out", "watch --save", "window --export"} <= checked


class Place(NamedTuple):
    """A destination that must be refused."""

    name: str
    path: str
    refused_for: frozenset[str] = frozenset((FILE, FOLDER))


PLACES = (
    Place("empty", ""), Place("blank", " "), Place("below-a-device", "/dev/null/out{suffix}"),
    Place("below-a-file", "{file}/out{suffix}"), Place("read-only", "/proc/out{suffix}"),
    Place("long", "{tmp}/" + "a" * 300 + "{suffix}"), Place("folder", "{tmp}/as-folder{suffix}", frozenset((FILE,))),
    Place("missing-folder", "{tmp}/none/out{suffix}", frozenset((FILE,))),
    Place("file", "{file}", frozenset((FOLDER,))), Place("full-device", "/dev/full", frozenset((FOLDER,))),
)  # fmt: skip


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    """Return the paths in `REQUIRED` and `PLACES`."""
    (tmp_path / "lines.jsonl").write_text('{"prompt": "Once", "settings": {"max_new_tokens": 2}}\n', encoding="utf-8")
    (tmp_path / "study.toml").write_text('[prompts]\ntexts = ["Once"]\n', encoding="utf-8")
    (tmp_path / "script.py").write_text("", encoding="utf-8")
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    (tmp_path / "latin.txt").write_bytes("Les élèves\n".encode("latin-1"))
    (tmp_path / "binary").write_bytes(bytes(range(256)) * 20)
    return {
        "lines": str(tmp_path / "lines.jsonl"), "study": str(tmp_path / "study.toml"), "tmp": str(tmp_path),
        "script": str(tmp_path / "script.py"), "file": str(tmp_path / "file"), "folder": str(tmp_path / "results"),
        "missing": str(tmp_path / "missing"),
    }  # fmt: skip


@pytest.fixture
def no_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no model be loaded and no window be built."""

    def work(*_arguments: object, **_options: object) -> None:
        pytest.fail("the path was refused only after the work had begun")

    monkeypatch.setattr(core, "load", work)
    monkeypatch.setattr(program, "build_window", work)
    monkeypatch.setattr(core.studies.runner.StudyRunner, "run", work, raising=True)


def suffix_of(option: PathOption) -> str:
    """Return a suffix that the option accepts."""
    for suffix in ("", ".png", ".html", ".apng"):
        try:
            kind_of(option)(f"name{suffix}")
        except argparse.ArgumentTypeError:
            continue
        return suffix
    raise AssertionError(option.label)


def run(option: PathOption, path: str, files: dict[str, str]) -> int:
    """Run the option's command with a path, and return its exit code."""
    words = [word.format(**files) for word in REQUIRED[option.command]]
    path = f"@{path}" if "@FILE" in (option.action.help or "") else path
    if option.name in words:
        words[words.index(option.name) + 1] = path
    elif option.action.option_strings:
        words = [option.name, path, *MORE.get(option.name, ()), *words]
    else:
        parser = dict(parsers())[option.command]
        words[[one.dest for one in parser._actions if not one.option_strings].index(option.action.dest)] = path
    try:
        return program.main([*filter(None, [option.command]), *words])
    except SystemExit as end:
        return int(end.code or 0)


def check_message(text: str) -> None:
    """Require one message with cause and remedy."""
    message = [line for line in text.splitlines() if line.startswith("decodescope")][-1:]
    assert message, text
    assert re.search(r"[.!?”] [A-Z].*\.$", message[0]), f"no cause or no remedy: {message[0]}"
    assert not re.search(r"Traceback|Errno|codec|Error\b", text), text


def is_refused(option: PathOption, place: Place) -> bool:
    """Return whether the option refuses the place: some create missing folders, or go on without writing."""
    kind = kind_of(option)
    goes_on = (kind.creates_folders and place.name == "missing-folder") or (
        kind.is_optional and place.name == "read-only"
    )
    return (FOLDER if kind.is_folder else FILE) in place.refused_for and not goes_on


def kind_of(option: PathOption) -> OutputPath:
    """Return how the destination is checked."""
    return option.action.type if isinstance(option.action.type, OutputPath) else values.output_folder


REFUSED = [(option, place) for option in WRITING for place in PLACES if is_refused(option, place)]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the places are those of Linux")
@pytest.mark.parametrize(
    ("option", "place"), REFUSED, ids=[f"{option.label} {place.name}" for option, place in REFUSED]
)
def test_place_that_cannot_be_written_is_refused_before_the_work(
    option: PathOption, place: Place, files: dict[str, str], no_work: None, tmp_path: Path,
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    suffix = suffix_of(option)
    (tmp_path / f"as-folder{suffix}").mkdir()
    before = sorted(tmp_path.iterdir())
    assert run(option, place.path.format(**files, suffix=suffix), files) == commands.INVALID
    check_message(capsys.readouterr().err)
    assert sorted(tmp_path.iterdir()) == before, "nothing is left of the trial"


CONTENTS = ("missing", "tmp", "binary", "latin", "zero", "below", "empty")
UNREADABLE = [
    (option, content)
    for option in READING
    for content in CONTENTS
    if option not in WINDOWED and not (option.label == "watch script" and content in ("binary", "latin"))
]
"""Python itself refuses a script that is no text."""


@pytest.mark.parametrize(
    ("option", "content"), UNREADABLE, ids=[f"{option.label} {content}" for option, content in UNREADABLE]
)
def test_file_that_cannot_be_read_is_refused_with_cause_and_remedy(
    option: PathOption, content: str, files: dict[str, str], no_work: None, tmp_path: Path, qapp: object,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    paths = {
        "binary": tmp_path / "binary", "latin": tmp_path / "latin.txt", "zero": "/dev/zero", "below": "/dev/null/x",
        "empty": "", **files,
    }  # fmt: skip
    assert run(option, str(paths[content]), files) in (commands.FAILED, commands.INVALID)
    check_message(capsys.readouterr().err)


@pytest.fixture
def quick_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the computations."""

    class Atlas(list[Any]):
        low, high, setting, passes, is_complete = 0.0, 2.0, "temperature", 1, True

        def columns(self) -> dict[str, list[str]]:
            return {"text": ["a"]}

    monkeypatch.setattr(core, "load", lambda *_names, **_options: object.__new__(core.LoadedModel))
    monkeypatch.setattr(core, "map_setting", lambda *_names, **_options: Atlas())
    monkeypatch.setattr(claims, "try_claim", lambda _model, claim, **_options: replace(OUTCOME, claim=claim.name))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs the device /dev/full")
@pytest.mark.parametrize(
    "option", [one for one in WRITING if one.action.type is values.output_file],
    ids=lambda option: option.label,
)  # fmt: skip
def test_full_disk_ends_with_cause_and_remedy(
    option: PathOption, files: dict[str, str], quick_work: None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(option, "/dev/full", files) == commands.FAILED
    text = capsys.readouterr().err
    check_message(text)
    assert "Free up space" in text


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /dev/fd")
def test_table_is_written_to_a_pipe(quick_work: None) -> None:
    reading, writing = os.pipe()
    with os.fdopen(reading, encoding="utf-8") as reader:
        assert program.main(["atlas", "Once", "--csv", f"/dev/fd/{writing}"]) == commands.DONE
        os.close(writing)
        assert reader.read().split() == ["text", "a"]


def test_full_output_ends_with_cause_and_remedy(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class FullStream(io.StringIO):
        def flush(self) -> None:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(sys, "stdout", FullStream())
    assert program.main(["claim"]) == commands.FAILED
    check_message(capsys.readouterr().err)


def test_reader_that_ends_early_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    class ClosedPipe(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError(32, "Broken pipe")

    monkeypatch.setattr(sys, "stdout", ClosedPipe())
    assert program.main(["claim"]) == commands.DONE


def test_file_without_prompts_is_refused_before_a_model_is_loaded(
    no_work: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "none.txt").write_text("\n \n", encoding="utf-8")
    assert program.main(["claim", "greedy-repeats", "--prompts", str(tmp_path / "none.txt")]) == commands.INVALID
    check_message(capsys.readouterr().err)
