"""A demo is rendered off screen: the prompt first, at least one frame per step, and a pause at the end."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from PIL import Image
from PySide6.QtCore import QObject, QSize
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from decodescope.app.features.presentation import store
from decodescope.app.features.presentation.controller.demo_film import (
    FIRST_MS,
    LAST_MS,
    FilmJob,
    FilmSettings,
    OffscreenStage,
    render_film,
)
from decodescope.app.features.presentation.panel.demo_dialog import DemoDialog, DemoOptions
from decodescope.app.features.presentation.store import FilmError
from decodescope.app.start.cli import parse
from decodescope.app.theme.theme import theme_for
from tests.disks import full_disk
from tests.ui.layout import faults, settle
from tests.ui.scripted import make_run, story
from tests.ui.windows import WAIT_MS, find, open_window, run

SIZE = QSize(640, 360)


def test_frames_are_prompt_steps_and_end(qtbot: QtBot) -> None:
    scene = OffscreenStage("tokens", SIZE, theme_for("light"))
    qtbot.addWidget(scene)
    held = make_run(story(5), finished=True)
    frames = [(held.cursor, frame) for frame in scene.frames(held, pace=1.0, animated=True)]
    assert (frames[0][0], frames[0][1].milliseconds) == (0, FIRST_MS)
    assert (frames[-1][0], frames[-1][1].milliseconds) == (5, LAST_MS)
    for place in range(1, 5):
        assert sum(frame.milliseconds for at, frame in frames if at == place) == 1000
        assert len({frame.pixels for at, frame in frames if at == place}) > 2  # it is seen happening
    assert {(frame.width, frame.height) for _at, frame in frames} == {(640, 360)}
    still = list(scene.frames(held, pace=1.0, animated=False))
    assert len(still) == 6
    assert still[-1].pixels == frames[-1][1].pixels


@pytest.mark.parametrize("view", ["tree", "speculation", "memory"])
def test_film_of_other_views_has_frames(qtbot: QtBot, view: str) -> None:
    scene = OffscreenStage(view, SIZE, theme_for("dark"))
    qtbot.addWidget(scene)
    frames = list(scene.frames(make_run(story(3), finished=True), pace=8.0, animated=True))
    assert len(frames) == 4
    assert len({frame.pixels for frame in frames}) > 1


def test_render_film_writes_file_and_keeps_cursor(qtbot: QtBot, tmp_path: Path) -> None:
    held = make_run(story(4), finished=True)
    held.move_cursor(2)
    path = tmp_path / "new" / "demo.apng"
    order = FilmSettings(path, "tokens", SIZE, theme_for("dark"), 4.0, animated=False)
    assert list(render_film(held, order)) == [0, 1, 2, 3, 4]
    assert held.cursor == 2
    with Image.open(path) as read:
        assert read.size == (640, 360)


def test_cancelled_film_leaves_no_files(qtbot: QtBot, tmp_path: Path) -> None:
    order = FilmSettings(tmp_path / "demo.gif", "tokens", SIZE, theme_for("dark"), 4.0, animated=False)
    steps = render_film(make_run(story(4), finished=True), order)
    next(steps)
    assert list(tmp_path.iterdir()) != []
    steps.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="files there have no limit")
@pytest.mark.parametrize("room", [0, 2000])
@pytest.mark.parametrize("ending", ["apng", "gif", "png"])
def test_full_disk_keeps_existing_file(qtbot: QtBot, tmp_path: Path, ending: str, room: int) -> None:
    (tmp_path / "demo.apng").write_text("what stood there")
    order = FilmSettings(tmp_path / f"demo.{ending}", "tokens", SIZE, theme_for("dark"), 4.0, animated=False)
    with full_disk(room), pytest.raises(OSError, match="File too large"):
        list(render_film(make_run(story(4), finished=True), order))
    assert [path.read_text() for path in tmp_path.iterdir()] == ["what stood there"]


def test_film_error_is_reported(qtbot: QtBot, tmp_path: Path) -> None:
    order = FilmSettings(tmp_path / "demo.gif", "tokens", SIZE, theme_for("dark"), 4.0, animated=False)
    with pytest.raises(FilmError, match="no run"):
        next(render_film(make_run(), order))
    (tmp_path / "demo.gif").mkdir()
    filming = FilmJob(make_run(story(2), finished=True), order, window := QObject())
    with qtbot.waitSignal(filming.ended, timeout=WAIT_MS) as ended:
        pass
    assert "demo.gif could not be saved" in ended.args[0]
    window.deleteLater()


def test_window_records_film_of_shown_run(qtbot: QtBot, config_dir: Path, tmp_path: Path) -> None:
    window = open_window(qtbot, config_dir)
    demos = window.parts.demos
    demos.open_dialog()
    assert "Run something first" in window.parts.centre.notice_banner.accessibleDescription()
    run(qtbot, window)
    demos.open_dialog()
    dialog = find(window, DemoDialog, "demoDialog")
    settle(dialog)
    assert faults(dialog) == []
    demo = dialog.options
    assert demo.kind == "apng"
    dialog.close()
    path = tmp_path / "demo.gif"
    small = DemoOptions("gif", 25.0, QSize(320, 180), "dark")
    with qtbot.waitSignal(demos.recorder.saved, timeout=3 * WAIT_MS):
        demos.recorder.record(small, str(path))
        assert demos.recorder.progress is not None
    assert path.exists()
    assert demos.recorder.film_job is None
    demos.recorder.record(small, str(tmp_path / "other.gif"))
    assert demos.recorder.progress is not None
    cancel = demos.recorder.progress.findChild(QPushButton)
    assert isinstance(cancel, QPushButton)
    cancel.click()
    assert demos.recorder.film_job is None
    assert [part.name for part in tmp_path.iterdir() if "other" in part.name] == []


def test_webm_without_ffmpeg_disables_save_button(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store.shutil, "which", lambda name: None)
    dialog = DemoDialog(40)
    qtbot.addWidget(dialog)
    dialog.kind.setCurrentIndex(dialog.kind.findData("webm"))
    assert not dialog.save.isEnabled()
    assert "ffmpeg" in dialog.message.text()
    dialog.kind.setCurrentIndex(dialog.kind.findData("png"))
    assert dialog.save.isEnabled()
    assert "folder" in dialog.message.text()


def test_command_line_demo_options_are_parsed(capsys: pytest.CaptureFixture[str]) -> None:
    options = parse(["--run", "--record-demo", "x.gif", "--demo-speed", "4"])
    assert (options.record_demo, options.demo_speed) == (Path("x.gif"), 4.0)
    assert options.writes_files
    for bad in (["--record-demo", "x.mp4"], ["--demo-speed", "0"]):
        with pytest.raises(SystemExit):
            parse(bad)
    assert ".apng" in capsys.readouterr().err
