"""Guess first: the window reveals nothing about the token before the guess and everything after it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QAccessible, QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel, QWidget
from pytestqt.qtbot import QtBot

from decodescope.app.features.guess.state import (
    CHOICES,
    MAX_QUESTIONS,
    GuessQuestion,
    events_between,
    guess_unsupported_reason,
    make_questions,
    truncate_run,
)
from decodescope.app.state.run import Run
from decodescope.app.state.worker_messages import Outcome, RunRequest
from decodescope.app.window.main_window import MainWindow
from decodescope.core import words
from decodescope.core.events import CacheMeasured, Event, TokenChosen
from tests.ui.beams import beam_run, beam_steps
from tests.ui.fake_engine import ScriptedEngine
from tests.ui.layout import faults, settle
from tests.ui.scripted import make_run, story
from tests.ui.windows import open_window

WAIT_MS = 60_000


def finished_run(tokens: list[TokenChosen]) -> Run:
    run = make_run(tokens, finished=True)
    run.outcome = Outcome("completed")
    return run


def start_game(qtbot: QtBot, window: MainWindow, run: Run) -> GuessQuestion:
    """Begin a game with this run, up to its first question."""
    window.session.show(run)
    guess = window.parts.guess
    with qtbot.waitSignal(guess.questionShown, timeout=WAIT_MS) as signal:
        guess.start()
    timers = window.parts.inspector.findChildren(QTimer)  # it follows a text a little later
    qtbot.waitUntil(lambda: not any(timer.isActive() for timer in timers))
    settle(window)
    return signal.args[0]


def all_visible_texts(window: MainWindow) -> list[str]:
    """Return every visible text, tooltip and accessible text of the window."""
    window.parts.glossary.refresh()  # else it comes a second after a picker was filled, between the two looks
    window.parts.status.refresh()  # else once a second
    found = []
    for part in (one for one in (window, *window.findChildren(QWidget)) if one.isVisible()):
        reported = (
            part.toolTip(),
            part.accessibleName(),
            part.accessibleDescription(),
            str(part.property("text") or ""),
        )
        found.append(" | ".join((part.objectName(), *reported)))
        announced = QAccessible.queryAccessibleInterface(part)
        if announced is not None and announced.isValid():
            kinds = (QAccessible.Text.Name, QAccessible.Text.Description, QAccessible.Text.Value)
            found += [announced.text(kind) for kind in kinds]
    return found


def picture(window: MainWindow) -> QImage:
    return window.grab().toImage()


def with_four_choices(tokens: list[TokenChosen]) -> list[TokenChosen]:
    """The first question's token could only have been one of its choices: whichever it is, these are offered."""
    first = make_questions(finished_run(tokens))[0]
    own = replace(tokens[first.position], alternatives=first.choices)
    return [*tokens[: first.position], own, *tokens[first.position + 1 :]]


def with_other_continuation(run: Run, place: int) -> list[TokenChosen]:
    """The same text up to a position, then another of the choices and another text."""
    token = run.tokens[place]
    other = next(one for one in make_questions(run)[0].choices if one.id != token.id)
    chosen = replace(
        token, id=other.id, piece=other.text, text=other.text, raw_probability=other.raw_probability,
        probability=other.probability, rank=other.rank,
    )  # fmt: skip
    rest = [replace(late, raw_probability=0.02, rank=9, entropy=5.0) for late in story(40)[place + 1 :][::-1]]
    late = [replace(token, step=place + 1 + n) for n, token in enumerate(rest)]
    return [*run.tokens[:place], chosen, *late]


