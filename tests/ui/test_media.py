"""Sounds and pictures in the prompt: how they are added, their cards, and the model's input."""

from __future__ import annotations

import errno
import sys
import types
import wave
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PySide6.QtCore import QMimeData, Qt, QUrl
from PySide6.QtGui import QImage
from pytestqt.qtbot import QtBot

from decodescope.app.features.media.panel.media_bar import MediaBar
from decodescope.app.features.media.session.media_reading import peaks_of
from decodescope.app.window.main_window import MainWindow
from decodescope.core import Modalities
from tests.media_files import picture, sound
from tests.ui.layout import faults, remaining, settle
from tests.ui.media_engine import MediaEngine
from tests.ui.windows import open_window, run

IMAGES, AUDIO = Modalities(picture=True, max_count=None), Modalities(sound=True, needs=True, max_count=1)


def media_window(qtbot: QtBot, folder: Path, takes: Modalities = IMAGES) -> MainWindow:
    """A window whose model is loaded."""
    window = open_window(qtbot, folder, MediaEngine(takes=takes))
    qtbot.waitUntil(lambda: window.parts.session.model is not None)
    return window


def add_media(qtbot: QtBot, window: MainWindow, *paths: str) -> None:
    """Files go with the prompt, and have been read."""
    window.parts.media.add(paths)
    qtbot.waitUntil(lambda: all(window.parts.services.media.get(path).is_read for path in media_paths(window)))


def media_paths(window: MainWindow) -> tuple[str, ...]:
    """The files that stand above the prompt."""
    return tuple(window.parts.settings.choices.media)


def cards(window: MainWindow) -> list[Any]:
    return list(window.findChildren(MediaBar, "mediaBar")[0].cards)


def test_supported_picture_is_sent_and_unsupported_sound_shows_reason(
    qtbot: QtBot, config_dir: Path, tmp_path: Path
) -> None:
    window = media_window(qtbot, config_dir)
    files = picture(tmp_path / "red.png"), sound(tmp_path / "tone.wav")
    add_media(qtbot, window, *files)
    seen, received = cards(window)
    assert seen.facts.text() == "24 × 16 pixels"
    assert seen.accessibleName() == "image red.png, 24 × 16 pixels"
    assert received.facts.text() == "1.0 s · 8,000 Hz"
    assert received.reason.text() == "storyteller accepts images but no audio. The file is not sent."
    assert not received.thumbnail.isEnabled()
    run(qtbot, window)
    assert window.session.run.request.media == (files[0],)
    qtbot.keyClick(seen, Qt.Key.Key_Delete)
    assert media_paths(window) == (files[1],)


def test_double_click_on_remove_removes_one_picture(qtbot: QtBot, config_dir: Path, tmp_path: Path) -> None:
    """The second one comes before the card is deleted."""
    window = media_window(qtbot, config_dir)
    window.parts.media.add([picture(tmp_path / "red.png")])
    qtbot.waitUntil(lambda: len(cards(window)) == 1)
    (card,) = cards(window)
    card.remove.click()
    card.remove.click()
    assert not cards(window)


def test_damaged_picture_shows_error_and_keeps_others(qtbot: QtBot, config_dir: Path, tmp_path: Path) -> None:
    window = media_window(qtbot, config_dir)
    first, broken = picture(tmp_path / "red.png"), tmp_path / "broken.png"
    broken.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(40))
    add_media(qtbot, window, first, str(broken))
    qtbot.waitUntil(lambda: media_paths(window) == (first,))
    error = window.parts.messages.error
    assert error is not None
    assert error.cause == "broken.png cannot be shown because it is damaged or incomplete."
    assert error.remedy
    assert window.parts.setup.prompt.editor.toPlainText() != ""


def test_audio_model_requires_exactly_one_sound(qtbot: QtBot, config_dir: Path, tmp_path: Path) -> None:
    window = media_window(qtbot, config_dir, AUDIO)
    bar = window.findChildren(MediaBar, "mediaBar")[0]
    assert bar.required_label.text() == "storyteller transcribes audio. Add an audio file."
    assert [kind for kind, button in bar.buttons.items() if button.isVisible()] == ["sound"]
    bar.buttons["sound"].opened.emit()
    assert not bar.buttons["sound"].record.isEnabled()
    assert "pip install sounddevice" in bar.buttons["sound"].record.toolTip()
    window.parts.runs.run()
    assert window.parts.messages.error is not None
    assert window.session.run is None
    for name in ("one.wav", "two.wav"):
        add_media(qtbot, window, sound(tmp_path / name))
    assert [Path(path).name for path in media_paths(window)] == ["two.wav"]
    assert not bar.required_label.isVisible()


def test_paste_adds_pictures_and_files_as_media_and_text_as_text(
    qtbot: QtBot, config_dir: Path, tmp_path: Path
) -> None:
    window = media_window(qtbot, config_dir)
    editor = window.parts.setup.prompt.editor
    editor.clear()
    for make in (_image, lambda data: data.setUrls([QUrl.fromLocalFile(picture(tmp_path / "a.png"))]), _words):
        data = QMimeData()
        make(data)
        assert editor.canInsertFromMimeData(data)
        editor.insertFromMimeData(data)
    assert editor.toPlainText() == "words"
    pasted, dropped = media_paths(window)
    assert Path(pasted).parent.name == "media"
    assert QImage(pasted).size() == QImage(5, 5, QImage.Format.Format_RGB32).size()
    assert dropped == str(tmp_path / "a.png")


