"""A flat button that opens a menu."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QMenu, QToolButton, QWidget

from app.widgets.plain_text import caption, tooltip


class MenuButton(QToolButton):
    """`actions` are (words, slot)."""

    def __init__(
        self,
        name: str,
        title: str,
        help_text: str,
        actions: tuple[tuple[str, Callable[[], None]], ...],
        parent: QWidget,
    ) -> None:
        super().__init__(parent)
        self.setObjectName(name)
        self.setText(caption(f"{title} ⌄"))
        self.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.setAccessibleName(title)
        self.setToolTip(tooltip(help_text))
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        menu = QMenu(self)
        for words, slot in actions:
            menu.addAction(caption(words), slot)
        self.setMenu(menu)
