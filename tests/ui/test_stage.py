"""Presentation: one view fills the window in large type at its own pace; leaving restores everything."""

from __future__ import annotations

import re
import threading
from itertools import product
from pathlib import Path
from typing import NamedTuple

import pytest
from PySide6.QtCore import QByteArray, QSize, Qt
from PySide6.QtGui import QFontInfo
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QLabel, QWidget
from pytestqt.qtbot import QtBot

from decodescope.app.features.presentation.controller.presenter import PACES
from decodescope.app.features.presentation.panel.presenter_window import PresenterWindow
from decodescope.app.features.tours.state import find_tour as find_tour
from decodescope.app.theme.theme import MIN_FONT_PIXELS, Theme, stage_theme, theme_for
from decodescope.app.widgets.overlays import DIM_OPACITY
from decodescope.app.widgets.tree_canvas import TreeCanvas
from decodescope.app.widgets.widget_pictures import save_picture
from decodescope.app.window.main_window import MainWindow
from decodescope.app.window.panel_layout import audience_screen
from decodescope.core import explain_token
from tests.ui.beams import beam_run, beam_steps
from tests.ui.fake_engine import STORY, ScriptedEngine
from tests.ui.layout import faults, settle
from tests.ui.windows import WAIT_MS, open_window, run

SIZE = QSize(1280, 720)


class WindowArrangement(NamedTuple):
    """All that a person sees of the window's arrangement."""

    shown: dict[str, bool]
    theme: Theme | None
    view: str
    columns: int
    place: QByteArray
    cursor: tuple[int, bool]
    kept_scale: float
    focus: QWidget | None


def state(window: MainWindow) -> WindowArrangement:
    parts, held = window.parts, window.session.run
    panels = (parts.toolbar, parts.setup, parts.inspector, parts.timeline, parts.status, parts.centre.columns[0].header)
    return WindowArrangement(
        {type(panel).__name__: panel.isVisible() for panel in panels},
        parts.appearance.theme,
        parts.centre.columns[0].current_name,
        len(parts.centre.columns),
        window.saveGeometry(),
        (held.cursor, held.is_following) if held is not None else (0, True),
        parts.settings.appearance.font_scale,
        window.focusWidget(),
    )


@pytest.fixture
def window(qtbot: QtBot, config_dir: Path) -> MainWindow:
    """With a run in it that has ended."""
    window = open_window(qtbot, config_dir)
    window.resize(SIZE)
    run(qtbot, window)
    return window


def press(window: MainWindow, key: Qt.Key, modifier: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier) -> None:
    """As from the keyboard: to whatever has the focus."""
    QTest.keyClick(window.focusWidget() or window, key, modifier)
    settle(window)


def smallest_letters(window: MainWindow, folder: Path) -> float:
    """Pixels of the smallest letters that are really painted, zoomed trees too: read from a drawing of the window."""
    path = folder / "stage.svg"
    save_picture(window, path)
    sizes, scale = [], 1.0
    for part in re.finditer(
        r'<g [^>]*?transform="matrix\(([-\d.e]+),[^>]*>|<text [^>]*?font-size="([\d.]+)', path.read_text()
    ):
        if part[1] is not None:
            scale = abs(float(part[1]))
        else:
            sizes.append(float(part[2]) * scale)
    assert sizes, "nothing is written"
    return min(sizes)


def test_every_view_on_stage_has_large_font_and_is_not_clipped(window: MainWindow, tmp_path: Path) -> None:
    press(window, Qt.Key.Key_F5)
    window.resize(SIZE)
    for theme, name in product(("light", "dark"), window.parts.centre.columns[0].available_names):
        if theme != window.parts.settings.appearance.theme:
            window.parts.appearance.set_theme(theme)
        window.parts.centre.show_view(name)
        window.parts.presentation.presenter.update_stage()
        settle(window)
        assert "\n".join(faults(window)) == "", name
        labels = [part for part in window.findChildren(QWidget) if isinstance(part, QLabel | QAbstractButton)]
        small = [
            part.text() for part in labels if part.isVisible() and QFontInfo(part.font()).pixelSize() < MIN_FONT_PIXELS
        ]
        assert small == [], name
        assert smallest_letters(window, tmp_path) >= MIN_FONT_PIXELS - 0.01, name


