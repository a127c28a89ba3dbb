"""Tours in the window, over the real core and the bundled models: played, walked, left; and what they point at."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app import build_window
from app.control.tours.player import TourPlayer
from app.session.engine import CoreEngine
from app.state.tours import find
from app.window.main_window import MainWindow
from tests.ui.layout import faults, settle

WAIT_MS = 60_000


@pytest.fixture(scope="module")
def engine() -> CoreEngine:
    """One for all windows: the model is loaded once."""
    return CoreEngine()


@pytest.fixture
def window(qtbot: QtBot, config_dir: Path, engine: CoreEngine) -> MainWindow:
    window = build_window(config_dir, engine)
    qtbot.addWidget(window)
    window.resize(1280, 800)
    with qtbot.waitExposed(window):
        window.show()
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow)
    return window


def begin(qtbot: QtBot, window: MainWindow, name: str = "likeliest") -> TourPlayer:
    """Start a tour and wait for its first sentence."""
    player = window.parts.tours.player
    with qtbot.waitSignal(player.stepShown, timeout=WAIT_MS):
        window.parts.tours.start(name)
    return player


def go_on(qtbot: QtBot, player: TourPlayer) -> None:
    """To the next sentence."""
    with qtbot.waitSignal(player.stepShown, timeout=WAIT_MS):
        player.next()


def ring(player: TourPlayer) -> QRect:
    """Where the ring stands, once everything has found its place."""
    assert player.face.spotlight is not None
    player.face.spotlight.follow()
    return player.face.spotlight.target


def test_a_tour_is_played_to_its_end_by_keys_alone(qtbot: QtBot, window: MainWindow) -> None:
    player = begin(qtbot, window)
    panel = player.face.panel
    assert panel is not None
    assert QApplication.focusWidget() is panel.next
    sentences = [panel.sentence.text()]
    while player.place + 1 < len(find("likeliest").steps):
        with qtbot.waitSignal(player.stepShown, timeout=WAIT_MS):
            QTest.keyClick(QApplication.focusWidget(), Qt.Key.Key_PageDown)
        settle(window)
        target = ring(player)
        assert not target.isEmpty(), player.place
        assert not target.intersects(QRect(panel.mapTo(window, QPoint(0, 0)), panel.size()))
        sentences.append(panel.sentence.text())
    assert len(set(sentences)) == len(sentences)
    QTest.keyClick(QApplication.focusWidget(), Qt.Key.Key_PageUp)
    assert panel.sentence.text() == sentences[-2]
    with qtbot.waitSignal(player.ended):
        QTest.keyClick(QApplication.focusWidget(), Qt.Key.Key_Escape)
    assert panel.isHidden()
    assert player.face.spotlight is not None
    assert player.face.spotlight.isHidden()
    assert window.session.run is not None
    assert window.parts.requests.as_set().config == window.session.run.request.config


def test_it_plays_by_itself_and_stops_at_the_end(qtbot: QtBot, window: MainWindow) -> None:
    player = window.parts.tours.player
    with qtbot.waitSignal(player.finished, timeout=WAIT_MS):
        player.play(find("likeliest"), hurried=True)
    assert player.place + 1 == len(find("likeliest").steps)
    assert not player.is_playing


def test_the_ring_is_around_what_the_words_say(qtbot: QtBot, window: MainWindow) -> None:
    player = begin(qtbot, window)
    combo = window.parts.toolbar.strategy
    assert ring(player) == QRect(combo.mapTo(window, QPoint(0, 0)), combo.size())
    go_on(qtbot, player)
    settle(window)
    assert player.told is not None
    run, place = window.session.run, player.told.place("place")
    assert run is not None
    assert run.selected == place
    assert str(player.told.figures["word"].value) == run.tokens[place or 0].piece
    area = window.parts.centre.columns[0].shown
    (word,) = [ring(player).translated(0, 0)]
    assert area.rect().translated(area.mapTo(window, QPoint(0, 0))).contains(word)
    before = ring(player)
    window.resize(1000, 700)
    settle(window)
    assert ring(player) != before
    assert window.rect().contains(ring(player))


def test_who_changes_something_is_not_fought(qtbot: QtBot, window: MainWindow) -> None:
    player = begin(qtbot, window)
    player.toggle_playing()
    assert player.is_playing
    window.parts.controller.set_values({"max_new_tokens": 5})
    with qtbot.waitSignal(window.session.finished, timeout=WAIT_MS):
        window.parts.runs.run()
    assert not player.is_playing
    own = window.session.run
    assert own is not None
    assert len(own.tokens) == 5
    go_on(qtbot, player)
    assert window.session.run is not own
    assert window.parts.requests.as_set().config["max_new_tokens"] == 60


def test_a_run_that_is_stopped_is_not_spoken_of(qtbot: QtBot, window: MainWindow) -> None:
    player = window.parts.tours.player
    with qtbot.waitSignal(player.stuck, timeout=WAIT_MS) as stuck:
        window.parts.tours.start("likeliest")
        window.session.stop()
    assert player.face.panel is not None
    assert player.face.panel.sentence.text() == stuck.args[0]
    assert player.told is None


@pytest.mark.parametrize(("size", "scale"), [((1280, 800), 1.0), ((1280, 800), 2.0)])
def test_nothing_is_cut_beside_a_tour(qtbot: QtBot, window: MainWindow, size: tuple[int, int], scale: float) -> None:
    window.parts.appearance.set_font_scale(scale)
    window.resize(*size)
    player = begin(qtbot, window)
    settle(window)
    qtbot.waitUntil(lambda: faults(window) == [])
    player.leave()
