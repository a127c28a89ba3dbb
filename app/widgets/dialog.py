"""A dialog that fits on its screen, and through which Tab goes as it is read, whatever order its parts were made in."""

from __future__ import annotations

from PySide6.QtCore import QSize
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QDialog, QWidget

from app.widgets.screen import available_rect
from app.widgets.tab_order import TabOrder

WINDOW_FRAME = QSize(16, 40)
"""What a desktop puts around a window, more or less."""


class BaseDialog(QDialog):
    """Line by line, each from its beginning, and round again."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._order = TabOrder(self, lambda: (self,))

    def showEvent(self, event: QShowEvent) -> None:
        """What does not fit on the screen is scrolled."""
        layout = self.layout()
        if layout is not None:
            layout.activate()  # what it needed before its labels knew their width counts no more
        room = available_rect(self).size() - WINDOW_FRAME
        self.resize(self.size().boundedTo(room))
        super().showEvent(event)

    def focusNextPrevChild(self, forwards: bool) -> bool:
        """Tab and Shift+Tab."""
        return self._order.move_focus(forwards)
