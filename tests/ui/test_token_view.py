"""The token view: selection, keyboard, copying, scrolling, hovering and several sequences."""

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QAccessible, QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from decodescope.app.views import VIEWS
from decodescope.app.views.tokens.view import TokenView
from decodescope.core.events import SequenceFinished
from tests.ui.scripted import PROMPT, STORY, end_token, make_run, story, token
from tests.ui.token_reader import TokenViewSession, opened


@pytest.fixture
def view(qtbot: QtBot) -> TokenView:
    return opened(qtbot)


def test_token_view_is_registered_with_factory(qtbot: QtBot) -> None:
    spec = next(spec for spec in VIEWS if spec.name == "tokens")
    made = spec.factory()
    qtbot.addWidget(made)
    assert spec.title == "Tokens"
    assert made.objectName() == "tokenView"
    assert made.accessibleName()


def test_click_selects_token(view: TokenView) -> None:
    reader = TokenViewSession(view, make_run(story(40)))
    for index in (0, 7, 23, 39):
        reader.click(index)
    assert reader.picked == [0, 7, 23, 39]


def test_click_on_prompt_or_empty_area_selects_nothing(view: TokenView) -> None:
    reader = TokenViewSession(view, make_run(story(40)))
    top = view.token_rect(0).top()
    QTest.mouseClick(view.area.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(60, top + 10))
    QTest.mouseClick(view.area.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(60, view.area.viewport().height() - 5))
    assert reader.picked == []


def test_arrow_keys_select_neighboring_tokens(view: TokenView) -> None:
    reader = TokenViewSession(view, make_run(story(40)))
    reader.click(5)
    for key in (Qt.Key.Key_Right, Qt.Key.Key_Right, Qt.Key.Key_Left, Qt.Key.Key_Home, Qt.Key.Key_Left, Qt.Key.Key_End):
        reader.key(key)
    assert reader.picked == [5, 6, 7, 6, 0, 0, 39]


def test_up_and_down_keys_select_token_above_or_below(view: TokenView) -> None:
    reader = TokenViewSession(view, make_run(story(60)))
    reader.click(2)
    here = view.token_rect(2)
    reader.key(Qt.Key.Key_Down)
    below = view.token_rect(reader.picked[-1])
    assert below.top() > here.top()
    assert below.left() <= here.center().x() + 1 <= below.right() + 40
    reader.key(Qt.Key.Key_Up)
    assert view.token_rect(reader.picked[-1]).top() == here.top()


def test_first_arrow_key_selects_newest_token(view: TokenView) -> None:
    reader = TokenViewSession(view, make_run(story(12)))
    reader.key(Qt.Key.Key_Left)
    assert reader.picked == [11]


def test_a_token_without_text_can_be_reached(view: TokenView) -> None:
    reader = TokenViewSession(view, make_run([token(0, "a"), token(1, "", piece="⟨C3⟩"), token(2, "é"), end_token(3)]))
    reader.key(Qt.Key.Key_Home)
    for _ in range(3):
        reader.key(Qt.Key.Key_Right)
    assert reader.picked == [0, 1, 2, 3]
    assert not view.token_rect(1).isEmpty()
    reader.click(3)
    assert reader.picked[-1] == 3


def test_enter_and_double_click_open_the_inspector(view: TokenView, qtbot: QtBot) -> None:
    reader = TokenViewSession(view, make_run(story(5)))
    with qtbot.waitSignal(view.signals.inspectorRequested):
        reader.key(Qt.Key.Key_Return)
    with qtbot.waitSignal(view.signals.inspectorRequested):
        QTest.mouseDClick(view.area.viewport(), Qt.MouseButton.LeftButton, pos=view.token_rect(2).center())


