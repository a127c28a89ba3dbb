"""Where messages stand above a view: as high as they are, but never so high that the view is lost."""

from __future__ import annotations

from collections.abc import Iterable

from PySide6.QtCore import QEvent, QObject, QSize, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QScrollArea, QVBoxLayout, QWidget

MOST = 0.6
"""Share of the surrounding part's height; what is longer scrolls."""
MARGIN = 16


class MessageArea(QScrollArea):
    """Banners below each other; no height at all while all of them are hidden."""

    def __init__(self, banners: Iterable[QWidget], around: QWidget) -> None:
        super().__init__(around, widgetResizable=True, objectName="messageArea")
        self._around = around
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._content = QWidget()
        self._column = QVBoxLayout(self._content)
        self._column.setContentsMargins(MARGIN, 0, MARGIN, 0)
        self._column.setSpacing(0)
        for banner in banners:
            self._column.addWidget(banner)
        self.setWidget(self._content)
        for watched in (self._content, around):
            watched.installEventFilter(self)
        self._fit()

    def minimumSizeHint(self) -> QSize:
        """It can be narrow."""
        return QSize(0, 0)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """A banner has come, gone or changed, or there is other room."""
        if event.type() in (QEvent.Type.LayoutRequest, QEvent.Type.Resize):
            self._fit()
        return False

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        height = min(self._column.totalSizeHint().height(), round(self._around.height() * MOST))
        if height != self.maximumHeight():
            self.setFixedHeight(height)
