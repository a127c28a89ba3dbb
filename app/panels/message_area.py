"""Where messages stand above a view: as high as they are, but never so high that the view is lost."""

from __future__ import annotations

from collections.abc import Iterable

from PySide6.QtCore import QEvent, QObject, QSize, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QScrollArea, QVBoxLayout, QWidget

MAX_HEIGHT_FRACTION = 0.6
"""Share of the surrounding part's height; what is longer scrolls."""
MIN_HEIGHT = 40
"""Pixels that a message gets in any case; it scrolls."""
MARGIN = 16


class MessageArea(QScrollArea):
    """Banners below each other; no height at all while all of them are hidden."""

    def __init__(self, banners: Iterable[QWidget], around: QWidget) -> None:
        super().__init__(around, widgetResizable=True)
        self.setObjectName("messageArea")
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

    def _available_height(self) -> int:
        """What the parts above and below it can spare."""
        layout = self._around.layout()
        if layout is None:
            return self._around.height()
        found = (layout.itemAt(index) for index in range(layout.count()))
        others = sum(item.minimumSize().height() for item in found if item is not None and item.widget() is not self)
        return max(MIN_HEIGHT, self._around.height() - others)

    def _fit(self) -> None:
        height = min(
            self._column.totalSizeHint().height(),
            round(self._around.height() * MAX_HEIGHT_FRACTION),
            self._available_height(),
        )
        if height != self.maximumHeight():
            self.setFixedHeight(height)
