"""The labs' rooms, each made when it is first asked for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Slot
from PySide6.QtWidgets import QWidget

from app.control.model_choice import ModelChoice
from app.theme.theme import Theme

if TYPE_CHECKING:
    from app.control.preference.room import PreferenceController
    from app.session.labs import LabWork


class LabWorks:
    """What the labs have under way: it outlives their rooms, and is made with the first of them."""

    def __init__(self, data: Callable[[], Path]) -> None:
        """`data()`: where the user's data lies."""
        self._data = data
        self._made: LabWork | None = None

    def preference(self) -> LabWork:
        """That of the preference lab."""
        if self._made is None:
            from app.session.labs import LabWork

            self._made = LabWork(self._data)
        return self._made

    def end(self) -> None:
        """The window closes: trainings stop, and can be gone on with."""
        if self._made is not None:
            self._made.end()


class Labs(QObject):
    """Opens the rooms beside the window that `over` lies in."""

    def __init__(self, over: QWidget, works: LabWorks, model: ModelChoice) -> None:
        super().__init__(over)
        self._over, self._works, self._model = over, works, model
        self._theme: Theme | None = None
        self._preference: PreferenceController | None = None

    @Slot()
    def open_preference(self) -> PreferenceController:
        """The preference lab."""
        if self._preference is None:
            from app.control.preference.room import PreferenceController

            self._preference = PreferenceController(self._over.window(), self._works.preference(), self._model)
            self._preference.lab.destroyed.connect(self._on_closed)
            if self._theme is not None:
                self._preference.lab.set_theme(self._theme)
        self._preference.lab.show()
        self._preference.lab.activateWindow()
        return self._preference

    @Slot(object)
    def set_theme(self, theme: Theme) -> None:
        """Colours and sizes, of what is open and of what will be."""
        self._theme = theme
        if self._preference is not None:
            self._preference.lab.set_theme(theme)

    @Slot()
    def _on_closed(self) -> None:
        self._preference = None