def test_large_tree_on_stage_stays_readable(window: MainWindow, tmp_path: Path) -> None:
    window.session.show(beam_run(beam_steps(12)))
    window.parts.centre.show_view("tree")
    press(window, Qt.Key.Key_F5)
    canvas = window.parts.centre.columns[0].current_view.findChild(TreeCanvas)
    assert canvas is not None
    for place in (0, 1, 6, 12):
        window.parts.presentation.presenter.go_to(place)
        settle(window)
        assert canvas.navigation.zoom >= 1.0
        assert smallest_letters(window, tmp_path) >= MIN_FONT_PIXELS - 0.01
        assert place == 0 or not window.parts.presentation.presenter.spotlight.target_rect().isEmpty()


@pytest.mark.parametrize("by_hand", [False, True])
def test_leaving_stage_restores_tree_camera(window: MainWindow, by_hand: bool) -> None:
    window.session.show(beam_run(beam_steps(12)))
    window.parts.centre.show_view("tree")
    canvas = window.parts.centre.columns[0].current_view.findChild(TreeCanvas)
    assert canvas is not None
    settle(window)
    if by_hand:
        canvas.navigation.set_follow(False)
        canvas.navigation.set_zoom(0.5)
        canvas.navigation.pan(40, 20)
    camera = canvas.canvas_state.camera
    before = (camera.x, camera.y, camera.zoom, canvas.navigation.follow)
    assert camera.zoom < 1.0
    press(window, Qt.Key.Key_F5)
    window.parts.presentation.presenter.go_to(5)
    press(window, Qt.Key.Key_Escape)
    assert (camera.zoom, canvas.navigation.follow) == before[2:]
    assert (camera.x, camera.y) == pytest.approx(before[:2], abs=2 / camera.zoom)  # the table next to it may be rounded


def test_leaving_stage_restores_window_state(qtbot: QtBot, window: MainWindow) -> None:
    parts = window.parts
    parts.appearance.set_font_scale(1.2)
    parts.layout.toggle_timeline()
    parts.centre.set_split(True)
    window.session.move_cursor(7)
    window.session.select_token(3)
    settle(window)
    before = state(window)
    press(window, Qt.Key.Key_F5)
    assert not any(state(window).shown.values())
    assert state(window).theme != before.theme
    press(window, Qt.Key.Key_PageDown)
    press(window, Qt.Key.Key_PageDown, Qt.KeyboardModifier.ControlModifier)
    assert window.session.run is not None
    assert window.session.run.cursor == 8
    assert parts.centre.columns[0].current_name != before.view
    parts.layout.show_inspector()
    assert not parts.inspector.isVisible()
    press(window, Qt.Key.Key_Escape)
    assert not parts.presentation.is_on
    assert state(window) == before


def test_panel_opened_on_stage_is_open_afterwards(window: MainWindow) -> None:
    parts = window.parts
    parts.layout.toggle_inspector()
    parts.presentation.enter()
    parts.layout.show_inspector()
    assert not parts.inspector.isVisible()
    parts.presentation.leave()
    assert parts.inspector.isVisible()


def test_closing_on_stage_saves_normal_layout(window: MainWindow) -> None:
    stored = window.parts.settings.layout
    window.parts.presentation.enter()
    window.parts.centre.show_view("memory")
    window.close()
    assert (stored.setup, stored.inspector, stored.timeline, stored.view) == (True, True, True, "tokens")


def test_keys_and_presenter_remote_step_and_play(qtbot: QtBot, window: MainWindow) -> None:
    held, stage = window.session.run, window.parts.presentation
    assert held is not None
    press(window, Qt.Key.Key_F5)
    press(window, Qt.Key.Key_Home)
    assert held.cursor == 0
    for key, place in (
        (Qt.Key.Key_PageDown, 1), (Qt.Key.Key_Right, 2), (Qt.Key.Key_PageDown, 3), (Qt.Key.Key_Left, 2),
        (Qt.Key.Key_PageUp, 1), (Qt.Key.Key_End, len(STORY)), (Qt.Key.Key_PageDown, len(STORY)),
    ):  # fmt: skip
        press(window, key)
        assert held.cursor == place
    while stage.presenter.playback.pace != PACES[-1]:
        press(window, Qt.Key.Key_Plus)
    press(window, Qt.Key.Key_Plus)
    assert stage.presenter.playback.pace == PACES[-1]
    press(window, Qt.Key.Key_Space)
    assert stage.presenter.playback.is_playing
    assert held.cursor < len(STORY)
    with qtbot.waitSignal(window.session.cursorMoved, timeout=WAIT_MS):
        pass
    press(window, Qt.Key.Key_Space)
    assert not stage.presenter.playback.is_playing
    assert held.cursor > 0