def test_window_reveals_nothing_before_guess(qtbot: QtBot, window: MainWindow) -> None:
    """Two texts that differ after the question have identical pixels and accessible texts."""
    length = window.findChild(QLabel, "promptTokens")
    assert length is not None
    qtbot.waitUntil(lambda: bool(length.text()), timeout=10_000)  # counted some time after the prompt is there
    one = finished_run(with_four_choices(story(40)))
    question = start_game(qtbot, window, one)
    reported, seen = all_visible_texts(window), picture(window)
    window.parts.guess.leave()
    other = finished_run(with_other_continuation(one, question.position))
    assert other.text != one.text
    assert [c.text for c in start_game(qtbot, window, other).choices] == [c.text for c in question.choices]
    assert all_visible_texts(window) == reported
    assert picture(window) == seen
    run = window.session.run
    assert run is not None
    assert len(run.tokens) == question.position
    token = one.tokens[question.position]
    assert all(words.percent(token.probability) not in text for text in reported)


def test_guess_reveals_probabilities(qtbot: QtBot, window: MainWindow) -> None:
    one = finished_run(story(40))
    question = start_game(qtbot, window, one)
    panel = window.parts.guess.panel
    assert panel is not None
    assert QApplication.focusWidget() is panel.choices[0]
    QTest.keyClick(panel, Qt.Key.Key_1 + question.answer)
    assert window.parts.guess.right == 1
    assert [row.figures for row in panel.bars.rows] == [(words.percent(c.probability),) for c in question.choices]
    chosen = question.choices[question.answer]
    assert panel.sentence.text() == f"Right: {words.quote(chosen.text)} had {words.percent(chosen.probability)}."
    run = window.session.run
    assert run is not None
    assert (len(run.tokens), run.selected) == (question.position + 1, question.position)


@pytest.mark.slow
def test_guess_game_is_played_to_score_by_keyboard(qtbot: QtBot, window: MainWindow) -> None:
    one = finished_run(story(40))
    start_game(qtbot, window, one)
    guess = window.parts.guess
    panel = guess.panel
    assert panel is not None
    requested = make_questions(one)
    for number, question in enumerate(requested):
        QTest.keyClick(panel, Qt.Key.Key_1)
        assert guess.number == number + 1
        if number + 1 < len(requested):
            with qtbot.waitSignal(guess.questionShown, timeout=WAIT_MS):
                QTest.keyClick(panel, Qt.Key.Key_Return)
        else:
            QTest.keyClick(panel, Qt.Key.Key_Return)
        assert question.choices
    right = sum(question.answer == 0 for question in requested)
    models = sum(question.likeliest == question.answer for question in requested)
    assert panel.sentence.text() == (
        f"{right} of {len(requested)} right. Always picking the likeliest word would have scored {models}."
    )
    assert window.session.run is one
    QTest.keyClick(panel, Qt.Key.Key_Escape)
    assert panel.isHidden()
    assert not guess.is_on


def test_showing_other_run_ends_guess_game(qtbot: QtBot, window: MainWindow) -> None:
    start_game(qtbot, window, finished_run(story(40)))
    other = finished_run(story(12))
    window.session.show(other)
    assert not window.parts.guess.is_on
    assert window.parts.guess.panel is not None
    assert window.parts.guess.panel.isHidden()
    assert window.session.run is other


@pytest.mark.parametrize("scale", [1.0, 2.0])
def test_guess_panel_is_not_clipped(qtbot: QtBot, window: MainWindow, scale: float) -> None:
    window.parts.appearance.set_font_scale(scale)
    question = start_game(qtbot, window, finished_run(story(40)))
    panel = window.parts.guess.panel
    assert panel is not None
    qtbot.waitUntil(lambda: faults(panel) == [])
    window.parts.guess.pick(question.answer)
    settle(window)
    qtbot.waitUntil(lambda: faults(panel) == [])


def runs_without_a_choice() -> Iterator[tuple[Run | None, str]]:
    yield None, "There is no text yet"
    yield beam_run(beam_steps(4)), "Beam search compares whole texts"
    yield finished_run([replace(token, alternatives=()) for token in story(9)]), "recorded no alternatives"
    yield finished_run([replace(token, raw_probability=0.99) for token in story(9)]), "uncertain enough"
    yield finished_run([replace(token, method="scored") for token in story(9)]), "scored, not generated"


