"""Accessibility: everything in the window has a name, a role and a value, and changes are announced."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, QRect
from PySide6.QtGui import QAccessible, QAccessibleAnnouncementEvent, QAccessibleEvent
from PySide6.QtWidgets import QGraphicsView, QWidget
from pytestqt.qtbot import QtBot

from decodescope.app.control.audible_feedback import complete_prefix
from decodescope.app.features.tours.panel.tour_chooser import TourChooser
from decodescope.app.widgets.accessibility import AccessibleText, accessible_widget
from decodescope.app.widgets.accessibility.qt_interfaces import TextInterface
from decodescope.app.window.main_window import MainWindow
from tests.app.history_files import run_data
from tests.app.test_cache_history import events, plan
from tests.ui.accessibility_tree import Role, faults, read_tree
from tests.ui.beams import beam_run, beam_steps
from tests.ui.dialogs import DIALOGS, dialog_of
from tests.ui.fake_engine import ScriptedEngine
from tests.ui.test_memory_view import ended
from tests.ui.test_speculation_view import a_run
from tests.ui.windows import open_window, run
from tests.ui.windows import whole as all_of


@pytest.fixture
def window(qtbot: QtBot, config_dir: Path) -> MainWindow:
    return all_of(open_window(qtbot, config_dir, ScriptedEngine()))


def check(part: QWidget) -> None:
    assert "\n".join(faults(read_tree(part))) == ""


def test_widgets_of_every_view_have_accessible_names(qtbot: QtBot, window: MainWindow) -> None:
    check(window)
    run(qtbot, window)
    window.session.select_token(2)
    check(window)
    for number in range(1, window.parts.centre.columns[0].tabs.count()):
        window.parts.centre.show_number(number)
        check(window)


def test_tree_speculation_and_memory_views_have_accessible_names(qtbot: QtBot, window: MainWindow) -> None:
    for view, shown in (
        ("tree", beam_run(beam_steps(6), ranked=True)),
        ("speculation", a_run()),
        ("memory", ended(events(plan(9), 40))),
    ):
        assert window.session.show(shown)
        window.parts.centre.show_view(view)
        check(window)


def test_history_chat_and_split_have_names(qtbot: QtBot, window: MainWindow) -> None:
    assert window.history.store is not None
    for number in range(3):
        window.history.store.save(
            run_data(number, "Once upon a time", "a fox", title=f"Run {number}", tokens=7, speed=9.0)
        )
    window.parts.history_panel.toggle()
    check(window)
    window.parts.setup.prompt.mode.button("chat").click()
    window.parts.setup.prompt.editor.setPlainText("Hello")
    run(qtbot, window)
    window.parts.centre.set_split(True)
    check(window)


def test_every_control_of_the_dialogs_has_a_name(qtbot: QtBot, window: MainWindow) -> None:
    run(qtbot, window)
    for kind in DIALOGS:
        with dialog_of(qtbot, window, kind) as dialog:
            check(dialog)


# Accessible parts of painted widgets


def test_generated_text_is_accessible_by_token_and_character(qtbot: QtBot, window: MainWindow) -> None:
    run(qtbot, window)
    area = read_tree(window).one(Role.EditableText, "Generated text")
    assert len(area.children) == len(window.session.run.tokens)
    assert area.children[2].name.startswith(f"Token 3 of {len(area.children)}: “Mia”, probability")
    announced = QAccessible.queryAccessibleInterface(area.widget)
    text = announced.textInterface()
    words = text.text(0, text.characterCount())
    assert "fox named Mia. She lived in a den" in words
    text.setCursorPosition(words.index("Mia"))
    assert window.session.run.selected == 2
    assert text.cursorPosition() == words.index(" Mia")
    assert announced.child(2).state().selected
    announced.child(5).actionInterface().doAction("Press")
    assert window.session.run.selected == 5
    assert announced.rect().contains(text.characterRect(words.index("She")))


def test_accessible_text_counts_utf16_units() -> None:
    went: list[int] = []
    face = TextInterface(lambda: AccessibleText("a🦊b", 2, lambda n: QRect(n, 0, 1, 1), went.append), lambda rect: rect)
    assert (face.characterCount(), face.cursorPosition(), face.text(1, 3), face.text(3, 4)) == (4, 3, "🦊", "b")
    face.setCursorPosition(3)
    assert (went, face.characterRect(3), face.offsetAtPoint(QPoint(1, 0))) == ([2], QRect(2, 0, 1, 1), 1)


def test_bars_stages_and_sliders_have_accessible_values(qtbot: QtBot, window: MainWindow) -> None:
    run(qtbot, window)
    window.session.select_token(2)
    received = read_tree(window)
    assert [bar.role for bar in received.one(Role.List, "Alternatives").children] == [Role.ListItem] * 6
    funnel = received.one(Role.List, "Funnel").children
    assert funnel[0].name.startswith("1: model: 2,048 left")
    slider = received.one(Role.Slider, "Surprise of every token")
    value = QAccessible.queryAccessibleInterface(slider.widget).valueInterface()
    assert value.currentValue() == value.maximumValue() == len(window.session.run.tokens)
    value.setCurrentValue(4)
    assert window.session.run.cursor == 4
    setting = received.one(Role.Slider, "New tokens slider")
    assert setting.value == received.one(Role.SpinBox, "New tokens").value
    strategy = received.one(Role.ComboBox, "Strategy")
    assert strategy.value == "Sampling"


# Announcements


@pytest.fixture
def announcements(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[str, bool]]]:
    """(words, whether they are urgent) of every announcement to a screen reader at work."""
    received: list[tuple[str, bool]] = []

    def listen(event: QAccessibleEvent) -> None:
        if isinstance(event, QAccessibleAnnouncementEvent):
            received.append((event.message(), event.politeness() == QAccessible.AnnouncementPoliteness.Assertive))

    monkeypatch.setattr(accessible_widget, "send_accessibility_event", listen)
    QAccessible.setActive(True)
    yield received
    QAccessible.setActive(False)


def test_new_text_is_announced_in_whole_words(
    qtbot: QtBot, window: MainWindow, announcements: list[tuple[str, bool]]
) -> None:
    run(qtbot, window)
    reported = " ".join(words for words, _urgent in announcements)
    assert window.session.run.text.strip() in reported
    assert announcements[-1][0].endswith(window.session.run.outcome.message)
    assert not any(urgent for _words, urgent in announcements)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a fox. She ra", "a fox."), ("a fox na", "a fox "), ("fo", ""), ("狐狸说：你好。然", "狐狸说：你好。"),
        ("狐狸跑", "狐狸跑"), ("3.14 is", "3.14 "), ("“Yes!”\nHe", "“Yes!”\n"),
    ],
)  # fmt: skip
def test_complete_prefix_ends_at_whole_word(text: str, told: str) -> None:
    assert complete_prefix(text) == told


def test_text_is_not_announced_when_cursor_moves(
    qtbot: QtBot, window: MainWindow, announcements: list[tuple[str, bool]]
) -> None:
    run(qtbot, window)
    window.session.show(window.session.run)
    announcements.clear()
    window.session.move_cursor(3)
    window.session.move_cursor(8)
    window.parts.screen_reader_text._announce()
    assert announcements == []


def test_errors_are_announced_urgently_and_notices_politely(
    qtbot: QtBot, window: MainWindow, announcements: list[tuple[str, bool]]
) -> None:
    window.parts.centre.error_banner.show_message("No room", "It needs 2 GiB.", "Choose a smaller model.")
    window.parts.centre.notice_banner.show_message("About this run")
    assert announcements == [("No room. It needs 2 GiB. Choose a smaller model.", True), ("About this run", False)]


def test_drawn_plots_and_tour_chooser_have_accessible_names(qtbot: QtBot, window: MainWindow) -> None:
    run(qtbot, window)
    for name in ("memory", "compare"):
        window.parts.centre.show_view(name)
        qtbot.waitUntil(lambda name=name: window.parts.centre.columns[0].current_name == name)
        for canvas in window.parts.centre.columns[0].current_view.findChildren(QGraphicsView):
            assert canvas.accessibleName()
            assert canvas.viewport().accessibleName()
    memory = window.parts.centre.columns[0].view("memory")
    assert memory.findChildren(QGraphicsView), "a plot is drawn"
    window.parts.actions.do("choose_tour")
    chooser = window.findChild(TourChooser)
    assert chooser is not None
    assert chooser.accessibleName() == "Guided tours"
    chooser.close()
