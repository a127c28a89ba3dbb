"""A scrolled area in which something under the pointer is told more about."""

from __future__ import annotations

from PySide6.QtCore import QEvent, Signal
from PySide6.QtGui import QHideEvent, QWheelEvent
from PySide6.QtWidgets import QAbstractScrollArea

from app.widgets.inputs import changes_text_size


class HoverArea(QAbstractScrollArea):
    """Says when what the pointer was over is no longer under it."""

    hoverEnded = Signal()
    """The pointer went elsewhere, or the page moved away below it."""

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Scroll; with Ctrl the window changes the text size."""
        if changes_text_size(event):
            event.ignore()
        else:
            super().wheelEvent(event)

    def leaveEvent(self, event: QEvent) -> None:
        """The pointer went elsewhere."""
        self.hoverEnded.emit()
        super().leaveEvent(event)

    def hideEvent(self, event: QHideEvent) -> None:
        """Another page is shown in its place; its card is a window of its own and would stay."""
        self.hoverEnded.emit()
        super().hideEvent(event)

    def scrollContentsBy(self, dx: int, dy: int) -> None:
        """What the pointer was over has moved away."""
        self.hoverEnded.emit()
        self.viewport().update()
