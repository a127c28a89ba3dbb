"""The lab windows, each created on first use."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

from PySide6.QtCore import QObject, Slot
from PySide6.QtWidgets import QWidget

if TYPE_CHECKING:
    from decodescope.app.features.labs.panel import PreferenceLabDialog, SpeedLabDialog
    from decodescope.app.features.labs.session import PreferenceJobs, ScaleJobs, SpeedJobs
    from decodescope.app.features.labs.view.scale.window import ScaleView

    Room = PreferenceLabDialog | ScaleView | SpeedLabDialog

SCALE, PREFERENCE, SPEED = "scale", "preference", "speed"
"""Names of the labs."""


class LabJobs:
    """The running jobs of the labs. They outlive the lab windows and are created on first use."""

    def __init__(self, data: Callable[[], Path]) -> None:
        """`data()` returns the user's data folder."""
        self._data = data
        self._preference: PreferenceJobs | None = None
        self._speed: SpeedJobs | None = None
        self._scale: ScaleJobs | None = None

    def preference(self) -> PreferenceJobs:
        """Return the jobs of the preference lab."""
        if self._preference is None:
            from decodescope.app.features.labs.session import PreferenceJobs

            self._preference = PreferenceJobs(self._data)
        return self._preference

    def scale(self) -> ScaleJobs:
        """Return the jobs of the Scale lab."""
        if self._scale is None:
            from decodescope.app.features.labs.session import ScaleJobs

            self._scale = ScaleJobs()
        return self._scale

    def speed(self) -> SpeedJobs:
        """Return the jobs of the Speed lab."""
        if self._speed is None:
            from decodescope.app.features.labs.session import SpeedJobs

            self._speed = SpeedJobs()
        return self._speed

    def stop_all(self) -> None:
        """Stop everything when the window closes; trainings can be resumed."""
        for work in (self._preference, self._scale, self._speed):
            if work is not None:
                work.stop_and_wait()


class LabWindows(QObject):
    """Opens each lab window once, above `parent_window`; they follow its theme and explanation level."""

    def __init__(self, parent_window: QWidget, makers: Mapping[str, Callable[[QWidget], Room]]) -> None:
        """`makers` creates the lab window of each name above a window."""
        super().__init__(parent_window)
        self._parent_window, self._makers = parent_window, makers
        self._windows: dict[str, Room] = {}

    @Slot()
    def open_scale(self) -> None:
        """Open the Scale lab."""
        self._show(SCALE)

    @Slot()
    def open_preference(self) -> PreferenceLabDialog:
        """Open the Preference lab."""
        return cast("PreferenceLabDialog", self._show(PREFERENCE))

    @Slot()
    def open_speed(self) -> None:
        """Open the Speed lab."""
        self._show(SPEED)

    @property
    def open_names(self) -> tuple[str, ...]:
        """The names of the open labs."""
        return tuple(self._windows)

    def reopen(self, names: Sequence[str]) -> None:
        """Reopen labs that were open before."""
        for name in names:
            self._show(name)

    @Slot()
    def wording_changed(self) -> None:
        """Update the texts after a change of the explanation level."""
        for room in self._windows.values():
            room.wording_changed()

    def _show(self, name: str) -> Room:
        if name not in self._windows:
            room = self._windows[name] = self._makers[name](self._parent_window.window())
            room.destroyed.connect(partial(self._windows.pop, name, None))
        self._windows[name].show()
        self._windows[name].raise_()
        self._windows[name].activateWindow()
        return self._windows[name]
