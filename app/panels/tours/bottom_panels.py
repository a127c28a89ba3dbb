"""Panel at the foot of the window: a heading, a sentence and a button to leave."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QObject, QRectF, QSize, Qt, Signal, SignalInstance
from PySide6.QtGui import QAccessible, QAccessibleAnnouncementEvent, QKeyEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPushButton, QSizePolicy, QVBoxLayout, QWidget
from shiboken6 import isValid

from app.theme.theme import Theme, theme_for
from app.widgets.bars import BarList, BarRow
from app.widgets.labels import TextBlock
from app.widgets.plain_text import PlainLabel, caption, tooltip
from core import words
from resources.language import tr

_PRESS_KEYS = (Qt.Key.Key_Space, Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Up, Qt.Key.Key_Down)
"""Keys that press a button or open a list."""


class BottomPanel(QFrame):
    """Panel that takes its own space at the foot of the window and covers nothing.

    While it is open it has the keyboard focus: Esc closes it before it stops a run, and no key reaches the widgets
    below it.
    """

    nextRequested = Signal()
    leaveRequested = Signal()

    def __init__(self, gap: int, parent: QWidget | None = None) -> None:
        """`gap`: vertical spacing between the rows, in pixels at 100 %."""
        super().__init__(parent)
        self.setProperty("role", "foot")
        self._gap = gap
        self._focus_before: QWidget | None = None
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.title, self.sentence = PlainLabel(), TextBlock(self, "spoken")
        self.title.setProperty("role", "heading")
        self.column = QVBoxLayout(self)

    def create_button(self, name: str, pressed: SignalInstance, role: str = "quiet") -> QPushButton:
        """Create one of the panel's buttons, without a text."""
        made = QPushButton()
        made.setObjectName(name)
        made.setProperty("role", role)
        made.clicked.connect(pressed)
        made.installEventFilter(self)
        return made

    def handles_key(self, key: int) -> bool:
        """Return whether the panel itself handles `key`, which would otherwise move the focus between its buttons."""
        return False

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Handle the panel's own keys before its buttons do."""
        if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress and self.handles_key(event.key()):
            self.keyPressEvent(event)
            return True
        return super().eventFilter(watched, event)

    @property
    def has_focus(self) -> bool:
        """Whether the panel receives key presses, or will once its window is active."""
        focused: QWidget | None = self.window().focusWidget()
        return focused is not None and (focused is self or self.isAncestorOf(focused))

    def take_focus(self) -> None:
        """Move the keyboard focus to this panel."""
        if not self.has_focus:
            self._focus_before = self.window().focusWidget()
        self.setFocus(Qt.FocusReason.OtherFocusReason)

    def restore_focus(self) -> None:
        """Return the keyboard focus to the widget that had it before, if this panel still has it."""
        before, self._focus_before = self._focus_before, None
        if not self.has_focus:
            return
        self.clearFocus()
        if before is not None and isValid(before) and before.isVisible() and before.isEnabled():
            before.setFocus(Qt.FocusReason.OtherFocusReason)

    def set_theme(self, theme: Theme) -> None:
        """Apply the theme's colours and sizes."""
        self.sentence.refit()
        side = theme.space(16)
        self.column.setContentsMargins(side, theme.space(10), side, theme.space(12))
        self.column.setSpacing(theme.space(self._gap))

    def event(self, event: QEvent) -> bool:
        """Handle Esc in this panel."""
        if isinstance(event, QKeyEvent) and event.key() == Qt.Key.Key_Escape:
            event.accept()
            if event.type() == QEvent.Type.KeyPress:
                self.leaveRequested.emit()
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Press the focused button on Enter. No other key reaches the widgets below the panel; Tab still moves the
        focus out.
        """
        if event.key() in _PRESS_KEYS:
            event.accept()
            button = self.window().focusWidget()
            is_enter = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
            if is_enter and isinstance(button, QPushButton) and self.isAncestorOf(button):
                button.click()
        else:
            super().keyPressEvent(event)


class GuessPanel(BottomPanel):
    """Panel of the guessing game. Keys 1 to 4 choose, Enter continues, Esc leaves. Probabilities appear only after the
    guess.
    """

    picked = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(gap=8, parent=parent)
        self.setObjectName("guessPanel")
        self.bars = BarList(theme_for("light"), tr("Choices"), self, fits_labels=True)
        self.choices: list[QPushButton] = []
        self.next = self.create_button("guessNext", self.nextRequested, "primary")
        self.leave = self.create_button("guessLeave", self.leaveRequested)
        self._lay_out()

    def show_choices(self, title: str, sentence: str, choices: Sequence[str]) -> None:
        """Offer these words."""
        self._set_texts(title, sentence)
        self.bars.hide()
        self.bars.set_rows(())
        self.next.hide()
        for number, button in enumerate(self.choices):
            button.setVisible(number < len(choices))
            button.setText(caption(f"{number + 1}  {choices[number]}") if number < len(choices) else "")
        self.choices[0].setFocus(Qt.FocusReason.OtherFocusReason)

    def show_result(self, title: str, sentence: str, rows: Sequence[BarRow] = (), next_title: str = "") -> None:
        """Show a result, with bars if there are rows and a Next button if it has a title."""
        self._set_texts(title, sentence)
        for button in self.choices:
            button.hide()
        self.bars.set_rows(rows, widest=words.LONGEST_PERCENT)
        self.bars.setVisible(bool(rows))
        self.next.setText(next_title)
        self.next.setVisible(bool(next_title))
        (self.next if next_title else self.leave).setFocus(Qt.FocusReason.OtherFocusReason)

    def set_theme(self, theme: Theme) -> None:
        super().set_theme(theme)
        self.bars.set_theme(theme)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Choose a word with a number key; continue with Enter."""
        number = event.key() - Qt.Key.Key_1
        if 0 <= number < len(self.choices) and self.choices[number].isVisible():
            self.picked.emit(number)
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and self.next.isVisible():
            self.nextRequested.emit()
        else:
            super().keyPressEvent(event)

    def _set_texts(self, title: str, sentence: str) -> None:
        self.setAccessibleName(tr("Guess first"))
        self.leave.setText(tr("Exit"))
        self.title.setText(title)
        self.sentence.set_text(sentence)

    def _lay_out(self) -> None:
        head, row = QHBoxLayout(), QHBoxLayout()
        head.addWidget(self.title)
        head.addStretch(1)
        head.addWidget(self.leave)
        head.addWidget(self.next)
        for number in range(4):
            button = QPushButton()
            button.setObjectName(f"guess{number + 1}")
            button.clicked.connect(lambda _checked=False, number=number: self.picked.emit(number))
            self.choices.append(button)
            row.addWidget(button, 1)
        self.column.addLayout(head)
        self.column.addWidget(self.sentence)
        self.column.addLayout(row)
        self.column.addWidget(self.bars)


