"""What stands at the right of the tabs, and tells when it would have another width."""

from __future__ import annotations

from PySide6.QtCore import QEvent, Signal
from PySide6.QtWidgets import QWidget


class ToolContainer(QWidget):
    """`widthChanged()`: a tool in it says more, or less, and the tabs beside it have to be fitted anew."""

    widthChanged = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._width = 0

    def event(self, event: QEvent) -> bool:
        """A layout that wants something may want another width."""
        done = super().event(event)
        if event.type() == QEvent.Type.LayoutRequest and self.sizeHint().width() != self._width:
            self._width = self.sizeHint().width()
            self.widthChanged.emit()
        return done
