"""Lessons in the window: from the start page through guess and run to the sheet, alone and with a room."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from decodescope.app.features.tours.controller.tour_player import TourPlayer
from decodescope.app.features.tours.store import FILE, ClassRecords
from decodescope.app.state.room_votes import RoomAnswer
from decodescope.app.window.main_window import MainWindow
from tests.ui.layout import faults, settle
from tests.ui.windows import WAIT_MS


def go_on(qtbot: QtBot, player: TourPlayer) -> None:
    """Go to the next step and wait for its sentence."""
    player.next()
    qtbot.waitUntil(lambda: player.narration is not None, timeout=WAIT_MS)


def play_to_end(qtbot: QtBot, player: TourPlayer) -> None:
    tour = player.tour
    assert tour is not None
    while player.step_index + 1 < len(tour.steps):
        go_on(qtbot, player)


def test_lesson_page_lists_six_lessons_without_creating_anything_before(window: MainWindow) -> None:
    assert window.parts.lessons.page is None
    window.parts.actions.do("open_lessons")
    page = window.parts.lessons.page
    assert page is not None
    assert len(page.cards) == 6
    assert page.progress.text() == "0 of 6 lessons done"
    assert not page.sheet.isEnabled()
    assert "Take a lesson first" in page.sheet.toolTip()
    settle(page)
    assert faults(page) == []
    page.close()


def test_lesson_asks_runs_explains_and_is_remembered(qtbot: QtBot, window: MainWindow, config_dir: Path) -> None:
    lessons = window.parts.lessons
    page = lessons.open()
    QTest.mouseClick(page.cards[0], Qt.MouseButton.LeftButton)
    player = window.parts.tours.player
    panel = player.ui.panel
    assert panel is not None
    assert panel.title.text() == "What is a token? · Question"
    go_on(qtbot, player)
    assert player.has_open_question
    assert [button.text()[0] for button in panel.choice_row.buttons] == list("ABCD")
    top = panel.next.mapTo(window, panel.next.rect().topLeft())
    QTest.keyClick(QApplication.focusWidget() or panel, Qt.Key.Key_B)
    qtbot.waitUntil(lambda: player.narration is not None, timeout=WAIT_MS)
    assert player.step is not None
    assert player.step.stage == "Run"
    assert not player.has_open_question
    assert panel.bars.isVisible()
    settle(window)
    assert faults(panel) == []
    assert panel.next.mapTo(window, panel.next.rect().topLeft()) == top, "the buttons stay where they are"
    assert [row.tip for row in panel.bars.rows] == ["", "Your guess", "", ""]
    play_to_end(qtbot, player)
    player.next()
    assert player.tour is None
    kept = ClassRecords(config_dir / FILE)
    assert kept.done == {"token"}
    record = kept.lessons["token"]
    assert record.guess.votes == [0, 1, 0, 0]
    assert record.picture
    assert len(record.runs) == 1
    assert len(record.sentences) == 3
    page = lessons.open()
    assert page.progress.text() == "1 of 6 lessons done"
    assert page.sheet.isEnabled()
    target = config_dir / "sheet.html"
    lessons.save_sheet(str(target))
    assert "What is a token?" in target.read_text(encoding="utf-8")
    lessons.restart()
    assert lessons.page is not None
    assert lessons.page.progress.text() == "0 of 6 lessons done"
    lessons.page.close()


def test_room_votes_in_lesson_while_presenting(qtbot: QtBot, window: MainWindow, config_dir: Path) -> None:
    parts = window.parts
    parts.lessons.start("temperature")
    player = parts.tours.player
    parts.presentation.enter()
    go_on(qtbot, player)
    panel = player.ui.panel
    assert panel is not None
    for digit in "12":
        QTest.keyClick(panel, Qt.Key(ord(digit)))
    parts.presentation.step_controls.step(1)  # a clicker goes on to the next choice, too
    assert player.has_open_question
    for key in (Qt.Key.Key_5, Qt.Key.Key_Return, Qt.Key.Key_Return, Qt.Key.Key_Return):
        QTest.keyClick(panel, key)
    qtbot.waitUntil(lambda: player.narration is not None, timeout=WAIT_MS)
    assert player.votes == (12, 5, 0, 0)
    assert [row.figures[0] for row in panel.bars.rows] == ["12", "5", "0", "0"]
    assert all(len(row.lengths) == 2 for row in panel.bars.rows)
    guess = parts.lessons.records.lessons["temperature"].guess
    assert (guess.votes, guess.is_room) == ([12, 5, 0, 0], True)
    parts.presentation.leave()
    player.leave()
    assert not ClassRecords(config_dir / FILE).done, "it was not finished"


def test_lesson_without_guess_goes_on(qtbot: QtBot, window: MainWindow) -> None:
    window.parts.lessons.start("token")
    player = window.parts.tours.player
    go_on(qtbot, player)
    go_on(qtbot, player)
    assert player.votes == ()
    assert player.step is not None
    assert player.step.stage == "Run"
    player.leave()


def test_guessing_game_of_a_room_is_kept_for_the_sheet(window: MainWindow) -> None:
    answer = RoomAnswer(("a", "b", "c", "d"), (1, 2, 3, 4), ("1 %",) * 4, 2, "Once")
    window.parts.guess.roomAnswered.emit(answer)
    kept = window.parts.lessons.records.room
    assert (kept[0].votes, kept[0].answer, kept[0].before) == ([1, 2, 3, 4], 2, "Once")
