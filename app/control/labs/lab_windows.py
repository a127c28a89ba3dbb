"""The labs' rooms, each made when it is first asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

from PySide6.QtCore import QObject, Slot
from PySide6.QtWidgets import QWidget

from app.theme.theme import Theme

if TYPE_CHECKING:
    from app.panels.lab_windows import PreferenceLabDialog, SpeedLabDialog
    from app.session.lab_jobs import PreferenceJobs, ScaleJobs, SpeedJobs
    from app.views.labs.scale.window import ScaleView

    Room = PreferenceLabDialog | ScaleView | SpeedLabDialog

SCALE, PREFERENCE, SPEED = "scale", "preference", "speed"
"""The rooms' names."""


class LabJobs:
    """What the labs have under way: it outlives their rooms, and is made with the first of them."""

    def __init__(self, data: Callable[[], Path]) -> None:
        """`data()`: where the user's data lies."""
        self._data = data
        self._preference: PreferenceJobs | None = None
        self._speed: SpeedJobs | None = None
        self._scale: ScaleJobs | None = None

    def preference(self) -> PreferenceJobs:
        """That of the preference lab."""
        if self._preference is None:
            from app.session.lab_jobs import PreferenceJobs

            self._preference = PreferenceJobs(self._data)
        return self._preference

    def scale(self) -> ScaleJobs:
        """That of the Scale lab."""
        if self._scale is None:
            from app.session.lab_jobs import ScaleJobs

            self._scale = ScaleJobs()
        return self._scale

    def speed(self) -> SpeedJobs:
        """That of the Speed lab."""
        if self._speed is None:
            from app.session.lab_jobs import SpeedJobs

            self._speed = SpeedJobs()
        return self._speed

    def stop_all(self) -> None:
        """The window closes: trainings stop, and can be gone on with; what is measured ends."""
        for work in (self._preference, self._scale, self._speed):
            if work is not None:
                work.stop_and_wait()


class LabWindows(QObject):
    """Opens the rooms beside the window that `over` lies in, each once; they follow its theme and depth of words."""

    def __init__(self, over: QWidget, makers: Mapping[str, Callable[[QWidget], Room]]) -> None:
        """`makers`: how the room of each name is made above a window."""
        super().__init__(over)
        self._over, self._makers = over, makers
        self._theme: Theme | None = None
        self._windows: dict[str, Room] = {}

    @Slot()
    def open_scale(self) -> None:
        """The Scale lab."""
        self._show(SCALE)

    @Slot()
    def open_preference(self) -> PreferenceLabDialog:
        """The Preference lab."""
        return cast("PreferenceLabDialog", self._show(PREFERENCE))

    @Slot()
    def open_speed(self) -> None:
        """The Speed lab."""
        self._show(SPEED)

    @property
    def open_names(self) -> tuple[str, ...]:
        """The rooms that are open, by their names."""
        return tuple(self._windows)

    def reopen(self, names: Sequence[str]) -> None:
        """Rooms that were open, as they are when they are opened."""
        for name in names:
            self._show(name)

    @Slot(object)
    def set_theme(self, theme: Theme) -> None:
        """Colours and sizes, of what is open and of what will be."""
        self._theme = theme
        for room in self._windows.values():
            room.set_theme(theme)

    @Slot()
    def words_changed(self) -> None:
        """Another depth of words."""
        for room in self._windows.values():
            room.words_changed()

    def _show(self, name: str) -> Room:
        if name not in self._windows:
            room = self._windows[name] = self._makers[name](self._over.window())
            room.destroyed.connect(partial(self._windows.pop, name, None))
            if self._theme is not None:
                room.set_theme(self._theme)
        self._windows[name].show()
        self._windows[name].raise_()
        self._windows[name].activateWindow()
        return self._windows[name]
