"""Creates the demo recorder when it is first used."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Slot

if TYPE_CHECKING:
    from decodescope.app.features.presentation.controller.demo_film import DemoRecorder


class LazyDemoRecorder(QObject):
    """Creates the demo recorder on first use."""

    def __init__(self, make: Callable[[], DemoRecorder], parent: QObject) -> None:
        super().__init__(parent)
        self._make = make
        self._recorder: DemoRecorder | None = None

    @property
    def recorder(self) -> DemoRecorder:
        """The recorder, created on first use."""
        if self._recorder is None:
            self._recorder = self._make()
        return self._recorder

    @Slot()
    def open_dialog(self) -> None:
        """Open the dialog with the options."""
        self.recorder.open_dialog()
