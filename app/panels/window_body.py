"""Everything in the window, below each other."""

from __future__ import annotations

from PySide6.QtWidgets import QVBoxLayout, QWidget


class WindowBody(QWidget):
    """The toolbar, the middle, what is docked, the timeline, the status line."""

    def __init__(self, toolbar: QWidget, middle: QWidget, timeline: QWidget, status: QWidget) -> None:
        super().__init__()
        self._timeline = timeline
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(0)
        for part in (toolbar, middle, timeline, status):
            self._column.addWidget(part, 1 if part is middle else 0)

    def dock(self, panel: QWidget) -> None:
        """Let a panel that comes later stand above the timeline, where it covers nothing."""
        self._column.insertWidget(self._column.indexOf(self._timeline), panel)