def test_stage_caption_explains_current_token(window: MainWindow) -> None:
    held, stage = window.session.run, window.parts.presentation
    assert held is not None
    stage.enter()
    stage.presenter.go_to(5)
    stage.presenter.update_stage()
    caption = stage.presenter.caption
    assert caption.sentence.text() == explain_token(held.tokens[4])
    assert held.tokens[4].piece.strip() in caption.title.text()
    assert f"5 / {len(STORY)}" in caption.progress.text()
    lit = stage.presenter.spotlight.target_rect()
    view = window.parts.centre.columns[0].view("tokens")
    assert lit == view.spotlight_rect()
    assert not lit.isEmpty()


def test_live_run_on_stage_is_shown_slower_than_generated(qtbot: QtBot, config_dir: Path) -> None:
    go = threading.Event()
    window = open_window(qtbot, config_dir, ScriptedEngine(hold=go))
    window.parts.presentation.enter()
    assert "Space" in window.parts.presentation.presenter.caption.sentence.text()
    with qtbot.waitSignal(window.session.finished, timeout=WAIT_MS):
        press(window, Qt.Key.Key_Space)
        go.set()
    held = window.session.run
    assert held is not None
    assert held.length == len(STORY)
    assert held.cursor < held.length
    assert window.parts.presentation.presenter.playback.is_playing
    window.parts.presentation.leave()
    assert held.cursor == held.length


def test_dimmed_text_on_stage_stays_readable() -> None:
    for name in ("light", "dark"):
        theme = stage_theme(theme_for(name), SIZE)
        for words in ("text", "muted"):
            assert contrast(dimmed(theme, words), theme.window) >= 4.5, (name, words)


def dimmed(theme: Theme, name: str) -> str:
    over, under = theme.color("window"), theme.color(name)
    pairs = ((over.red(), under.red()), (over.green(), under.green()), (over.blue(), under.blue()))
    return "#" + "".join(f"{round(a * DIM_OPACITY + b * (1 - DIM_OPACITY)):02x}" for a, b in pairs)


def contrast(one: str, other: str) -> float:
    """By WCAG 2.2."""
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def luminance(colour: str) -> float:
    shares = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (s / 12.92 if s <= 0.04045 else ((s + 0.055) / 1.055) ** 2.4 for s in shares)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_presenter_window_shows_current_and_next_step(qtbot: QtBot, window: MainWindow) -> None:
    held, stage = window.session.run, window.parts.presentation
    assert held is not None
    stage.step_controls.set_notes("Ask the hall.")
    press(window, Qt.Key.Key_F5)
    stage.presenter.go_to(9)
    press(window, Qt.Key.Key_P)
    page = window.findChild(PresenterWindow, "presenterWindow")
    assert page is not None
    assert page.isWindow()
    assert page.isVisible()
    settle(page)
    assert page.reason.text() == explain_token(held.tokens[8])
    assert page.notes.text() == "Ask the hall."
    assert page.next_step.text().endswith(explain_token(held.tokens[9]))
    assert "\n".join(faults(page)) == ""
    page.stepped.emit(1)
    assert held.cursor == 10
    page.play.click()
    assert stage.presenter.playback.is_playing
    assert page.play.text() == "Pause"
    QTest.keyClick(page, Qt.Key.Key_PageUp)
    assert held.cursor == 9
    QTest.keyClick(page, Qt.Key.Key_Escape)
    assert not stage.is_on
    assert not page.isVisible()


def test_audience_screen_is_not_presenter_screen() -> None:
    assert audience_screen(["desk", "projector", "wall"], "desk") == "projector"
    assert audience_screen(["projector", "desk"], "desk") == "projector"
    assert audience_screen(["desk"], "desk") is None


def test_tour_on_stage_shows_notes_in_presenter_window(qtbot: QtBot, window: MainWindow) -> None:
    player, stage = window.parts.tours.player, window.parts.presentation
    with qtbot.waitSignal(player.stepShown, timeout=WAIT_MS):
        player.play(find_tour("likeliest"))
    press(window, Qt.Key.Key_F5)
    assert stage.is_on
    caption = stage.presenter.caption
    assert not caption.isVisible()
    stage.open_page()
    assert player.step is not None
    assert stage.presenter_page.page.notes.text() == player.step.notes
    with qtbot.waitSignal(player.stepShown, timeout=WAIT_MS):
        press(window, Qt.Key.Key_PageDown)
    assert player.step_index == 1
    assert stage.presenter_page.page.notes.text() == player.step.notes
    settle(window)
    assert "\n".join(faults(window)) == ""
    player.leave()
    stage.presenter.update_stage()
    assert caption.isVisible()
    assert stage.step_controls.notes == ""
