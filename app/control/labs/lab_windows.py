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
    from app.panels.preference_lab import PreferenceLab
    from app.panels.speed_lab import SpeedLab
    from app.session.labs import LabWork
    from app.session.scale import ScaleWork
    from app.session.speed import SpeedWork
    from app.views.labs.scale.window import ScaleView

    Room = PreferenceLab | ScaleView | SpeedLab

SCALE, PREFERENCE, SPEED = "scale", "preference", "speed"
"""The rooms' names."""


class LabWorks:
    """What the labs have under way: it outlives their rooms, and is made with the first of them."""

    def __init__(self, data: Callable[[], Path]) -> None:
        """`data()`: where the user's data lies."""
        self._data = data
        self._made: LabWork | None = None
        self._speed: SpeedWork | None = None
        self._scale: ScaleWork | None = None

    def preference(self) -> LabWork:
        """That of the preference lab."""
        if self._made is None:
            from app.session.labs import LabWork

            self._made = LabWork(self._data)
        return self._made

    def scale(self) -> ScaleWork:
        """That of the Scale lab."""
        if self._scale is None:
            from app.session.scale import ScaleWork

            self._scale = ScaleWork()
        return self._scale

    def speed(self) -> SpeedWork:
        """That of the Speed lab."""
        if self._speed is None:
            from app.session.speed import SpeedWork

            self._speed = SpeedWork()
        return self._speed

    def end(self) -> None:
        """The window closes: trainings stop, and can be gone on with; what is measured ends."""
        for work in (self._made, self._scale, self._speed):
            if work is not None:
                work.end()


class Labs(QObject):
    """Opens the rooms beside the window that `over` lies in, each once; they follow its theme and depth of words."""

    def __init__(self, over: QWidget, makers: Mapping[str, Callable[[QWidget], Room]]) -> None:
        """`makers`: how the room of each name is made above a window."""
        super().__init__(over)
        self._over, self._makers = over, makers
        self._theme: Theme | None = None
        self._rooms: dict[str, Room] = {}

    @Slot()
    def open_scale(self) -> None:
        """The Scale lab."""
        self._show(SCALE)

    @Slot()
    def open_preference(self) -> PreferenceLab:
        """The Preference lab."""
        return cast("PreferenceLab", self._show(PREFERENCE))

    @Slot()
    def open_speed(self) -> None:
        """The Speed lab."""
        self._show(SPEED)

    @property
    def open(self) -> tuple[str, ...]:
        """The rooms that are open, by their names."""
        return tuple(self._rooms)

    def open_again(self, names: Sequence[str]) -> None:
        """Rooms that were open, as they are when they are opened."""
        for name in names:
            self._show(name)

    @Slot(object)
    def set_theme(self, theme: Theme) -> None:
        """Colours and sizes, of what is open and of what will be."""
        self._theme = theme
        for room in self._rooms.values():
            room.set_theme(theme)

    @Slot()
    def words_changed(self) -> None:
        """Another depth of words."""
        for room in self._rooms.values():
            room.words_changed()

    def _show(self, name: str) -> Room:
        if name not in self._rooms:
            room = self._rooms[name] = self._makers[name](self._over.window())
            room.destroyed.connect(partial(self._rooms.pop, name, None))
            if self._theme is not None:
                room.set_theme(self._theme)
        self._rooms[name].show()
        self._rooms[name].raise_()
        self._rooms[name].activateWindow()
        return self._rooms[name]