DOT, CURRENT_DOT_WIDTH, GAP = 7, 20, 6
"""Sizes in pixels at 100 %."""


class StepDots(QWidget):
    """Progress through the steps of a tour."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme_for("light")
        self._index = self._count = 0
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)

    def show_step(self, index: int, count: int) -> None:
        """Show step `index` (counted from 0) of `count`."""
        self._index, self._count = index, count
        self.setAccessibleName(tr("Step {number} of {count}").format(number=index + 1, count=count))
        self.setToolTip(tooltip(self.accessibleName()))
        self.updateGeometry()
        self.update()

    def set_theme(self, theme: Theme) -> None:
        """Apply the theme's colours and sizes."""
        self._theme = theme
        self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:
        """Return the size of the row of dots."""
        width = (self._count - 1) * (DOT + GAP) + CURRENT_DOT_WIDTH if self._count else 0
        return QSize(self._theme.px(width), self._theme.px(DOT + 4))

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint finished steps filled and later ones pale."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        size, left = self._theme.px(DOT), 0
        top = (self.height() - size) / 2
        for number in range(self._count):
            width = self._theme.px(CURRENT_DOT_WIDTH) if number == self._index else size
            painter.setBrush(self._theme.color("accent" if number <= self._index else "line"))
            painter.drawRoundedRect(QRectF(left, top, width, size), size / 2, size / 2)
            left += width + self._theme.px(GAP)