def test_guess_without_choices_shows_reason(window: MainWindow) -> None:
    for run, reason in runs_without_a_choice():
        assert reason in guess_unsupported_reason(run)
    window.parts.guess.start()
    assert window.parts.centre.notice_banner.isVisible()


def test_questions_offer_chosen_token_and_three_others() -> None:
    run = finished_run(story(60))
    requested = make_questions(run)
    assert 3 <= len(requested) <= MAX_QUESTIONS
    for question in requested:
        token = run.tokens[question.position]
        assert question.choices[question.answer].id == token.id
        assert len({choice.text.strip().casefold() for choice in question.choices}) == CHOICES
    assert [question.choices for question in make_questions(run)] == [question.choices for question in requested]


def test_truncated_run_with_later_events_equals_whole_run() -> None:
    run = finished_run(story(20))
    before = truncate_run(run, 7)
    assert before.tokens == run.tokens[:7]
    assert (before.prompt, before.id) == (run.prompt, run.id)
    before.apply(events_between(run, 7, 9))
    assert before.tokens == run.tokens[:9]
    before.apply(events_between(run, 9, 20))
    assert before.text == run.text


class OtherContinuationEngine(ScriptedEngine):
    """Pause after the tenth token, which is different in every second run."""

    def stream(self, request: RunRequest, cancel: threading.Event) -> Iterator[Event]:
        for event in super().stream(request, cancel):
            is_other = isinstance(event, TokenChosen) and event.step == 9 and len(self.runs) % 2 == 0
            changed = {"piece": " fish", "text": " fish", "raw_probability": 0.02, "rank": 9, "entropy": 5.0}
            yield replace(event, **changed) if is_other else event


def is_at_hold(run: Run | None) -> bool:
    """Return whether all events before the pause have arrived: the cache measurement after the tenth token."""
    last = run.events[-1] if run is not None and run.events else None
    return isinstance(last, CacheMeasured) and last.step == 9


def test_active_run_is_paused_and_guessed_at_latest_token(qtbot: QtBot, config_dir: Path) -> None:
    engine = OtherContinuationEngine(hold=threading.Event())
    window = open_window(qtbot, config_dir, engine)
    window.parts.glossary.refresh()
    guess, session = window.parts.guess, window.session
    looks = []
    for _ in range(2):
        window.parts.runs.run()
        qtbot.waitUntil(lambda: is_at_hold(session.run), timeout=WAIT_MS)
        guess.start()
        assert guess.is_on
        assert guess.panel is not None
        assert "still being generated" in guess.panel.sentence.text()
        qtbot.waitUntil(lambda: all(not t.isActive() for t in window.parts.inspector.findChildren(QTimer)))
        settle(window)
        drawn = (window.parts.centre.columns[0].current_view, window.parts.timeline, window.parts.inspector)
        looks.append((all_visible_texts(window), [part.grab().toImage() for part in drawn]))
        if not engine.hold.is_set() and len(looks) == 1:
            guess.leave()
            with qtbot.waitSignal(session.finished, timeout=WAIT_MS):
                session.stop()
    assert looks[0] == looks[1], "nothing tells of the token behind the one it is held at"
    with qtbot.waitSignal(guess.questionShown, timeout=WAIT_MS) as requested:
        engine.hold.set()
    run = session.run
    assert run is not None
    assert len(run.tokens) == requested.args[0].position >= 9
    assert run.finished is None
    guess.pick(requested.args[0].answer)
    assert guess.right == 1


def press_focused(window: MainWindow, key: Qt.Key) -> None:
    QTest.keyClick(QApplication.focusWidget() or window, key)
    QApplication.processEvents()