def test_dragging_selects_text_and_picks_no_token(view: TokenView) -> None:
    reader = TokenViewSession(view, make_run(story(10)))
    first, last = view.token_rect(0), view.token_rect(2)
    QTest.mousePress(view.area.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(first.left() + 1, first.center().y()))
    QTest.mouseMove(view.area.viewport(), first.center())
    QTest.mouseMove(view.area.viewport(), QPoint(last.right(), last.center().y()))
    QTest.mouseRelease(view.area.viewport(), Qt.MouseButton.LeftButton, pos=last.center())
    reader.key(Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert QGuiApplication.clipboard().text().strip() == "".join(STORY[:3]).strip()
    assert reader.picked == []


def test_select_all_copies_prompt_and_text_exactly(view: TokenView) -> None:
    tokens = [*story(30), token(30, "x\r\n\x0b 😀"), token(31, "", piece="⟨E2⟩"), end_token(32)]
    reader = TokenViewSession(view, make_run(tokens))
    reader.key(Qt.Key.Key_A, Qt.KeyboardModifier.ControlModifier)
    reader.key(Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert QGuiApplication.clipboard().text() == "".join(PROMPT) + reader.run.text


def test_the_menu_copies_with_and_without_the_prompt(view: TokenView) -> None:
    reader = TokenViewSession(view, make_run(story(9)))
    menu = view.key_handler.create_menu(view)
    actions = {action.text(): action for action in menu.actions()}
    actions["Copy text"].trigger()
    assert QGuiApplication.clipboard().text() == reader.run.text
    actions["Copy with prompt"].trigger()
    assert QGuiApplication.clipboard().text() == "".join(PROMPT) + reader.run.text
    menu.deleteLater()


def test_copy_without_selection_copies_selected_token(view: TokenView) -> None:
    reader = TokenViewSession(view, make_run(story(9)))
    reader.click(4)
    reader.key(Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert QGuiApplication.clipboard().text() == STORY[4]


SHIFT = Qt.KeyboardModifier.ShiftModifier


def copied(reader: TokenViewSession) -> str:
    """Return the text that Ctrl+C copies."""
    QGuiApplication.clipboard().setText("nothing was copied")
    reader.key(Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    return QGuiApplication.clipboard().text()


def test_shift_and_arrows_select_whole_tokens(view: TokenView) -> None:
    tokens = story(40)
    reader = TokenViewSession(view, make_run(tokens))
    reader.select(5)
    for _ in range(3):
        reader.key(Qt.Key.Key_Right, SHIFT)
    assert copied(reader) == "".join(token.text for token in tokens[5:8])
    for _ in range(5):
        reader.key(Qt.Key.Key_Left, SHIFT)
    assert copied(reader) == "".join(token.text for token in tokens[3:5])
    assert reader.picked == [5]


def test_shift_selects_by_rows_and_to_both_ends(view: TokenView) -> None:
    tokens = story(40)
    reader = TokenViewSession(view, make_run(tokens))
    text = "".join(token.text for token in tokens)
    reader.select(3)
    reader.key(Qt.Key.Key_Down, SHIFT)
    first = copied(reader)
    reader.key(Qt.Key.Key_Down, SHIFT)
    assert "".join(token.text for token in tokens[3:]).startswith(first)
    assert len(copied(reader)) > len(first) > 10
    reader.key(Qt.Key.Key_End, SHIFT)
    assert copied(reader) == "".join(token.text for token in tokens[3:])
    reader.key(Qt.Key.Key_Home, SHIFT)
    assert copied(reader).endswith("".join(token.text for token in tokens[:3]))
    assert text not in copied(reader)


def test_shift_left_without_selection_starts_at_end(view: TokenView) -> None:
    tokens = story(40)
    reader = TokenViewSession(view, make_run(tokens))
    reader.key(Qt.Key.Key_Left, SHIFT)
    reader.key(Qt.Key.Key_Left, SHIFT)
    assert copied(reader) == "".join(token.text for token in tokens[-2:])


def test_plain_arrow_key_clears_selection_and_moves(view: TokenView) -> None:
    tokens = story(40)
    reader = TokenViewSession(view, make_run(tokens))
    reader.select(5)
    before = reader.image()
    reader.key(Qt.Key.Key_Right, SHIFT)
    reader.key(Qt.Key.Key_Right, SHIFT)
    assert reader.image() != before
    reader.key(Qt.Key.Key_Right)
    assert reader.picked == [5, 6]
    assert copied(reader) == tokens[6].text


def test_selection_ends_at_cursor(view: TokenView) -> None:
    tokens = story(40)
    run = make_run(tokens)
    run.move_cursor(10)
    reader = TokenViewSession(view, run)
    view.cursor_moved(run)
    reader.select(8)
    for _ in range(6):
        reader.key(Qt.Key.Key_Right, SHIFT)
    assert copied(reader) == "".join(token.text for token in tokens[8:10])


def test_view_auto_scrolls_only_at_end(view: TokenView) -> None:
    reader = TokenViewSession(view, make_run(story(400)))
    bar = view.area.verticalScrollBar()
    assert bar.maximum() > 100
    assert bar.value() == bar.maximum()
    reader.write(story(100))
    assert bar.value() == bar.maximum()
    bar.setValue(40)
    reader.write(story(100))
    assert bar.value() == 40


def test_existing_tokens_keep_position_while_streaming(view: TokenView) -> None:
    reader = TokenViewSession(view, make_run(story(30)))
    before = [view.token_rect(index) for index in range(20)]
    for chosen in story(15):
        reader.write([chosen])
    assert [view.token_rect(index) for index in range(20)] == before


def test_keyboard_selection_scrolls_to_token(view: TokenView) -> None:
    reader = TokenViewSession(view, make_run(story(600)))
    reader.key(Qt.Key.Key_Home)
    assert view.area.verticalScrollBar().value() < 80
    assert view.area.viewport().rect().contains(view.token_rect(0))
    reader.key(Qt.Key.Key_End)
    assert view.area.viewport().rect().contains(view.token_rect(599))


def test_accessible_description_names_selected_token(view: TokenView) -> None:
    reader = TokenViewSession(view, make_run([token(0, " fox", 0.31, 3), token(1, "\n", 0.9)]))
    reader.click(0)
    assert view.accessibleDescription() == "Token 1 of 2: “fox”, probability 31 %, rank 3"
    reader.key(Qt.Key.Key_Right)
    assert "↵" in view.accessibleDescription()


def test_keyboard_selection_works_with_active_screen_reader(view: TokenView) -> None:
    reader = TokenViewSession(view, make_run(story(5)))
    QAccessible.setActive(True)
    try:
        reader.click(1)
        reader.key(Qt.Key.Key_Right)
    finally:
        QAccessible.setActive(False)
    assert view.accessibleDescription().startswith("Token 3 of 5")


def test_hovering_shows_token_statistics(view: TokenView, qtbot: QtBot) -> None:
    TokenViewSession(view, make_run([token(0, " fox", 0.31, 3), token(1, " named")]))
    QTest.mouseMove(view.area.viewport(), view.token_rect(0).center())
    qtbot.waitUntil(view.mouse_handler.popover.isVisible)
    shown = [label.text() for pair in view.mouse_handler.popover._cells for label in pair]
    assert "31 %" in shown
    assert "3 of 2,048" in shown
    view.show_run(None)
    assert not view.mouse_handler.popover.isVisible()


def test_popover_hides_with_view(view: TokenView, qtbot: QtBot) -> None:
    TokenViewSession(view, make_run([token(0, " fox", 0.31, 3), token(1, " named")]))
    QTest.mouseMove(view.area.viewport(), view.token_rect(1).center())
    qtbot.waitUntil(view.mouse_handler.popover.isVisible)
    view.hide()
    assert not view.mouse_handler.popover.isVisible()


def test_showing_another_sequence_does_not_scroll(view: TokenView) -> None:
    view.resize(1000, 300)
    reader = TokenViewSession(view, make_run([t for n in range(2) for t in story(300, n)], sequences=2))
    bar = view.area.verticalScrollBar()
    bar.setValue(50)
    reader.run.show_sequence(1)
    view.cursor_moved(reader.run)
    assert bar.value() == 50
    reader.run.move_cursor(2)
    view.cursor_moved(reader.run)
    reader.run.move_cursor(280)
    view.cursor_moved(reader.run)
    assert bar.value() > 50


def several(width: int, view: TokenView) -> TokenViewSession:
    view.resize(width, 420)
    return TokenViewSession(view, make_run([t for n in range(3) for t in story(20 + n, n)], sequences=3))


def test_sequences_are_shown_side_by_side_in_wide_view(view: TokenView, qtbot: QtBot) -> None:
    reader = several(1000, view)
    columns = view.area.page.columns
    assert [column.sequence for column in columns] == [0, 1, 2]
    assert columns[0].left + columns[0].width < columns[1].left
    place = columns[2].rects(4)[0].center().toPoint() + view.area.padding
    with qtbot.waitSignal(view.signals.sequenceActivated) as caught:
        QTest.mouseClick(view.area.viewport(), Qt.MouseButton.LeftButton, pos=place)
    assert caught.args == [2]
    assert reader.picked == [4]


def test_sequences_have_chips_in_narrow_view(view: TokenView, qtbot: QtBot) -> None:
    reader = several(480, view)
    chips = [chip for chip in view.layout_parts.chips.findChildren(QPushButton) if chip.isVisible()]
    assert [chip.text() for chip in chips] == ["1", "2", "3"]
    with qtbot.waitSignal(view.signals.sequenceActivated) as caught:
        chips[1].click()
    assert caught.args == [1]
    reader.run.show_sequence(1)
    view.cursor_moved(reader.run)
    assert chips[1].isChecked()
    assert [column.sequence for column in view.area.page.columns] == [1]
    view.show_run(make_run(story(5)))
    assert not view.layout_parts.chips.isVisible()


def test_many_sequences_are_selected_by_number(view: TokenView, qtbot: QtBot) -> None:
    tokens = [chosen for number in range(64) for chosen in story(3, number)]
    run = make_run(tokens, sequences=64, finished=True)
    view.resize(480, 600)
    view.show_run(run)
    view.events_arrived(run, ())
    assert [part for part in view.layout_parts.chips.findChildren(QPushButton) if part.isVisible()] == []
    assert view.layout_parts.chips.number_box.text() == "Text 1 of 64"
    assert view.minimumSizeHint().width() <= 480, "the panels beside it keep their room"
    with qtbot.waitSignal(view.signals.sequenceActivated) as caught:
        view.layout_parts.chips.number_box.setValue(40)
    assert caught.args == [39]


def test_the_tail_of_an_unfinished_character_is_drawn_at_the_end(view: TokenView) -> None:
    reader = TokenViewSession(view, make_run([token(0, "a"), token(1, "", piece="⟨E2⟩")]))
    reader.run.apply([SequenceFinished(0, "length", tail="\ufffd")])
    view.events_arrived(reader.run, [])
    reader.key(Qt.Key.Key_A, Qt.KeyboardModifier.ControlModifier)
    view.key_handler.copy()
    assert QGuiApplication.clipboard().text() == "".join(PROMPT) + "a\ufffd"
