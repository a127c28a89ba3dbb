"""The command line, from its words to a picture or a message."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
import qasync
from PySide6.QtGui import QImage
from PySide6.QtSvg import QSvgRenderer
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from decodescope import resources
from decodescope.app import __main__ as program
from decodescope.app import build_window
from decodescope.app.start import launch
from decodescope.app.start.cli import parse
from decodescope.app.start.cli.values import PICTURE_SIZE
from decodescope.app.window.main_window import MainWindow
from decodescope.core import Modalities
from decodescope.core.errors import NumericError
from tests.ui.fake_engine import STORY, ScriptedEngine
from tests.ui.media_engine import MediaEngine
from tests.ui.windows import open_window

Launch = Callable[..., int]


@pytest.fixture
def start(qtbot: QtBot, qapp: QApplication, config_dir: Path) -> Launch:
    """Do what `python -m app` does, within this process."""

    def started(engine: ScriptedEngine, *words: object) -> int:
        window = build_window(config_dir, engine, assembled=False)
        qtbot.addWidget(window)
        with qasync.QEventLoop(qapp, set_running_loop=False) as loop:
            code = loop.run_until_complete(launch.start(window, parse([str(word) for word in words])))
        asyncio.set_event_loop(None)
        return int(code)

    return started


def test_screenshot_saves_no_settings(start: Launch, config_dir: Path, tmp_path: Path) -> None:
    words = ("--strategy", "beam_search", "--prompt", "A fox", "--seed", 7, "--theme", "dark", "--view", "tree")
    assert start(ScriptedEngine(), *words, "--run", "--screenshot", tmp_path / "out.png") == 0
    assert not (config_dir / "settings.json").exists()


def test_screenshot_of_run_has_requested_size(start: Launch, tmp_path: Path) -> None:
    engine, path = ScriptedEngine(), tmp_path / "new" / "out.png"
    code = start(
        engine, "--model", "storyteller", "--strategy", "sampling", "--param", "temperature=0.8", "--prompt", "A fox",
        "--run", "--view", "tokens", "--size", "1024x700", "--theme", "dark", "--seed", 7, "--screenshot", path,
    )  # fmt: skip
    assert code == 0
    image = QImage(str(path))
    assert (image.width(), image.height()) == (1024, 700)
    assert image.pixelColor(3, 3).lightness() < 60
    (request,) = engine.runs
    assert (request.prompt, request.seed, request.settings["temperature"]) == ("A fox", 7, 0.8)


def test_screenshot_without_run_is_saved(start: Launch, tmp_path: Path) -> None:
    engine = ScriptedEngine()
    assert start(engine, "--screenshot", tmp_path / "out.png", "--size", "900x600") == 0
    assert QImage(str(tmp_path / "out.png")).size().toTuple() == (900, 600)
    assert engine.runs == []


def test_screenshot_has_default_size(start: Launch, tmp_path: Path) -> None:
    assert start(ScriptedEngine(), "--screenshot", tmp_path / "out.png") == 0
    assert QImage(str(tmp_path / "out.png")).size().toTuple() == PICTURE_SIZE


def test_chat_option_runs_prompt_as_chat(start: Launch, tmp_path: Path) -> None:
    engine = ScriptedEngine()
    assert start(engine, "--chat", "--prompt", "Hello", "--run", "--screenshot", tmp_path / "out.png") == 0
    assert engine.runs[0].prompt == ({"role": "user", "content": "Hello"},)


def test_chat_without_message_exits_with_error(
    start: Launch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert start(ScriptedEngine(), "--chat", "--prompt", " ", "--run", "--screenshot", tmp_path / "out.png") == 1
    assert "There is no message yet." in capsys.readouterr().err


def test_svg_screenshot_is_valid(start: Launch, tmp_path: Path) -> None:
    assert start(ScriptedEngine(), "--screenshot", tmp_path / "out.svg", "--size", "1000x700") == 0
    drawn = QSvgRenderer(str(tmp_path / "out.svg"))
    assert drawn.isValid()
    assert drawn.viewBox().size().toTuple() == (1000, 700)
    assert b"<text" in (tmp_path / "out.svg").read_bytes()


def test_screenshot_uses_device_pixel_ratio(start: Launch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MainWindow, "devicePixelRatioF", lambda _window: 2.0)
    assert start(ScriptedEngine(), "--screenshot", tmp_path / "out.png", "--size", "900x600") == 0
    assert QImage(str(tmp_path / "out.png")).size().toTuple() == (1800, 1200)


@pytest.mark.slow
def test_export_option_saves_run_table_or_view(start: Launch, tmp_path: Path) -> None:
    def exported(name: str, *words: object) -> Path:
        assert start(ScriptedEngine(), *words, "--run", "--size", "1000x700", "--export", tmp_path / name) == 0
        return tmp_path / name

    assert "".join(STORY)[:9] in exported("new/run.html").read_text(encoding="utf-8")
    rows = json.loads(exported("tokens.json").read_text(encoding="utf-8"))
    assert [row["text"] for row in rows] == list(STORY)
    assert QImage(str(exported("memory.png", "--view", "memory"))).width() < 1000, "the view alone"


@pytest.mark.every(2)
@pytest.mark.parametrize(
    ("words", "name", "message"),
    [
        ([], "run.html", "There is no run to export. Add --run"),
        ([], "tokens.csv", "The view “Tokens” has no data to export yet."),
        (["--run", "--view", "tree"], "tree.json", "Use --view to choose one that has data: tokens, memory"),
        (["--run"], "full.json", "no space left on the disk. Free up space"),
        (["--run"], "full.html", "no space left on the disk. Free up space"),
    ],
)
def test_invalid_export_exits_with_error(
    start: Launch, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], name: str, message: str
) -> None:
    for suffix in ("json", "html"):
        (tmp_path / f"full.{suffix}").symlink_to("/dev/full")
    assert start(ScriptedEngine(), *words, "--export", tmp_path / name) == 1
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--model", "no-such-model"], "Unknown model “no-such-model”"),
        (["--strategy", "guessing"], "Unknown strategy “guessing”"),
        (["--strategy", "samplin"], "Did you mean “sampling”?"),
        (["--cache", "pocket"], "Unknown cache “pocket”"),
        (["--strategy", "greedy", "--param", "temperature=1"], "Greedy has no setting “temperature”"),
        (["--strategy", "sampling", "--param", "top_p=7"], "top_p must be at most 1"),
        (["--view", "inside-out"], "Unknown view “inside-out”. Available: tokens, chat"),
        (["--view", "tre"], "Did you mean “tree”?"),
        (["--strategy", "sampling", "--param", "tempratur=1"], "Did you mean “temperature”?"),
        (["--strategy", "sampling", "--param", "temperature=nan"], "temperature must be a finite number"),
        (["--strategy", "sampling", "--param", f"bad_words_ids={'[' * 100_000}"], "nested too deeply"),
        (["--size", "20x20"], "at least 900x600"),
        (["--preset", "Caerful"], "Unknown preset “Caerful”."),
    ],
)
def test_invalid_options_exit_with_error(
    start: Launch, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    assert start(ScriptedEngine(), *words, "--run", "--screenshot", tmp_path / "out.png") == 1
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out.png").exists()


@pytest.mark.every(4)
@pytest.mark.parametrize("content", ["missing", "folder", "binary", "latin", "/dev/zero", "/dev/null/x"])
@pytest.mark.parametrize("option", ["recorded", "--preset", "--media", "--adapter"])
def test_option_with_unreadable_file_exits_with_cause_and_remedy(
    start: Launch, tmp_path: Path, capsys: pytest.CaptureFixture[str], option: str, content: str
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "binary").write_bytes(bytes(range(256)) * 20)
    (tmp_path / "latin").write_bytes("Les élèves\n".encode("latin-1"))
    path = tmp_path / content if content.isalpha() else content
    words = [path] if option == "recorded" else [option, path]
    code = 1
    with suppress(SystemExit):  # refused by the parser
        code = start(ScriptedEngine(), *words, "--screenshot", tmp_path / "out.png")
    assert code == 1
    message = capsys.readouterr().err.splitlines()[-1]
    assert message.startswith("decodescope: ")
    assert re.search(r"[.!?”] [A-Z].*\.$", message), f"no cause or no remedy: {message}"
    assert not re.search(r"Traceback|Errno|codec|Error\b", message)


@pytest.mark.parametrize("settings", [{"temperature": "hot"}, {"top_p": 7}], ids=str)
def test_preset_with_invalid_values_is_rejected(
    start: Launch, tmp_path: Path, capsys: pytest.CaptureFixture[str], settings: dict[str, object]
) -> None:
    """A picture with other settings than the requested ones would be misleading."""
    (tmp_path / "odd.json").write_text(json.dumps({"do_sample": True, **settings}), encoding="utf-8")
    words = ["--preset", tmp_path / "odd.json", "--run", "--screenshot", tmp_path / "out.png"]
    assert start(ScriptedEngine(), *words) == 1
    assert "has invalid values" in capsys.readouterr().err
    assert not (tmp_path / "out.png").exists()


def test_failed_run_exits_with_error(start: Launch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    engine = ScriptedEngine(fail_at=3, error=NumericError("NaN at step 3.", "Load it in float32."))
    assert start(engine, "--run", "--screenshot", tmp_path / "out.png") == 1
    assert "NaN at step 3. Load it in float32." in capsys.readouterr().err


def test_unwritable_screenshot_exits_with_error(
    start: Launch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "out.png").symlink_to("/dev/full")
    assert start(ScriptedEngine(), "--screenshot", tmp_path / "out.png") == 1
    assert "could not be saved: no space left on the disk. Free up space" in capsys.readouterr().err


@pytest.mark.parametrize("way", [["--screenshot", "a.png"], ["--export", "a.html"]])
def test_output_options_use_temporary_config_folder(
    qapp: QApplication, monkeypatch: pytest.MonkeyPatch, way: list[str]
) -> None:
    folders: list[object] = []

    def build(folder: object, *_: object, **__: object) -> MainWindow:
        folders.append(folder)
        raise InterruptedError

    monkeypatch.setattr(program, "build_window", build)
    monkeypatch.setattr(program.signal, "signal", lambda *_: None)
    for arguments in (["--run", *way], []):
        with pytest.raises(InterruptedError):
            program.main(arguments)
    left, usual = folders
    assert left is not None
    assert usual is None


def test_unwritable_temporary_folder_exits_with_error(
    qapp: QApplication, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tempfile.tempdir", "/nowhere")
    monkeypatch.setattr(program.signal, "signal", lambda *_: None)
    assert program.main(["--screenshot", "a.png"]) == 1
    assert "No temporary files can be written" in capsys.readouterr().err


@pytest.mark.slow
def test_program_stays_open_until_window_is_closed(qtbot: QtBot, qapp: QApplication, config_dir: Path) -> None:
    engine = ScriptedEngine()
    window = build_window(config_dir, engine, assembled=False)
    qtbot.addWidget(window)

    async def scene() -> int:
        staying = asyncio.ensure_future(launch.start(window, parse(["--run", "--prompt", "Hello"])))
        while not window.is_assembled:
            await asyncio.sleep(0)
        outcome = await launch.next_value(window.session.finished)
        assert outcome.kind == "completed"  # type: ignore[attr-defined]
        window.close()
        return await staying

    with qasync.QEventLoop(qapp, set_running_loop=False) as loop:
        assert loop.run_until_complete(scene()) == 0
    asyncio.set_event_loop(None)
    assert window.session.run.text == "".join(STORY)


def test_window_closed_at_once_is_not_assembled(qtbot: QtBot, qapp: QApplication, config_dir: Path) -> None:
    window = build_window(config_dir, ScriptedEngine(), assembled=False)
    qtbot.addWidget(window)
    window.close()
    with qasync.QEventLoop(qapp, set_running_loop=False) as loop:
        assert loop.run_until_complete(launch.start(window, parse([]))) == 0
    asyncio.set_event_loop(None)
    assert not window.is_assembled


def test_sound_is_sent_to_audio_model_and_rejected_by_others(
    start: Launch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lamp, broken = resources.path("media", "office-lamp.flac"), tmp_path / "broken.wav"
    engine = MediaEngine(takes=Modalities(sound=True, needs=True, max_count=1))
    broken.write_bytes(b"RIFF")
    to = ("--run", "--screenshot", tmp_path / "out.png")
    assert start(engine, "--model", "listener", "--media", lamp, *to) == 0
    (request,) = engine.runs
    assert (request.prompt, request.media) == ("", (str(lamp),))
    for model, path, reported in (
        ("storyteller", lamp, "storyteller accepts only text"),
        ("describer", lamp, "describer accepts images but no audio"),
        ("listener", broken, "broken.wav"),
        ("listener", tmp_path / "none.wav", "none.wav"),
    ):
        assert start(engine, "--model", model, "--media", path, *to) != 0
        assert reported in capsys.readouterr().err
    assert len(engine.runs) == 1


@pytest.mark.parametrize("name", ["Predictable", "Careful"])
def test_bundled_preset_is_found_by_its_present_and_its_former_name(qtbot: QtBot, config_dir: Path, name: str) -> None:
    window = open_window(qtbot, config_dir)
    launch.apply_options(window, parse(["--preset", name]))
    assert window.parts.setup.parameters.changed_values() == {"temperature": 0.7, "top_p": 0.9}