def enter_hands(window: MainWindow, *hands: int) -> None:
    """Type the number of raised hands for each choice, with Enter after each."""
    for count in hands:
        for digit in str(count):
            press_focused(window, Qt.Key(Qt.Key.Key_0 + int(digit)))
        press_focused(window, Qt.Key.Key_Return)


@pytest.mark.parametrize("focus_elsewhere", [False, True])
def test_room_votes_by_number_keys_while_presenting(qtbot: QtBot, window: MainWindow, focus_elsewhere: bool) -> None:
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow)
    question = start_game(qtbot, window, finished_run(story(40)))
    guess = window.parts.guess
    press_focused(window, Qt.Key.Key_F5)
    assert window.parts.presentation.is_on
    assert guess.panel is not None
    if focus_elsewhere:
        window.parts.presentation.presenter.caption.setFocus()
    hands = [3, 3, 3, 3]
    hands[question.answer] = 12
    with qtbot.waitSignal(guess.roomAnswered) as answered:
        enter_hands(window, *hands)
    assert answered.args[0].votes == tuple(hands)
    assert (guess.number, guess.right) == (1, 1)
    assert [row.figures[0] for row in guess.panel.bars.rows] == [str(count) for count in hands]
    assert [row.lengths for row in guess.panel.bars.rows] == [
        (count / 21, choice.probability) for count, choice in zip(hands, question.choices, strict=True)
    ]
    assert guess.panel.sentence.text().endswith("12 of 21 hands were for it.")
    with qtbot.waitSignal(guess.questionShown, timeout=WAIT_MS):
        window.parts.presentation.step_controls.step(1)
    window.parts.presentation.step_controls.step(1)
    assert guess.number == 1, "a clicker goes on to the next choice, an open question stays open"
    window.parts.presentation.leave()
    guess.leave()


def test_hands_of_a_choice_are_corrected_by_letter_and_backspace(qtbot: QtBot, window: MainWindow) -> None:
    start_game(qtbot, window, finished_run(story(40)))
    window.parts.presentation.enter()
    panel = window.parts.guess.panel
    assert panel is not None
    row = panel.choice_row
    for key in (Qt.Key.Key_1, Qt.Key.Key_2, Qt.Key.Key_C, Qt.Key.Key_5, Qt.Key.Key_0, Qt.Key.Key_Backspace):
        QTest.keyClick(panel, key)
    assert row.votes == (12, 0, 5, 0)
    assert "for C" in row.hint.text()
    assert "17" in row.hint.text()
    assert [button.text()[0] for button in row.buttons] == list("ABCD")
    window.parts.presentation.leave()
    assert not row.is_room
    QTest.keyClick(panel, Qt.Key.Key_B)
    assert window.parts.guess.number == 1, "alone, a letter guesses"
    window.parts.guess.leave()


def test_presenter_window_shows_answer_that_audience_does_not_see(qtbot: QtBot, window: MainWindow) -> None:
    question = start_game(qtbot, window, finished_run(story(40)))
    stage = window.parts.presentation
    stage.enter()
    stage.open_page()
    settle(window)
    page, chosen = stage.presenter_page.page, question.choices[question.answer]
    share = words.percent(chosen.probability)
    assert page.next_step.text().startswith(f"Answer: {'ABCD'[question.answer]}, ")
    assert chosen.text.strip() in page.next_step.text()
    assert share in page.next_step.text()
    labels = [label for label in window.findChildren(QLabel) if label.isVisible() and label.window() is window]
    assert [label.text() for label in labels if share in label.text()] == [], "the audience sees it only afterwards"
    for number in range(CHOICES):
        QTest.keyClick(page, Qt.Key.Key_9 if number == question.answer else Qt.Key.Key_1)
        QTest.keyClick(page, Qt.Key.Key_Return)
    settle(window)
    assert window.parts.guess.right == 1
    assert not page.next_step.text().startswith("Answer")
    stage.leave()
    window.parts.guess.leave()
