"""A random user of a window: any possible input, in any order."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from PySide6.QtCore import QEvent, QPoint, QPointF, Qt, QTimer
from PySide6.QtGui import QContextMenuEvent, QMouseEvent, QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractSlider,
    QAbstractSpinBox,
    QApplication,
    QComboBox,
    QDialog,
    QMenu,
    QPlainTextEdit,
    QTabBar,
    QWidget,
)
from shiboken6 import isValid

from decodescope.app.state.conversation import CONTINUE, SAVE, SEND
from decodescope.app.views import VIEWS
from decodescope.app.window.main_window import MainWindow

KEYS = (
    *(getattr(Qt.Key, f"Key_{name}") for name in (
        "Left", "Right", "Up", "Down", "Home", "End", "PageUp", "PageDown", "Return", "Space", "Tab", "Backtab",
        "Escape", "Delete", "Backspace", "F1", "Menu", "Plus", "Minus", "0", "1", "2", "3", "4", "5", "6", "A", "B",
        "C", "D", "E", "F", "I", "L", "M", "R", "T", "Z",
    )),
)  # fmt: skip
NO, CTRL, SHIFT = Qt.KeyboardModifier.NoModifier, Qt.KeyboardModifier.ControlModifier, Qt.KeyboardModifier.ShiftModifier
TEXTS = ("", "A fox", "user: Hi\nassistant: Ho\nuser: Hum", "Zwölf 🎈 \u202e", "x " * 300, "half a \ud83d", "\0")
SIZES = ((900, 600), (1280, 800), (1000, 1200), (2000, 900))
WAITS_MS = (*(0,) * 9, 5, 40, 300)
"""The last is long enough for a card to appear."""
PATIENCE_MS = 300
"""An action that takes longer is waiting for a popup to be closed."""
Deed = Callable[["RandomUser"], None]


class RandomUser:
    """Everything they do follows from the seed and the window."""

    def __init__(self, window: MainWindow, seed: int) -> None:
        self.window, self.rng = window, random.Random(seed)
        self.done: list[str] = []
        self._top: QWidget = window
        """What the last target lies in: let go of an open list, and PySide takes what is in it for deleted."""
        self._watch = QTimer(window, interval=PATIENCE_MS)
        self._watch.timeout.connect(self.close_popups)

    def act(self) -> None:
        """Do one thing, and let the window answer, now and then for longer."""
        deed = self.rng.choice(DEEDS)
        self.done.append(deed.__name__.strip("_"))
        self._watch.start()  # Qt's own menus wait in a loop of their own until they are closed
        deed(self)
        self._watch.stop()
        QTest.qWait(self.rng.choice(WAITS_MS))

    def close_popups(self) -> None:
        """Close popups and dialogs above the window, and move the pointer away."""
        while (popup := QApplication.activePopupWidget()) is not None:
            popup.close()
        for dialog in self.window.findChildren(QDialog):
            dialog.reject()
        for part in self.window.findChildren(QWidget):
            QApplication.sendEvent(part, QEvent(QEvent.Type.Leave))

    def target(self, *kinds: type[QWidget]) -> QWidget | None:
        """Return a reachable widget of these kinds in the foremost window."""
        top = self._top = QApplication.activePopupWidget() or QApplication.activeModalWidget() or self.window
        parts = [part for part in top.findChildren(QWidget) if isValid(part) and isinstance(part, kinds)]
        return self.rng.choice([part for part in parts if part.isVisible() and part.isEnabled()] or [top])

    def random_point(self, part: QWidget) -> QPoint:
        """Somewhere on it."""
        return QPoint(self.rng.randrange(max(1, part.width())), self.rng.randrange(max(1, part.height())))


def _click_a_button(hands: RandomUser) -> None:
    button = hands.target(QAbstractButton)
    QTest.mouseClick(button, Qt.MouseButton.LeftButton, NO, button.rect().center())


def _click_anywhere(hands: RandomUser) -> None:
    part = hands.target(QWidget)
    button = hands.rng.choice((Qt.MouseButton.LeftButton, Qt.MouseButton.LeftButton, Qt.MouseButton.RightButton))
    QTest.mouseClick(part, button, hands.rng.choice((NO, NO, SHIFT, CTRL)), hands.random_point(part))


def _double_click(hands: RandomUser) -> None:
    part = hands.target(QWidget)
    QTest.mouseDClick(part, Qt.MouseButton.LeftButton, NO, hands.random_point(part))


def _move(hands: RandomUser) -> None:
    part = hands.target(QWidget)
    place = QPointF(hands.random_point(part))
    event = QMouseEvent(
        QEvent.Type.MouseMove, place, part.mapToGlobal(place), Qt.MouseButton.NoButton, Qt.MouseButton.NoButton, NO
    )
    QApplication.sendEvent(part, event)


def _drag(hands: RandomUser) -> None:
    part = hands.target(QWidget)
    QTest.mousePress(part, Qt.MouseButton.LeftButton, NO, hands.random_point(part))
    QTest.mouseMove(part, hands.random_point(part))
    QTest.mouseRelease(part, Qt.MouseButton.LeftButton, NO, hands.random_point(part))


def _open_context_menu(hands: RandomUser) -> None:
    part = hands.target(QWidget)
    place = hands.random_point(part)
    QApplication.sendEvent(part, QContextMenuEvent(QContextMenuEvent.Reason.Mouse, place, part.mapToGlobal(place)))


def _choose_in_a_menu(hands: RandomUser) -> None:
    menu = QApplication.activePopupWidget()
    if isinstance(menu, QMenu) and menu.actions():
        action = hands.rng.choice(menu.actions())
        QTest.mouseClick(menu, Qt.MouseButton.LeftButton, NO, menu.actionGeometry(action).center())


def _press_a_key(hands: RandomUser) -> None:
    part = QApplication.focusWidget() or hands.window
    QTest.keyClick(part, hands.rng.choice(KEYS), hands.rng.choice((NO, NO, CTRL, SHIFT)))


def _scroll(hands: RandomUser) -> None:
    part = hands.target(QWidget)
    place, turn = QPointF(hands.random_point(part)), QPoint(0, hands.rng.choice((-1200, -120, 120, 1200)))
    event = QWheelEvent(
        place, part.mapToGlobal(place), QPoint(), turn, Qt.MouseButton.NoButton, hands.rng.choice((NO, CTRL)),
        Qt.ScrollPhase.NoScrollPhase, False,
    )  # fmt: skip
    QApplication.sendEvent(part, event)


def _choose_in_a_picker(hands: RandomUser) -> None:
    combo = hands.target(QComboBox)
    if isinstance(combo, QComboBox) and combo.count() and combo.objectName() != "modelCombo":
        index = hands.rng.randrange(combo.count())
        combo.setCurrentIndex(index)
        combo.activated.emit(index)


def _set_a_number(hands: RandomUser) -> None:
    part = hands.target(QAbstractSpinBox, QAbstractSlider)
    if isinstance(part, QAbstractSlider):
        part.setValue(hands.rng.randint(part.minimum(), part.maximum()))
    elif isinstance(part, QAbstractSpinBox):
        part.setFocus()
        part.selectAll()
        QTest.keyClicks(part, hands.rng.choice(("1", "0", "-5", "3.5", "99999999", "1e9", "")))


def _write(hands: RandomUser) -> None:
    editor = hands.target(QPlainTextEdit)
    if isinstance(editor, QPlainTextEdit):
        editor.setPlainText(hands.rng.choice(TEXTS))


def _change_the_prompt(hands: RandomUser) -> None:
    hands.window.parts.setup.prompt.set_prompt(hands.rng.choice(TEXTS), hands.rng.random() < 0.4)


def _run_or_stop(hands: RandomUser) -> None:
    hands.window.parts.toolbar.run_button.click()


def _run_again(hands: RandomUser) -> None:
    hands.window.parts.runs.run_again()


def _move_the_cursor(hands: RandomUser) -> None:
    hands.window.session.move_cursor(hands.rng.randint(-3, 60))


def _select(hands: RandomUser) -> None:
    hands.window.session.select_token(hands.rng.choice((None, -1, 0, 5, 50, 10**6)))


def _show_a_view(hands: RandomUser) -> None:
    hands.window.parts.centre.show_view(hands.rng.choice(VIEWS).name)


def _click_a_tab(hands: RandomUser) -> None:
    tabs = hands.target(QTabBar)
    if isinstance(tabs, QTabBar) and tabs.count():
        tabs.setCurrentIndex(hands.rng.randrange(tabs.count()))


def _resize(hands: RandomUser) -> None:
    hands.window.resize(*hands.rng.choice(SIZES))


def _change_theme(hands: RandomUser) -> None:
    appearance = hands.window.parts.appearance
    if hands.rng.random() < 0.5:
        appearance.set_theme(hands.rng.choice(("light", "dark", "system")))
    else:
        appearance.set_font_scale(hands.rng.choice((0.8, 1.0, 1.5, 2.0)))


def _start_new_chat(hands: RandomUser) -> None:
    chat = hands.window.parts.chat
    hands.rng.choice((chat.new_chat, chat.regenerate, lambda: _edit_last_turn(hands)))()


def _edit_last_turn(hands: RandomUser) -> None:
    """Continue, save or send the beginning of the last turn."""
    chat = hands.window.parts.chat
    for turn in chat.conversation.turns[-1:]:
        chat.edit_turn(turn, turn.content[: hands.rng.randrange(20)], hands.rng.choice((CONTINUE, SAVE, SEND)))


def _close_popups(hands: RandomUser) -> None:
    hands.close_popups()


DEEDS: Sequence[Deed] = (
    _click_a_button, _click_a_button, _click_anywhere, _click_anywhere, _double_click, _move, _move, _move, _drag,
    *(_open_context_menu,) * 5, _choose_in_a_menu, _press_a_key, _press_a_key, _press_a_key, _scroll,
    _choose_in_a_picker, _set_a_number, _write, _change_the_prompt, _run_or_stop, _run_or_stop, _run_again,
    _move_the_cursor, _select,
    _show_a_view, _click_a_tab, _resize, _change_theme, _start_new_chat, _close_popups, _close_popups,
)  # fmt: skip
