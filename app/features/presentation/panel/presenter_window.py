"""Caption below the view while presenting: the chosen token, the reason, and the progress of the run."""

from __future__ import annotations

from typing import NamedTuple

from PySide6.QtCore import Qt, Signal, SignalInstance
from PySide6.QtGui import QCloseEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPushButton, QScrollArea, QVBoxLayout, QWidget

from decodescope.app.theme.theme import Theme, panel_stylesheet
from decodescope.app.theme.themed import Themed
from decodescope.app.widgets.accessibility.accessible_widget import announce
from decodescope.app.widgets.building import STRETCH, Gap, arrange, set_up, show_text
from decodescope.app.widgets.flow_layout import FlowRow
from decodescope.app.widgets.icons import IconButton
from decodescope.app.widgets.labels import ElidedLabel, WrappedLabel
from decodescope.app.widgets.plain_text import PlainLabel
from decodescope.app.widgets.tab_order import TabOrder
from decodescope.resources.language import tr


class StageCaption(Themed, QFrame):
    """Caption with a line for choice and progress, and a sentence below; other widgets go into `middle`, between the
    two.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        set_up(self, name="stageCaption", role="foot")
        self.title, self.progress = ElidedLabel(), PlainLabel()
        self.sentence = WrappedLabel()
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.middle = arrange(QVBoxLayout(), margins=0)
        line = arrange(QHBoxLayout(), (self.title, 1), self.progress)
        self._column = arrange(QVBoxLayout(self), line, self.middle, self.sentence, STRETCH)
        self._max_height = 0

    def restyle(self, theme: Theme) -> None:
        self.reset_height()
        side, rim = theme.space(16), theme.px(6)  # begins where the panels below do
        self._column.setContentsMargins(side, rim, side, rim)
        self._column.setSpacing(theme.px(4))
        self.title.setStyleSheet(f"font-size: {theme.font_pixels(15)}px; font-weight: 600; color: {theme.accent};")
        self.progress.setStyleSheet(f"font-size: {theme.font_pixels(13)}px; color: {theme.muted};")
        self.sentence.setStyleSheet(f"font-size: {theme.font_pixels(13)}px; color: {theme.text};")

    def show_texts(self, title: str, sentence: str, progress: str) -> None:
        """Show these texts."""
        set_up(self, accessible_name=tr("Presentation"), description=sentence)
        self.title.setText(title)
        self.progress.setText(progress)
        if sentence != self.sentence.text():
            self.sentence.setText(sentence)
            if self.isVisible():
                announce(self, sentence)

    def reset_height(self) -> None:
        """Reset the height to what the current texts need."""
        self._max_height = 0
        self.setMinimumHeight(0)

    def keep_height(self) -> None:
        """Never shrink, so that the widgets above do not move from step to step."""
        self._max_height = max(self._max_height, self.sizeHint().height())
        self.setMinimumHeight(self._max_height)


SIZE = (900, 600)
"""Initial size in pixels at 100 %."""


class PresenterContent(NamedTuple):
    """Texts of the presenter window."""

    current: str
    """The token chosen last."""
    reason: str
    notes: str
    next_step: str
    """The next step; empty at the end."""
    progress: str
    speed: str
    view: str


class PresenterWindow(Themed, QWidget):
    """Presenter window. Emits a signal for each control, and `closed` when the window is closed."""

    stepped = Signal(int)
    played = Signal()
    paceChanged = Signal(int)
    viewChanged = Signal(int)
    exitRequested = Signal()
    closed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent, Qt.WindowType.Window)
        self.setObjectName("presenterWindow")
        self.setWindowTitle(tr("Presenter window"))
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.clock, self.elapsed, self.progress = PlainLabel(), PlainLabel(), PlainLabel()
        self.current, self.reason, self.notes, self.next_step = (WrappedLabel() for _ in range(4))
        self._order = TabOrder(self, lambda: (self,))
        self._buttons: list[IconButton] = []
        self._headings: list[QLabel] = []
        self._lay_out()
        self.play.setFocus(Qt.FocusReason.OtherFocusReason)

    def show_content(self, content: PresenterContent) -> None:
        """Show these texts."""
        for label, words in (
            (self.current, content.current),
            (self.reason, content.reason),
            (self.notes, content.notes),
            (self.next_step, content.next_step),
        ):
            show_text(label, words)
        self._notes_heading.setVisible(bool(content.notes))
        self._after_heading.setVisible(bool(content.next_step))
        self.progress.setText(content.progress)
        self.speed.setText(content.speed)
        self.view.setText(content.view)

    def show_time(self, clock: str, elapsed: str) -> None:
        """Show the time of day and the elapsed time."""
        self.clock.setText(clock)
        self.elapsed.setText(elapsed)

    def show_playing(self, on: bool) -> None:
        """Update the play button to show whether the presentation plays automatically."""
        self.play.setText(tr("Pause") if on else tr("Play"))

    def restyle(self, theme: Theme) -> None:
        self.setStyleSheet(
            theme.stylesheet() + panel_stylesheet(theme) + f"#presenterWindow {{ background: {theme.panel}; }}"
        )
        side = theme.px(22)
        self._column.setContentsMargins(side, theme.px(14), side, theme.px(14))
        self._column.setSpacing(theme.px(10))
        for heading in self._headings:
            heading.setContentsMargins(0, theme.px(12), 0, 0)
        for label, size, weight in ((self.clock, 22, 600), (self.elapsed, 15, 400), (self.progress, 15, 400),
                                    (self.current, 18, 600), (self.reason, 15, 400), (self.notes, 22, 400),
                                    (self.next_step, 13, 400)):  # fmt: skip
            label.setStyleSheet(f"font-size: {theme.font_pixels(size)}px; font-weight: {weight};")

    def focusNextPrevChild(self, forwards: bool) -> bool:
        """Move the focus with Tab and Shift+Tab, in reading order."""
        return self._order.move_focus(forwards)

    def closeEvent(self, event: QCloseEvent) -> None:
        super().closeEvent(event)
        self.closed.emit()

    def _lay_out(self) -> None:
        head = arrange(QHBoxLayout(), (self.progress, 1), self.elapsed, Gap(16), self.clock)
        self._notes_heading, self._after_heading = _heading(tr("Notes")), _heading(tr("Next"))
        words = QWidget()
        text = arrange(QVBoxLayout(words), margins=0)
        self._headings = [_heading(tr("Now on stage")), self._notes_heading, self._after_heading]
        for part in (self._headings[0], self.current, self.reason, self._notes_heading, self.notes, self._after_heading,
                     self.next_step):  # fmt: skip
            text.addWidget(part)
        text.addStretch(1)
        area = set_up(QScrollArea(self, widgetResizable=True), accessible_name=tr("Notes"))
        area.setFrameShape(QFrame.Shape.NoFrame)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        area.setWidget(words)
        self._column = arrange(QVBoxLayout(self), head, (area, 1), self._controls())

    def _controls(self) -> QHBoxLayout:
        self.play = set_up(QPushButton(), role="primary", clicked=self.played)
        self.speed, self.view = PlainLabel(), PlainLabel()
        leave = set_up(QPushButton(tr("End")), tooltip=tr("End the presentation (Esc)"), clicked=self.exitRequested)
        groups = FlowRow(self, 10)
        for parts in (
            (
                self._button("step-back", tr("One step back"), self.stepped, -1),
                self.play,
                self._button("step-forward", tr("One step forward"), self.stepped, 1),
            ),
            self._between_buttons(self.speed, tr("Slower"), tr("Faster"), self.paceChanged),
            self._between_buttons(self.view, tr("Previous view"), tr("Next view"), self.viewChanged),
        ):
            group = QWidget(groups)
            arrange(QHBoxLayout(group), *parts, margins=0, spacing=10)
            groups.flow.addWidget(group)
        self.show_playing(False)
        return arrange(QHBoxLayout(), (groups, 1), (leave, 0, Qt.AlignmentFlag.AlignBottom), margins=0, spacing=10)

    def _between_buttons(self, label: QLabel, less: str, more: str, signal: SignalInstance) -> tuple[QWidget, ...]:
        """Place a label between two buttons that change its value."""
        label.setAlignment(Qt.AlignmentFlag.AlignCenter)
        return (
            self._button("chevron-left", less, signal, -1),
            label,
            self._button("chevron-right", more, signal, 1),
        )

    def _button(self, icon: str, label: str, signal: SignalInstance, offset: int) -> IconButton:
        button = set_up(IconButton(icon, label, self), clicked=lambda: signal.emit(offset))
        self._buttons.append(button)
        return button


def _heading(title: str) -> QLabel:
    return set_up(PlainLabel(title.upper()), role="heading")
