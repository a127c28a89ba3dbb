"""A label that goes on in another line where it is narrow, and claims the height for it itself."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QRect, QSize, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.widgets.plain_text import PlainLabel


class WrappedLabel(PlainLabel):
    """Plain text. Layouts in layouts lose Qt's own height for width; a fixed height they all keep."""

    def __init__(self, text: str = "", parent: QWidget | None = None) -> None:
        super().__init__(text, parent, wordWrap=True)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)

    def hasHeightForWidth(self) -> bool:
        """No: its own height is fixed."""
        return False

    def sizeHint(self) -> QSize:
        """All of it on one line."""
        metrics = self.fontMetrics()
        return QSize(metrics.horizontalAdvance(self.text()) + 2, metrics.height())

    def minimumSizeHint(self) -> QSize:
        """It can be narrow."""
        return QSize(0, self.fontMetrics().height())

    def setText(self, text: str) -> None:
        """Say something else, in as many lines as it takes."""
        super().setText(text)
        self._update_height()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._update_height()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() in (QEvent.Type.FontChange, QEvent.Type.StyleChange):
            self._update_height()

    def _update_height(self) -> None:
        room = QRect(0, 0, max(1, self.width()), 10_000)
        height = self.fontMetrics().boundingRect(room, Qt.TextFlag.TextWordWrap, self.text()).height()
        if height != self.minimumHeight():
            self.setFixedHeight(height)
