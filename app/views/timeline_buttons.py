"""The buttons of the timeline: play, how fast, and what the bars show."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from PySide6.QtCore import QSize, Qt, Signal, Slot
from PySide6.QtGui import QAction, QActionGroup
from PySide6.QtWidgets import QMenu, QToolButton, QWidget

from app.state.uncertainty import MEASURES
from app.theme.theme import Theme, theme_for
from app.views.replay import SPEEDS, STEP_SPEED
from app.widgets.icons import create_icon
from app.widgets.plain_text import caption, tooltip
from resources.language import tr


class PlayButton(QToolButton):
    """A triangle, or two bars while it plays."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme, self._is_stepping = theme_for("light"), False
        self._shown: tuple[bool, bool, Theme] | None = None
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.set_playing(False)

    def set_theme(self, theme: Theme) -> None:
        """Take other colours and sizes."""
        self._theme = theme
        self.set_playing(self.is_playing)

    def set_stepping(self, stepping: bool) -> None:
        """Whether a press goes one token on instead of playing."""
        self._is_stepping = stepping
        self.set_playing(self.is_playing)

    @Slot(bool)
    def set_playing(self, playing: bool) -> None:
        """Show what a press would do next."""
        self.is_playing = playing
        before, self._shown = self._shown, (playing, self._is_stepping, self._theme)
        if self._shown == before:  # each run that begins asks for it, and icons take a while to draw
            return
        px = self._theme.px(16)
        self.setIconSize(QSize(px, px))
        self.setIcon(create_icon("pause" if playing else "play", self._theme.text, px))
        label = tr("Pause") if playing else tr("One token on") if self._is_stepping else tr("Play the run again")
        self.setAccessibleName(label)
        self.setToolTip(tooltip(tr("{what} (Space)").format(what=label)))


class ChoiceButton(QToolButton):
    """A button with a menu of which one entry is checked. `chosen(value)`: another was picked."""

    chosen = Signal(object)

    def __init__(self, name: str, label: str, entries: Mapping[Any, str], parent: QWidget) -> None:
        """`entries`: what is written in the menu for each value; `label`: what the button is for."""
        super().__init__(parent)
        self.setObjectName(name)
        self.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.setAccessibleName(label)
        menu = QMenu(self)
        self._actions = QActionGroup(menu)
        for value, title in entries.items():
            action = menu.addAction(caption(title))
            action.setCheckable(True)
            action.setData(value)
            self._actions.addAction(action)
        self._actions.triggered.connect(self._on_triggered)
        self.setMenu(menu)

    def show_choice(self, value: float | str, text: str) -> None:
        """Check the entry of that value, and write `text` on the button."""
        self.setText(text)
        for action in self._actions.actions():
            action.setChecked(action.data() == value)

    @Slot(QAction)
    def _on_triggered(self, action: QAction) -> None:
        self.chosen.emit(action.data())


def create_speed_button(parent: QWidget) -> ChoiceButton:
    """How fast a replay goes: one of `SPEEDS`."""
    entries = {speed: tr("Step by step") if speed == STEP_SPEED else title for speed, title in SPEEDS.items()}
    button = ChoiceButton("speedButton", tr("Speed"), entries, parent)
    button.setToolTip(tr("Speed of the replay"))
    return button


def create_measure_button(parent: QWidget) -> ChoiceButton:
    """What the bars show: one of `MEASURES`."""
    entries = {name: tr(measure.title) for name, measure in MEASURES.items()}
    button = ChoiceButton("measureButton", tr("What the bars show"), entries, parent)
    button.setToolTip(tr("What the bars show: the higher, the more doubt"))
    return button
