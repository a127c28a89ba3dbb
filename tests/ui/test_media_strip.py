"""The media of a run above its text: each file with the positions that the model reads."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QPoint
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from decodescope.app.views.tokens.token_strips import MediaStrip
from decodescope.app.window.main_window import MainWindow
from decodescope.core import Modalities
from tests.media_files import picture, sound
from tests.ui.layout import faults, settle
from tests.ui.media_engine import FRAMES, GRID, MediaEngine
from tests.ui.windows import find, open_window, run

IMAGES, AUDIO = Modalities(picture=True, max_count=None), Modalities(sound=True, needs=True, max_count=1)


def shown(qtbot: QtBot, folder: Path, path: str, takes: Modalities = IMAGES, inside: bool = False) -> MainWindow:
    """A window that has run with that file; the file has been read for the view."""
    window = open_window(qtbot, folder, MediaEngine(takes=takes, inside=inside))
    qtbot.waitUntil(lambda: window.parts.session.model is not None)
    window.parts.media.add([path])
    qtbot.waitUntil(lambda: window.parts.services.media.get(path).is_read)
    run(qtbot, window)
    settle(window)
    return window


def strip(window: MainWindow) -> MediaStrip:
    return find(window, MediaStrip, "mediaStrip")


def test_a_picture_is_shown_with_its_patches(qtbot: QtBot, config_dir: Path, tmp_path: Path) -> None:
    window = shown(qtbot, config_dir, picture(tmp_path / "red.png"))
    (card,) = strip(window).cards
    assert card.name.text() == "red.png · picture 4 × 4 patches"
    assert card.description.text() == "It is read before the prompt's first token, as 16 positions."
    assert (card.preview.cells.rows, card.preview.cells.columns) == (GRID, GRID)
    middle = card.preview.cell_rect(6).center().toPoint()
    QTest.mouseMove(card.preview, middle)
    qtbot.waitUntil(lambda: card.position_label.text() == "row 2, column 3 of red.png")
    QTest.mouseMove(window, QPoint(1, 1))
    card.preview.leaveEvent(None)
    assert card.position_label.text() == ""


def test_sound_is_shown_with_positions_and_padding(qtbot: QtBot, config_dir: Path, tmp_path: Path) -> None:
    window = shown(qtbot, config_dir, sound(tmp_path / "tone.wav"), AUDIO)
    (card,) = strip(window).cards
    assert card.name.text() == "tone.wav · sound 0.0–1.0 s"
    assert "An encoder turns it into 50 positions" in card.description.text()
    assert (card.preview.cells.columns, card.preview.cells.file_fraction) == (
        FRAMES,
        pytest.approx(0.25),
    )  # one second of four
    QTest.mouseMove(card.preview, card.preview.cell_rect(2).center().toPoint())
    qtbot.waitUntil(lambda: card.position_label.text() == "0.16–0.24 s of tone.wav")


def test_strip_of_long_recording_draws_only_what_is_read(qtbot: QtBot, config_dir: Path, tmp_path: Path) -> None:
    """Sixteen seconds for a model that reads four: a tone that grows from silence has a quarter of its height there."""
    window = shown(qtbot, config_dir, sound(tmp_path / "long.wav", 16.0), AUDIO)
    (card,) = strip(window).cards
    assert card.name.text() == "long.wav · sound 0.0–4.0 s of 16.0 s"
    assert "Only its first 4.0 s are read" in card.description.text()
    assert card.preview.cells.file_fraction == 1.0
    whole = window.parts.services.media.get(str(tmp_path / "long.wav")).peaks
    assert max(high for _, high in card.preview._peaks) == pytest.approx(max(high for _, high in whole) / 4, rel=0.1)
    QTest.mouseMove(card.preview, card.preview.cell_rect(FRAMES - 1).center().toPoint())
    qtbot.waitUntil(lambda: card.position_label.text().endswith("4.00 s of long.wav"))


def test_picture_tokens_are_shown_as_one_word(qtbot: QtBot, config_dir: Path, tmp_path: Path) -> None:
    window = shown(qtbot, config_dir, picture(tmp_path / "red.png"), inside=True)
    view = window.parts.centre.columns[0].current_view
    text = view.area.page.shown_column().text.text
    assert text.startswith("⟨picture 4 × 4 patches⟩")
    assert "<image>" not in text
    assert view.area.page.shown_column().text.prompt_pieces == len(window.session.run.prompt)  # each keeps its place


def test_strip_is_hidden_without_media_and_reports_missing_file(qtbot: QtBot, config_dir: Path, tmp_path: Path) -> None:
    path = tmp_path / "red.png"
    window = shown(qtbot, config_dir, picture(path))
    past = window.session.run
    window.parts.media.set_paths([])
    run(qtbot, window)
    assert strip(window).isHidden()
    path.unlink()
    window.parts.services.media.reload(str(path))
    qtbot.waitUntil(lambda: window.parts.services.media.get(str(path)).error is not None)
    window.session.show(past)
    (card,) = strip(window).cards
    assert "red.png" in card.position_label.text()
    assert card.preview.isHidden()


@pytest.mark.parametrize(("size", "scale"), [((900, 600), 1.5), ((1280, 800), 2.0)])
def test_media_strip_is_not_clipped(
    qtbot: QtBot, config_dir: Path, tmp_path: Path, size: tuple[int, int], scale: float
) -> None:
    window = shown(qtbot, config_dir, sound(tmp_path / "tone.wav"), AUDIO)
    window.resize(*size)
    window.parts.appearance.set_font_scale(scale)
    settle(window)
    assert faults(strip(window)) == []
