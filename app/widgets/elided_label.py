"""A label that shortens its text with an ellipsis instead of asking for more room."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QFrame, QWidget

from app.widgets.plain_text import PlainLabel


class ElidedLabel(PlainLabel):
    """Shows as much of `text()` as fits; the whole of it is in the tooltip when it does not."""

    def __init__(self, text: str = "", parent: QWidget | None = None) -> None:
        super().__init__(text, parent)

    def minimumSizeHint(self) -> QSize:
        return QSize(self.fontMetrics().horizontalAdvance("…") + 2, super().minimumSizeHint().height())

    def paintEvent(self, event: QPaintEvent) -> None:
        QFrame.paintEvent(self, event)
        shown = self.fontMetrics().elidedText(self.text(), Qt.TextElideMode.ElideRight, self.contentsRect().width())
        QPainter(self).drawText(self.contentsRect(), self.alignment(), shown)