def _image(data: QMimeData) -> None:
    image = QImage(5, 5, QImage.Format.Format_RGB32)
    image.fill(Qt.GlobalColor.green)
    data.setImageData(image)


def _words(data: QMimeData) -> None:
    """As an office program copies them: with a picture of them."""
    data.setText("words")
    data.setImageData(QImage(5, 5, QImage.Format.Format_RGB32))


def test_media_is_restored_and_missing_file_shows_reason(qtbot: QtBot, config_dir: Path, tmp_path: Path) -> None:
    window = media_window(qtbot, config_dir)
    path = picture(tmp_path / "red.png")
    add_media(qtbot, window, path)
    window.close()
    Path(path).unlink()
    again = media_window(qtbot, config_dir)
    qtbot.waitUntil(lambda: again.parts.services.media.get(path).is_read)
    assert media_paths(again) == (path,)
    assert "does not exist" in cards(again)[0].reason.text()
    assert again.parts.messages.error is None
    assert again.parts.media.problems


class FakeSoundDevice:
    """Stream as of sounddevice; tests call its callback."""

    def __init__(self, rate: int, callback: Callable[..., None], **_kind: object) -> None:
        self.callback, self.is_open = callback, False
        type(self).last = self

    def start(self) -> None:
        self.is_open = True

    def close(self) -> None:
        self.is_open = False


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> type[FakeSoundDevice]:
    library = types.ModuleType("sounddevice")
    library.__spec__ = types.SimpleNamespace(name="sounddevice")
    library.RawInputStream = library.OutputStream = FakeSoundDevice
    monkeypatch.setitem(sys.modules, "sounddevice", library)
    return FakeSoundDevice


def test_recorded_sound_is_added_and_can_be_played(
    qtbot: QtBot, config_dir: Path, device: type[FakeSoundDevice]
) -> None:
    window = media_window(qtbot, config_dir, AUDIO)
    bar = window.findChildren(MediaBar, "mediaBar")[0]
    tools = window.parts.media_bar.ensure_bar()[1]
    dialog = tools.record()
    device.last.callback(np.full(8000, 16384, np.int16).tobytes(), 8000, None, None)
    qtbot.waitUntil(lambda: dialog.meter.accessibleDescription() == "50 %")
    settle(dialog)
    assert faults(dialog) == []
    dialog.stop.click()
    qtbot.waitUntil(lambda: bool(bar.cards) and bar.cards[0].medium.is_read)
    assert bar.cards[0].facts.text() == "500 ms · 16,000 Hz"
    assert not device.last.is_open
    with qtbot.waitSignal(bar.playRequested):
        bar.cards[0].play.click()
    qtbot.waitUntil(lambda: device.last.is_open)
    out = np.empty((24000, 1), np.float32)
    device.last.callback(out, 24000, None, None)
    assert abs(float(out[9000, 0]) - 0.5) < 0.01
    qtbot.waitUntil(lambda: not device.last.is_open)
    assert not bar.cards[0].play.isChecked()


def test_full_disk_while_recording_keeps_sound_and_shows_notice(
    qtbot: QtBot, config_dir: Path, device: type[FakeSoundDevice], monkeypatch: pytest.MonkeyPatch
) -> None:
    window = media_window(qtbot, config_dir, AUDIO)
    tools = window.parts.media_bar.ensure_bar()[1]
    dialog = tools.record()
    device.last.callback(np.full(8000, 16384, np.int16).tobytes(), 8000, None, None)
    qtbot.waitUntil(lambda: dialog.meter.accessibleDescription() == "50 %")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(wave.Wave_write, "writeframes", full)
    device.last.callback(np.full(8000, 16384, np.int16).tobytes(), 8000, None, None)
    banner = window.parts.centre.error_banner
    qtbot.waitUntil(banner.isVisible)
    assert "cannot be written: no space left on the disk. Free space" in banner.accessibleDescription()
    (stored,) = media_paths(window)
    with wave.open(stored, "rb") as file:
        assert file.getnframes() == 8000
    assert not device.last.is_open


@pytest.mark.parametrize("scale", [1.0, 2.0])
def test_media_cards_are_not_clipped(qtbot: QtBot, config_dir: Path, tmp_path: Path, scale: float) -> None:
    window = media_window(qtbot, config_dir, AUDIO)
    window.parts.appearance.set_font_scale(scale)
    window.resize(900, 600)
    add_media(qtbot, window, picture(tmp_path / "a picture with a very long name that goes on.png"))
    assert "\n".join(remaining(window.parts.setup)) == ""


def test_a_waveform_keeps_its_peaks() -> None:
    samples = np.zeros(100_000, np.float32)
    samples[54_321], samples[99_999] = 0.5, -1.0
    peaks = peaks_of(samples)
    assert max(high for _low, high in peaks) == 0.5
    assert peaks[-1][0] == -1.0
    assert peaks_of(samples[:3]) == ((0.0, 0.0),) * 3
