"""The timeline: bars of surprise, a cursor that can be dragged, a replay."""

import math
from dataclasses import replace

import pytest
from PySide6.QtCore import QEvent, QObject, QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from decodescope.app.state.run import Run
from decodescope.app.views.replay import SPEEDS, STEP_SPEED
from decodescope.app.views.timeline import Timeline
from decodescope.app.widgets.sparkline import MAX_BAR_VALUE, group_maxima, height_fraction
from decodescope.core.events import TokenChosen
from tests.ui.scripted import make_run, story, token
from tests.ui.windows import show_widget


class TimelineSession:
    """Handles the timeline's signals as the session does."""

    def __init__(self, timeline: Timeline, run: Run) -> None:
        self.timeline, self.run = timeline, run
        self.wishes: list[int] = []
        timeline.signals.cursorRequested.connect(self.move)
        timeline.show_run(run)

    def move(self, count: int) -> None:
        self.wishes.append(count)
        if self.run.move_cursor(count):
            self.timeline.cursor_moved(self.run)

    def write(self, tokens: list[TokenChosen]) -> None:
        self.run.apply(tokens)
        self.timeline.events_arrived(self.run, tokens)


class Watch(QObject):
    """Keeps the events of one kind that a widget gets."""

    def __init__(self, kind: QEvent.Type, kept: list[QEvent]) -> None:
        super().__init__()
        self.kind, self.kept = kind, kept

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == self.kind:
            self.kept.append(event)
        return False


@pytest.fixture
def timeline(qtbot: QtBot) -> Timeline:
    return show_widget(qtbot, Timeline(), 900, 62)


