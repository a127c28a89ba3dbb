"""What a dialog holds above its foot: scrolled where the screen has not room for all of it."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QScrollArea, QVBoxLayout, QWidget

from app.widgets.dialog import ReadDialog
from app.widgets.screen import room_around

WIDTH = 54
"""Digits of its own type side by side."""
LEFT_FREE, LEAST_HEIGHT = 160, 120
"""Pixels of the screen's height for the dialog's frame and foot; and what it takes at least."""


class Scrolled(QScrollArea):
    """As large as what is in it, where the screen has room for that."""

    def __init__(self) -> None:
        super().__init__(widgetResizable=True)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)

    def sizeHint(self) -> QSize:
        content = self.widget()
        if content is None:
            return super().sizeHint()
        room = room_around(self).height() - LEFT_FREE
        width = max(content.minimumSizeHint().width(), round(WIDTH * self.fontMetrics().horizontalAdvance("0")))
        height = max(content.heightForWidth(width), content.minimumSizeHint().height())
        bar = self.verticalScrollBar().sizeHint().width() if height > room else 0
        return QSize(width + bar, min(height, room))

    def minimumSizeHint(self) -> QSize:
        content = self.widget()
        return QSize(content.minimumSizeHint().width() if content is not None else 0, LEAST_HEIGHT)


class ScrolledDialog(ReadDialog):
    """What is read is scrolled; the buttons below it stay in sight."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._scroll = Scrolled()

    def hold(self, content: QWidget, foot: QWidget) -> None:
        """Lay both out, once they are made."""
        self._scroll.setWidget(content)
        foot.setContentsMargins(20, 8, 20, 16)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.setSpacing(0)
        whole.addWidget(self._scroll, 1)
        whole.addWidget(foot)

    def showEvent(self, event: QShowEvent) -> None:
        """As high as there is room for: Qt alone gives a window two thirds of the screen."""
        self.resize(self.sizeHint())
        super().showEvent(event)
