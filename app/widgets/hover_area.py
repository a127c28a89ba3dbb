"""A scrolled area in which something under the pointer is told more about."""

from __future__ import annotations

from PySide6.QtCore import QEvent
from PySide6.QtWidgets import QAbstractScrollArea


class HoverArea(QAbstractScrollArea):
    """Forgets what the pointer was over when it leaves, or when that scrolls away."""

    def leave(self) -> None:
        """Forget it; hide what was shown of it."""

    def leaveEvent(self, event: QEvent) -> None:
        """The pointer went elsewhere."""
        self.leave()
        super().leaveEvent(event)

    def scrollContentsBy(self, dx: int, dy: int) -> None:
        """What the pointer was over has moved away."""
        self.leave()