_FORWARD = (Qt.Key.Key_Right, Qt.Key.Key_PageDown)
_BACKWARD = (Qt.Key.Key_Left, Qt.Key.Key_PageUp)


class TourPanel(BottomPanel):
    """Panel with title, sentence, step dots, and the buttons Back, Play, Next and Exit.

    Right, Page Down, Enter and Space go to the next step, Left and Page Up to the previous one, Esc exits.
    """

    backRequested = Signal()
    playRequested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(gap=6, parent=parent)
        self.setObjectName("tourPanel")
        self.dots = StepDots()
        self.back = self.create_button("tourBack", self.backRequested)
        self.play = self.create_button("tourPlay", self.playRequested)
        self.next = self.create_button("tourNext", self.nextRequested, "primary")
        self.leave = self.create_button("tourLeave", self.leaveRequested)
        self._lay_out()

    def show_step(self, title: str, index: int, count: int, text: str, is_busy: bool = False) -> None:
        """Show a step; while it `is_busy`, navigation is disabled."""
        self.setAccessibleName(tr("Guided tour"))
        self.title.setText(title)
        self.dots.show_step(index, count)
        self.sentence.set_text(text)
        self.back.setText(tr("Back"))
        self.next.setText(tr("Next") if index + 1 < count else tr("Done"))
        self.leave.setText(tr("Exit tour"))
        self.leave.setToolTip(tr("Restores your own settings"))
        self._enable_next(not is_busy)
        if index == 0 and self.window().focusWidget() is self.back:
            self.next.setFocus(Qt.FocusReason.OtherFocusReason)
        self.back.setEnabled(index > 0 and not is_busy)
        if not is_busy:
            self._announce(text)

    def show_playing(self, is_playing: bool) -> None:
        """Show whether the tour advances automatically."""
        self.play.setText(tr("Stop") if is_playing else tr("Play"))
        self.play.setToolTip(tr("Pause at every step") if is_playing else tr("Advance automatically"))

    def take_focus(self) -> None:
        """Take the keyboard focus, so that keys move through the steps."""
        super().take_focus()
        if self.next.isEnabled():
            self.next.setFocus(Qt.FocusReason.OtherFocusReason)

    def set_theme(self, theme: Theme) -> None:
        super().set_theme(theme)
        self.dots.set_theme(theme)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Move through the steps with the keyboard or a clicker, if the direction is enabled."""
        key = event.key()
        is_forward = key in _FORWARD or (key == Qt.Key.Key_Space and self.window().focusWidget() is self)
        if is_forward and self.next.isEnabled():
            self.nextRequested.emit()
        elif key in _BACKWARD and self.back.isEnabled():
            self.backRequested.emit()
        elif not is_forward and key not in _BACKWARD:
            super().keyPressEvent(event)

    def handles_key(self, key: int) -> bool:
        return key in _FORWARD or key in _BACKWARD

    def _enable_next(self, on: bool) -> None:
        """Keep the focus in the panel while the button is disabled, and return it when the button is enabled.

        Qt gives the focus of a disabled button to the next widget in the window.
        """
        focused = self.window().focusWidget()
        if not on and focused in (self.next, self.back):
            self.setFocus(Qt.FocusReason.OtherFocusReason)
        self.next.setEnabled(on)
        if on and self.window().focusWidget() is self:
            self.next.setFocus(Qt.FocusReason.OtherFocusReason)

    def _announce(self, text: str) -> None:
        """Announce a text to screen readers."""
        if QAccessible.isActive():
            QAccessible.updateAccessibility(QAccessibleAnnouncementEvent(self, text))

    def _lay_out(self) -> None:
        row = QHBoxLayout()
        row.addWidget(self.title)
        row.addWidget(self.dots)
        row.addStretch(1)
        for button in (self.leave, self.play, self.back, self.next):
            row.addWidget(button)
        self.column.addLayout(row)
        self.column.addWidget(self.sentence)