def place(timeline: Timeline, count: int) -> QPoint:
    return QPoint(round(timeline.sparkline.cursor_x(count)), timeline.sparkline.height() // 2)


@pytest.mark.slow
def test_new_tokens_cause_no_relayout(timeline: Timeline) -> None:
    """A relayout would include the whole window at each batch of tokens."""
    player = TimelineSession(timeline, make_run(story(50)))
    QApplication.sendPostedEvents()
    requested: list[QEvent] = []
    watch = Watch(QEvent.Type.LayoutRequest, requested)
    timeline.installEventFilter(watch)
    player.write(story(60))
    QApplication.sendPostedEvents()
    assert timeline.count_label.text() == "110 / 110"
    assert not requested
    player.write(story(20_000))
    label = timeline.count_label
    assert label.width() >= label.fontMetrics().horizontalAdvance("20,110 / 20,110")


def test_click_and_drag_move_cursor(timeline: Timeline) -> None:
    player = TimelineSession(timeline, make_run(story(50)))
    line = timeline.sparkline
    QTest.mousePress(line, Qt.MouseButton.LeftButton, pos=place(timeline, 20))
    QTest.mouseMove(line, place(timeline, 12))
    QTest.mouseRelease(line, Qt.MouseButton.LeftButton, pos=place(timeline, 12))
    assert player.wishes[0] == 20
    assert player.run.cursor == line.accessible_value().value
    QTest.mouseClick(line, Qt.MouseButton.LeftButton, pos=QPoint(0, 5))
    assert player.run.cursor == 0
    QTest.mouseClick(line, Qt.MouseButton.LeftButton, pos=QPoint(line.width() - 1, 5))
    assert player.run.cursor == 50


def test_count_label_shows_cursor_position(timeline: Timeline) -> None:
    player = TimelineSession(timeline, make_run(story(50)))
    player.move(34)
    assert timeline.count_label.text() == "34 / 50"
    player.write(story(1000))
    assert timeline.count_label.text() == "34 / 1,050"


def test_step_buttons_move_one_token_and_stop_at_ends(timeline: Timeline) -> None:
    player = TimelineSession(timeline, make_run(story(3)))
    for button in (timeline.forward_button, *[timeline.back_button] * 5, timeline.forward_button):
        button.click()
    assert player.wishes == [3, 2, 1, 0, 0, 0, 1]


def test_sparkline_keys_move_cursor(timeline: Timeline) -> None:
    player = TimelineSession(timeline, make_run(story(50)))
    for key in (Qt.Key.Key_Left, Qt.Key.Key_PageUp, Qt.Key.Key_Right, Qt.Key.Key_Home, Qt.Key.Key_End):
        QTest.keyClick(timeline.sparkline, key)
    assert player.wishes == [49, 39, 40, 0, 50]


def test_replay_at_end_restarts_and_stops_at_end(timeline: Timeline, qtbot: QtBot) -> None:
    player = TimelineSession(timeline, make_run(story(4), finished=True))
    timeline.set_speed(4.0)
    timeline.play_button.click()
    assert timeline.replay.is_playing
    assert timeline.play_button.accessibleName() == "Pause"
    qtbot.waitUntil(lambda: not timeline.replay.is_playing)
    assert player.wishes == [0, 1, 2, 3, 4]
    assert timeline.play_button.accessibleName() == "Replay the run"


def test_space_plays_and_pauses(timeline: Timeline) -> None:
    TimelineSession(timeline, make_run(story(40)))
    QTest.keyClick(timeline.sparkline, Qt.Key.Key_Space)
    assert timeline.replay.is_playing
    QTest.keyClick(timeline.sparkline, Qt.Key.Key_Space)
    assert not timeline.replay.is_playing


def test_moving_cursor_or_showing_other_run_pauses_replay(timeline: Timeline) -> None:
    TimelineSession(timeline, make_run(story(40)))
    timeline.replay.play()
    QTest.mouseClick(timeline.sparkline, Qt.MouseButton.LeftButton, pos=place(timeline, 9))
    assert not timeline.replay.is_playing
    timeline.replay.play()
    timeline.show_run(make_run(story(3)))
    assert not timeline.replay.is_playing


def test_the_speed_is_chosen_from_a_menu(timeline: Timeline) -> None:
    TimelineSession(timeline, make_run(story(40)))
    actions = timeline.speed_button.menu().actions()
    assert [action.text() for action in actions] == ["Step by step", "¼×", "½×", "1×", "2×", "4×"]
    timeline.replay.play()
    usual = timeline.replay._timer.interval()
    actions[list(SPEEDS).index(2.0)].trigger()
    assert timeline.speed_button.text() == "2×"
    assert timeline.replay._timer.interval() == pytest.approx(usual / 2, abs=1)
    timeline.replay.pause()


def test_step_mode_advances_one_token_per_key_press(timeline: Timeline) -> None:
    player = TimelineSession(timeline, make_run(story(3)))
    timeline.set_speed(STEP_SPEED)
    assert timeline.speed_button.text() == "Step"
    for _ in range(5):
        QTest.keyClick(timeline.sparkline, Qt.Key.Key_Space)
    assert player.wishes == [0, 1, 2, 3, 0]
    assert not timeline.replay.is_playing
    assert timeline.play_button.accessibleName() == "One token forward"


def test_selecting_step_mode_pauses_replay(timeline: Timeline) -> None:
    TimelineSession(timeline, make_run(story(40)))
    timeline.replay.play()
    timeline.set_speed(STEP_SPEED)
    assert not timeline.replay.is_playing


def test_replay_without_tokens_is_disabled(timeline: Timeline) -> None:
    timeline.show_run(None)
    timeline.replay.play()
    assert not timeline.replay.is_playing
    assert not timeline.play_button.isEnabled()
    assert timeline.count_label.text() == ""


def test_bar_values_are_surprise_in_bits_of_shown_sequence(timeline: Timeline) -> None:
    first = [token(0, "a", 0.5), token(1, "b", 0.25)]
    second = [token(0, "c", 0.125, sequence=1)]
    run = make_run([*first, *second], sequences=2)
    TimelineSession(timeline, run)
    assert timeline._values == pytest.approx([1.0, 2.0])
    run.show_sequence(1)
    timeline.cursor_moved(run)
    assert timeline._values == pytest.approx([3.0])
    never = token(1, "d", sequence=1, raw_log_probability=-math.inf)
    run.apply([never])
    timeline.events_arrived(run, [never])
    assert math.isfinite(timeline._values[1])


def test_bar_pitch_reserves_room_for_max_new_tokens(timeline: Timeline) -> None:
    run = make_run(story(5))
    run.request = replace(run.request, config={"max_new_tokens": 120})
    player = TimelineSession(timeline, run)
    before = timeline.sparkline.bar_pitch
    player.write(story(60))
    assert timeline.sparkline.bar_pitch == before


def test_group_maxima_keeps_highest_value() -> None:
    values = [0.1] * 10_000
    values[7777] = 9.0
    bins = group_maxima(values, 300)
    assert len(bins) == 300
    assert (bins[0][0], bins[-1][1]) == (0, 10_000)
    assert max(value for _, _, value in bins) == 9.0
    assert group_maxima([], 10) == []
    assert group_maxima([1.0, 2.0], 10) == [(0, 1, 1.0), (1, 2, 2.0)]


def test_bar_height_increases_up_to_maximum() -> None:
    assert height_fraction(0.0) == 0.0
    assert (
        0 < height_fraction(1.0) < height_fraction(5.0) < height_fraction(MAX_BAR_VALUE) == height_fraction(40.0) == 1.0
    )


def test_played_bars_have_accent_color(timeline: Timeline) -> None:
    player = TimelineSession(timeline, make_run([token(n, "a", 0.01) for n in range(30)]))
    player.move(10)
    image = timeline.sparkline.grab().toImage()

    def color(index: int) -> object:
        x = round((timeline.sparkline.cursor_x(index) + timeline.sparkline.bar_pitch / 2) * image.devicePixelRatio())
        return image.pixelColor(x, image.height() - 12)

    assert color(4).blue() > color(4).red() + 60
    assert abs(color(20).blue() - color(20).red()) < 30
    assert color(4) != color(20)
