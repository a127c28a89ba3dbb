"""The panel of a guided tour."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QAccessible,
    QAccessibleAnnouncementEvent,
    QKeyEvent,
    QPainter,
    QPaintEvent,
    QResizeEvent,
)
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QWidget

from decodescope.app.features.tours.state import GuessResult
from decodescope.app.panels.bottom_panel import BottomPanel
from decodescope.app.panels.choice_row import ChoiceRow, choice_bars
from decodescope.app.theme.theme import Theme, theme_for
from decodescope.app.theme.themed import Themed
from decodescope.app.widgets.bars import BarList
from decodescope.app.widgets.building import STRETCH, arrange
from decodescope.app.widgets.plain_text import tooltip
from decodescope.core import words
from decodescope.resources.language import tr

DOT, CURRENT_DOT_WIDTH, GAP = 7, 20, 6
"""Sizes in pixels at 100 %."""


class StepDots(Themed, QWidget):
    """Progress through the steps of a tour."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._index = self._count = 0
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)

    def show_step(self, index: int, count: int) -> None:
        """Show step `index` (counted from 0) of `count`."""
        self._index, self._count = index, count
        self.setAccessibleName(tr("Step {number} of {count}").format(number=index + 1, count=count))
        self.setToolTip(tooltip(self.accessibleName()))
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

    Right, Page Down, Enter and Space go to the next step, Left and Page Up to the previous one, Esc exits. A lesson has
    choices or bars above the line of buttons, which therefore stays where it is.
    """

    backRequested = Signal()
    playRequested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(gap=6, parent=parent)
        self.setObjectName("tourPanel")
        self.dots = StepDots()
        self._texts: list[str] = []
        """Sentences for which room is kept."""
        self.back = self.create_button("tourBack", self.backRequested)
        self.play = self.create_button("tourPlay", self.playRequested)
        self.next = self.create_button("tourNext", self.nextRequested, "primary")
        self.leave = self.create_button("tourLeave", self.leaveRequested)
        self.choice_row = ChoiceRow("lessonChoice", self)
        self.bars = BarList(theme_for("light"), tr("Choices"), self, fits_labels=True)
        self._is_lesson = False
        self._lay_out()

    def show_step(self, title: str, index: int, count: int, text: str, is_busy: bool = False) -> None:
        """Show a step; while it `is_busy`, navigation is disabled."""
        self.setAccessibleName(tr("Lesson") if self._is_lesson else tr("Guided tour"))
        focused: QWidget | None = self.window().focusWidget()
        if focused is not None and self.choice_row.isAncestorOf(focused):
            self.setFocus(Qt.FocusReason.OtherFocusReason)  # else hiding it gives the focus to a view
        self.choice_row.hide()
        self.bars.hide()
        self.title.setText(title)
        self.dots.show_step(index, count)
        if text not in self._texts:
            self.reserve_height([*self._texts, text])  # its numbers may make it longer than foreseen
        self.sentence.set_text(text)
        self.back.setText(tr("Back"))
        self.next.setText(tr("Next") if index + 1 < count else tr("Done"))
        self.leave.setText(tr("Exit lesson") if self._is_lesson else tr("Exit tour"))
        self.leave.setToolTip(tr("Restores your own settings"))
        self._enable_next(not is_busy)
        if index == 0 and self.window().focusWidget() is self.back:
            self.next.setFocus(Qt.FocusReason.OtherFocusReason)
        self.back.setEnabled(index > 0 and not is_busy)
        if not is_busy:
            self._announce(text)

    def set_lesson(self, is_lesson: bool) -> None:
        """Arrange the panel for a lesson or for a tour."""
        self._is_lesson = is_lesson
        self.play.setVisible(not is_lesson)
        self.column.removeItem(self._line)
        self.column.insertLayout(self.column.count() if is_lesson else 0, self._line)

    def show_choices(self, texts: Sequence[str], is_room: bool) -> None:
        """Offer the choices of a guess."""
        self.choice_row.show_choices(texts)
        self.choice_row.set_room(is_room)
        self.choice_row.show()
        focused = self if is_room else self.choice_row.buttons[0]
        focused.setFocus(Qt.FocusReason.OtherFocusReason)

    def show_result(self, texts: Sequence[str], result: GuessResult, votes: Sequence[int], is_room: bool) -> None:
        """Show the room's votes or the guess next to the model."""
        rows, heads = choice_bars(texts, result.answer, votes, is_room, result.shares)
        self.bars.set_rows(rows, heads, widest=words.LONGEST_PERCENT)
        self.bars.show()

    def reserve_height(self, texts: Sequence[str]) -> None:
        """Keep room for the longest of these sentences, so that the buttons stay where they are from step to step."""
        self._texts = [] if self._is_lesson else list(texts)
        self._update_reserved_height()

    def _update_reserved_height(self) -> None:
        """Measure the sentences again, for another width or font."""
        width = self.width() - self.column.contentsMargins().left() - self.column.contentsMargins().right()
        metrics, room = self.sentence.label.fontMetrics(), QRect(0, 0, max(1, width), 1 << 20)
        flags = int(Qt.TextFlag.TextWordWrap)
        shown = () if self._is_lesson else (*self._texts, self.sentence.text())
        heights = (metrics.boundingRect(room, flags, text).height() for text in shown)
        self.sentence.set_min_text_height(max(heights, default=0))

    def restyle(self, theme: Theme) -> None:
        super().restyle(theme)
        self._update_reserved_height()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._update_reserved_height()

    def show_playing(self, is_playing: bool) -> None:
        """Show whether the tour advances automatically."""
        self.play.setText(tr("Stop") if is_playing else tr("Play"))
        self.play.setToolTip(tr("Pause at every step") if is_playing else tr("Advance automatically"))

    def take_focus(self) -> None:
        """Take the keyboard focus, so that keys move through the steps."""
        super().take_focus()
        if self.next.isEnabled():
            self.next.setFocus(Qt.FocusReason.OtherFocusReason)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Move through the steps with the keyboard or a clicker, if the direction is enabled."""
        key = event.key()
        if self.choice_row.press(key):
            return
        is_forward = key in _FORWARD or (key == Qt.Key.Key_Space and self.window().focusWidget() is self)
        if is_forward and self.next.isEnabled():
            self.nextRequested.emit()
        elif key in _BACKWARD and self.back.isEnabled():
            self.backRequested.emit()
        elif not is_forward and key not in _BACKWARD:
            super().keyPressEvent(event)

    def handles_key(self, key: int) -> bool:
        return key in _FORWARD or key in _BACKWARD or self.choice_row.handles_key(key)

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
        self._line = arrange(QHBoxLayout(), self.title, self.dots, STRETCH, self.leave, self.play, self.back, self.next)
        for button in self.choice_row.buttons:
            button.installEventFilter(self)
        self.choice_row.hide()
        self.bars.hide()
        arrange(self.column, self._line, self.sentence, self.choice_row, self.bars)
