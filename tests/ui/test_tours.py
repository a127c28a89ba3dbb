"""Tours in the window with the real core and the bundled models: playback, navigation and targets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QComboBox
from pytestqt.qtbot import QtBot

from decodescope.app import build_window
from decodescope.app.features.tours.controller.tour_player import TourPlayer
from decodescope.app.features.tours.panel.tour_chooser import TourChooser
from decodescope.app.features.tours.state import Tour, find_tour, load_tours
from decodescope.app.session.engine import CoreEngine
from decodescope.app.widgets.screen import visible_rect
from decodescope.app.window.main_window import MainWindow
from decodescope.resources.language import set_language
from tests.ui.layout import faults, settle
from tests.ui.windows import run

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
    """Return the position of the ring in the window after the layout; empty while nothing is marked."""
    spotlight = player.ui.spotlight
    assert spotlight is not None
    spotlight.update_target()
    target = spotlight.target
    return QRect(spotlight.mapTo(spotlight.window(), target.topLeft()), target.size())


def test_tour_is_completed_by_keyboard(qtbot: QtBot, window: MainWindow) -> None:
    player = begin(qtbot, window)
    panel = player.ui.panel
    assert panel is not None
    assert QApplication.focusWidget() is panel.next
    sentences = [panel.sentence.text()]
    while player.step_index + 1 < len(find_tour("likeliest").steps):
        with qtbot.waitSignal(player.stepShown, timeout=WAIT_MS):
            QTest.keyClick(QApplication.focusWidget(), Qt.Key.Key_PageDown)
        settle(window)
        target = ring(player)
        assert not target.isEmpty(), player.step_index
        assert not target.intersects(QRect(panel.mapTo(window, QPoint(0, 0)), panel.size()))
        sentences.append(panel.sentence.text())
    assert len(set(sentences)) == len(sentences)
    QTest.keyClick(QApplication.focusWidget(), Qt.Key.Key_PageUp)
    assert panel.sentence.text() == sentences[-2]
    with qtbot.waitSignal(player.ended):
        QTest.keyClick(QApplication.focusWidget(), Qt.Key.Key_Escape)
    assert panel.isHidden()
    assert player.ui.spotlight is not None
    assert player.ui.spotlight.isHidden()
    assert window.parts.setup.prompt.editor.toPlainText() == "Once upon a time, there was a little"


def test_tour_plays_automatically_and_stops_at_end(qtbot: QtBot, window: MainWindow) -> None:
    player = window.parts.tours.player
    with qtbot.waitSignal(player.finished, timeout=WAIT_MS):
        player.play(find_tour("likeliest"), without_delay=True)
    assert player.step_index + 1 == len(find_tour("likeliest").steps)
    assert not player.is_playing


def test_spotlight_surrounds_described_widget_or_token(qtbot: QtBot, window: MainWindow) -> None:
    player = begin(qtbot, window)
    combo = window.parts.toolbar.strategy
    assert ring(player) == QRect(combo.mapTo(window, QPoint(0, 0)), combo.size())
    go_on(qtbot, player)
    settle(window)
    assert player.narration is not None
    run, place = window.session.run, player.narration.index_of("place")
    assert run is not None
    assert run.selected == place
    assert str(player.narration.numbers["word"].value) == run.tokens[place or 0].piece
    area = window.parts.centre.columns[0].current_view
    (word,) = [ring(player).translated(0, 0)]
    assert area.rect().translated(area.mapTo(window, QPoint(0, 0))).contains(word)
    before = ring(player)
    window.resize(1000, 700)
    settle(window)
    assert ring(player) != before
    assert window.rect().contains(ring(player))


def test_user_run_pauses_tour_and_next_step_restores_settings(qtbot: QtBot, window: MainWindow) -> None:
    player = begin(qtbot, window)
    player.toggle_playing()
    assert player.is_playing
    window.parts.settings_controller.set_values({"max_new_tokens": 5})
    run(qtbot, window)
    assert not player.is_playing
    own = window.session.run
    assert own is not None
    assert len(own.tokens) == 5
    go_on(qtbot, player)
    assert window.session.run is not own
    assert window.parts.requests.current_request().config["max_new_tokens"] == 60


def test_stopped_run_fails_tour_step(qtbot: QtBot, window: MainWindow) -> None:
    player = window.parts.tours.player
    with qtbot.waitSignal(player.failed, timeout=WAIT_MS) as stuck:
        window.parts.tours.start("likeliest")
        window.session.stop()
    assert player.ui.panel is not None
    assert player.ui.panel.sentence.text() == stuck.args[0]
    assert player.narration is None


NAMES = [tour.name for tour in load_tours()[0]]
LOOKS = list(product(("en", "zh_CN"), ("light", "dark"), (1.0, 2.0)))
"""Language, theme, size of the text."""
SOME = [(name, *LOOKS[(7 * number) % len(LOOKS)]) for number, name in enumerate(NAMES) if number in (0, 3, 7, 9)]
"""In the suite a few scenes, each in another look; with -m fuzz every scene in every look."""
ALL = [
    pytest.param(name, *look, marks=() if (name, *look) in SOME else pytest.mark.fuzz)
    for name in NAMES
    for look in LOOKS
]


def shortened(tour: Tour, tokens: int = 24) -> Tour:
    """The same scene with shorter texts: what it points at and says is the same, or that the effect is not there."""
    runs = {
        name: replace(setting, parameters={**setting.parameters, "max_new_tokens": tokens})
        for name, setting in tour.runs.items()
    }
    return replace(tour, runs=runs)


@pytest.fixture
def speaking() -> Iterator[None]:
    """English again when the test ends."""
    yield
    set_language("en")


@pytest.mark.every(4)
@pytest.mark.usefixtures("speaking")
@pytest.mark.parametrize(("name", "language", "theme", "scale"), ALL)
def test_every_tour_step_points_at_visible_target(
    qtbot: QtBot, window: MainWindow, name: str, language: str, theme: str, scale: float
) -> None:
    set_language(language)
    window.parts.settings.appearance.language = language  # what is spoken otherwise would be put right
    window.parts.settings.appearance.theme = theme
    window.parts.appearance.set_font_scale(scale)
    window.parts.appearance.apply()
    tour, player = shortened(find_tour(name)), window.parts.tours.player
    with qtbot.waitSignal(player.stepShown, timeout=WAIT_MS):
        player.play(tour)
    panel = player.ui.panel
    assert panel is not None
    for place, step in enumerate(tour.steps):
        settle(window)
        reported = player.narration
        assert reported is not None
        assert panel.sentence.text() == reported.text
        assert reported.text.strip()
        qtbot.waitUntil(lambda: not ring(player).isEmpty(), timeout=5000)
        target = ring(player)
        assert window.rect().contains(target), (name, place)
        assert not target.intersects(QRect(panel.mapTo(window, QPoint(0, 0)), panel.size())), (name, place)
        qtbot.waitUntil(lambda: faults(panel) == [], timeout=5000)
        if step.token and reported.index_of(step.token) is not None:
            assert window.session.run is not None
            assert window.session.run.selected == reported.index_of(step.token)
        if place + 1 < len(tour.steps):
            go_on(qtbot, player)
    player.next()
    assert not window.parts.tours.is_on


def test_tour_starts_from_toolbar_chooser(qtbot: QtBot, window: MainWindow) -> None:
    QTest.mouseClick(window.parts.toolbar.tours_button, Qt.MouseButton.LeftButton)
    chooser = window.findChild(TourChooser, "tourChooser")
    assert chooser is not None
    assert [card.accessibleName() for card in chooser.cards] == [tour.title for tour in load_tours()[0]]
    settle(chooser)
    qtbot.waitUntil(lambda: faults(chooser) == [])
    QTest.mouseClick(chooser.cards[0], Qt.MouseButton.LeftButton)
    assert window.parts.tours.name == NAMES[0]
    window.parts.tours.leave()
    window.session.stop()


def by_mouse(window: MainWindow) -> None:
    """As with the button of the toolbar, which leaves the focus where it is: on the model's list, say."""
    window.parts.toolbar.model.setFocus()
    QTest.mouseClick(window.parts.toolbar.tours_button, Qt.MouseButton.LeftButton)
    chooser = window.findChild(TourChooser, "tourChooser")
    assert chooser is not None
    QTest.mouseClick(chooser.cards[0], Qt.MouseButton.LeftButton)


