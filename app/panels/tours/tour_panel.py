"""The panel of a tour: a sentence at the foot of the window, like a subtitle, which covers nothing."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QAccessible, QAccessibleAnnouncementEvent, QKeyEvent
from PySide6.QtWidgets import QHBoxLayout, QWidget

from app.panels.bottom_panel import BottomPanel
from app.panels.tours.step_dots import StepDots
from app.theme.theme import Theme
from resources.language import tr

_FORWARD = (Qt.Key.Key_Right, Qt.Key.Key_PageDown)
_BACKWARD = (Qt.Key.Key_Left, Qt.Key.Key_PageUp)


class TourPanel(BottomPanel):
    """Title, sentence, dots for the steps, and Back, Play, Next and Leave. Right, Page Down, Enter and Space go on,
    Left and Page Up go back, Esc leaves."""

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
        """A step's sentence; while it `is_busy`, there is nowhere to go."""
        self.setAccessibleName(tr("Guided tour"))
        self.title.setText(title)
        self.dots.show_step(index, count)
        self.sentence.set_text(text)
        self.back.setText(tr("Back"))
        self.next.setText(tr("Next") if index + 1 < count else tr("Done"))
        self.leave.setText(tr("Leave"))
        self.leave.setToolTip(tr("Your own settings come back"))
        self._enable_next(not is_busy)
        if index == 0 and self.window().focusWidget() is self.back:
            self.next.setFocus(Qt.FocusReason.OtherFocusReason)
        self.back.setEnabled(index > 0 and not is_busy)
        if not is_busy:
            self._announce(text)

    def show_playing(self, is_playing: bool) -> None:
        """Whether it goes on by itself."""
        self.play.setText(tr("Stop") if is_playing else tr("Play"))
        self.play.setToolTip(tr("Wait for me at every step") if is_playing else tr("Go on by itself"))

    def take_focus(self) -> None:
        """Let the keys walk through the steps."""
        super().take_focus()
        if self.next.isEnabled():
            self.next.setFocus(Qt.FocusReason.OtherFocusReason)

    def set_theme(self, theme: Theme) -> None:
        super().set_theme(theme)
        self.dots.set_theme(theme)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Walk through the steps; a clicker's keys do, too. Where there is nowhere to go, nothing happens."""
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
        """Keep the keyboard in the panel while the button is disabled, and on the button once it is enabled.

        A disabled button loses the focus, and Qt gives it to whatever comes next in the window.
        """
        focused = self.window().focusWidget()
        if not on and focused in (self.next, self.back):
            self.setFocus(Qt.FocusReason.OtherFocusReason)
        self.next.setEnabled(on)
        if on and self.window().focusWidget() is self:
            self.next.setFocus(Qt.FocusReason.OtherFocusReason)

    def _announce(self, text: str) -> None:
        """Tell a screen reader, when it has come to the end of what it says."""
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
