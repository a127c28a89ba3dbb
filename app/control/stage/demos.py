"""The way to recording a demo: nothing of it is imported or made before the first is wanted."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Slot

if TYPE_CHECKING:
    from app.control.stage.demo import DemoRecorder


class LazyDemoRecorder(QObject):
    """Films the shown run as it would be presented."""

    def __init__(self, make: Callable[[], DemoRecorder], parent: QObject) -> None:
        super().__init__(parent)
        self._make = make
        self._recorder: DemoRecorder | None = None

    @property
    def recorder(self) -> DemoRecorder:
        """What films; made when it is first asked for."""
        if self._recorder is None:
            self._recorder = self._make()
        return self._recorder

    @Slot()
    def open_dialog(self) -> None:
        """Ask how the film is to be."""
        self.recorder.open_dialog()