def by_palette(window: MainWindow) -> None:
    window.parts.toolbar.model.setFocus()
    window.parts.palette.open()
    panel = window.parts.palette.panel
    assert panel is not None
    QTest.keyClicks(QApplication.focusWidget(), "likeliest")
    entries = [found.entry.key for found in window.parts.palette._results]
    window.parts.palette._run_entry(entries.index("tour.likeliest"))


def by_command_line(window: MainWindow) -> None:
    window.parts.toolbar.model.setFocus()
    window.parts.tours.player.play(find_tour("likeliest"))


@pytest.mark.every(2)
@pytest.mark.parametrize("start", [by_mouse, by_palette, by_command_line])
def test_tour_panel_has_focus_however_started(
    qtbot: QtBot, window: MainWindow, start: Callable[[MainWindow], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr(QComboBox, "showPopup", lambda combo: opened.append(combo.objectName()))
    player = window.parts.tours.player
    with qtbot.waitSignal(player.stepShown, timeout=WAIT_MS):
        start(window)
        panel = player.ui.panel
        assert panel is not None
        qtbot.waitUntil(window.isActiveWindow)
        for key in (Qt.Key.Key_Space, Qt.Key.Key_Return, Qt.Key.Key_Down):  # its first run is still under way
            QTest.keyClick(QApplication.focusWidget(), key)
            assert panel.has_focus, key
    assert player.step_index == 0
    window.activateWindow()
    qtbot.waitUntil(lambda: QApplication.focusWidget() is panel.next)
    shown = 0
    for key, to in (
        (Qt.Key.Key_Return, 1), (Qt.Key.Key_Right, 2), (Qt.Key.Key_Left, 1), (Qt.Key.Key_Left, 0),
        (Qt.Key.Key_Left, 0), (Qt.Key.Key_Enter, 1), (Qt.Key.Key_Space, 2),
    ):  # fmt: skip
        before = player.step_index
        QTest.keyClick(QApplication.focusWidget(), key)
        if player.step_index != before:
            qtbot.waitUntil(lambda: player.narration is not None, timeout=WAIT_MS)
        assert player.step_index == to, (key, shown)
        assert panel.has_focus, key
        shown += 1
    QTest.keyClick(QApplication.focusWidget(), Qt.Key.Key_Escape)
    assert not window.parts.tours.is_on
    assert opened == []
    assert QApplication.focusWidget() is not None
    assert not panel.has_focus


@pytest.mark.parametrize("width", [900, 1440])
def test_tour_panel_keeps_its_height_from_step_to_step(qtbot: QtBot, window: MainWindow, width: int) -> None:
    window.resize(width, 900)
    player = begin(qtbot, window, "heat")
    panel = player.ui.panel
    assert panel is not None
    assert player.tour is not None
    places = set()
    for number in range(len(player.tour.steps)):
        settle(window)
        places.add((panel.height(), panel.next.mapTo(window, QPoint(0, 0)).y()))
        if number + 1 < len(player.tour.steps):
            go_on(qtbot, player)
    assert len(places) == 1, places
    window.parts.tours.leave()


@pytest.mark.parametrize("size", [(1440, 900), (1280, 800)])
def test_tour_target_is_wholly_in_sight(qtbot: QtBot, window: MainWindow, size: tuple[int, int]) -> None:
    """A row that would be cut by the panel is scrolled into view after the panel has its height."""
    window.resize(*size)
    player = begin(qtbot, window, "heat")
    assert player.tour is not None
    for number, step in enumerate(player.tour.steps):
        settle(window)
        spot = player.ui.targets.find(step.points) if step.points else None
        if spot is not None and step.points not in ("view", ""):
            qtbot.waitUntil(lambda name=step.points: is_whole(window, player, name), timeout=5000)
        if number + 1 < len(player.tour.steps):
            go_on(qtbot, player)
    window.parts.tours.leave()


def is_whole(window: MainWindow, player: TourPlayer, name: str) -> bool:
    spot = player.ui.targets.find(name)
    return spot is not None and visible_rect(*spot, window).size() == spot.rect.size()


@pytest.mark.parametrize("language", ["en", "zh_CN"])
@pytest.mark.usefixtures("speaking")
def test_cards_of_tour_chooser_have_equal_sizes(qtbot: QtBot, language: str) -> None:
    set_language(language)
    chooser = TourChooser(*load_tours())
    qtbot.addWidget(chooser)
    chooser.show()
    settle(chooser)
    assert len({card.size().toTuple() for card in chooser.cards}) == 1
    assert faults(chooser) == []
